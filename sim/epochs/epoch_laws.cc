#include "sim/epochs/epoch_laws.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "core/random.h"

namespace fopd::sim {

namespace {

constexpr std::uint64_t kTwice = std::uint64_t{1} << 63;

std::uint64_t number_at(std::span<const std::byte> data, std::size_t index) {
    std::uint64_t value = 0;
    std::memcpy(&value, data.data() + 8 * index, sizeof value);
    return value;
}

void add_numbers(std::span<std::byte> into, std::span<const std::byte> one,
                 std::span<const std::byte> other) {
    for (std::size_t i = 0; 8 * i < into.size(); ++i) {
        const std::uint64_t a = number_at(one, i);
        const std::uint64_t b = number_at(other, i);
        const std::uint64_t sum = a != 0 && b != 0 ? (a + b) | kTwice : a + b;
        std::memcpy(into.data() + 8 * i, &sum, sizeof sum);
    }
}

}  // namespace

EpochLaws::EpochLaws(std::size_t members, std::size_t fanout, Duration watchdog)
    : fanout_(fanout), watchdog_(watchdog), processes_(members) {}

eh::EpochRules EpochLaws::rules(Duration timeout) {
    return {.timeout = timeout, .combine = add_numbers, .granule = 8};
}

std::string EpochLaws::name_of(std::size_t member) {
    return "m" + std::to_string(member);
}

// -- calls --

std::vector<std::byte> EpochLaws::contribution(std::size_t member,
                                               std::size_t bytes_at_most) const {
    std::vector<std::byte> data(std::min(8 * processes_.size(), bytes_at_most));
    const std::uint64_t call = calls_.size() + 1;
    if (8 * member < data.size()) std::memcpy(data.data() + 8 * member, &call, sizeof call);
    return data;
}

void EpochLaws::on_call(std::size_t member, std::size_t bytes, Instant now) {
    Process& process = processes_[member];
    require(process.pending == 0, "I5", name_of(member) + " may call twice");
    calls_.push_back({.member = member, .bytes = bytes});
    process.pending = calls_.size();
    process.called_at = now;
}

void EpochLaws::on_leave(std::size_t member, const eh::peers::Member& state) {
    left_.emplace(member, state.incarnation());
}

void EpochLaws::on_crash(std::size_t member) {
    Process& process = processes_[member];
    process.pending = 0;
    process.left = {};
    process.seen_view = 0;
}

void EpochLaws::on_answer(std::size_t member, const eh::peers::Member& state,
                          const eh::peers::Answer& answer, Duration frozen, Instant now) {
    Process& process = processes_[member];
    require(process.pending != 0, "I5", name_of(member) + " is answered without a call");
    const Duration waited = now - process.called_at - frozen;
    require(waited <= watchdog_ + 10us, "I6",
            name_of(member) + " waits for " + std::to_string(waited.count()) + " ns");
    if (answer.epoch) check_result(member, state, answer);
    process.pending = 0;
}

void EpochLaws::check_result(std::size_t member, const eh::peers::Member& state,
                             const eh::peers::Answer& answer) {
    const Process& process = processes_[member];
    const std::string who = name_of(member) + " in epoch " + std::to_string(*answer.epoch);
    watch_.on_epoch(name_of(member), answer);
    const eh::CommittedView* const of = watch_.view(answer.view);
    if (of == nullptr) return;
    const eh::CommittedView& view = *of;
    if (process.pending == 0) return;
    require(answer.data.size() <= calls_[process.pending - 1].bytes, "I9", who);

    std::size_t shortest = 8 * processes_.size();
    bool sees_all = true;
    for (std::size_t i = 0; i < processes_.size(); ++i) {
        const auto in_roster = view.find(name_of(i));
        if (8 * i >= answer.data.size()) {
            sees_all = false;
            continue;
        }
        const std::uint64_t call = number_at(answer.data, i);
        const std::string whose = who + " of " + name_of(i);
        require((call & kTwice) == 0, "I3", whose + " twice");
        if (!broken().empty()) return;
        if (call == 0) {
            if (!in_roster || !view.at(*in_roster).takes_part) continue;
            require(left_.contains({i, view.at(*in_roster).incarnation}), "I3",
                    whose + " is missing");
            continue;
        }
        require(in_roster.has_value(), "I8", whose + " who is no member");
        require(call <= calls_.size() && calls_[call - 1].member == i, "I3", whose);
        if (!broken().empty()) return;
        shortest = std::min(shortest, calls_[call - 1].bytes);
        if (i == member) require(call == process.pending, "I3", whose + " has another call");
        // A call whose answer was an error may be in, but not one that began an epoch before.
        const Identity identity{member, state.incarnation()};
        require(seen_.emplace(call, identity).second, "I3b", whose + " again");
    }
    if (sees_all) require(answer.data.size() == shortest, "I3", who + " has another length");
    // Whoever is in a later view that has begun epochs is beyond this one.
    const auto& epochs = watch_.epochs();
    for (auto later = epochs.rbegin(); later != epochs.rend(); ++later) {
        if (later->second.view <= answer.view) break;
        const eh::CommittedView* const newer = watch_.view(later->second.view);
        require(newer == nullptr || !newer->find(name_of(member), state.incarnation()), "I7",
                who + " of an old view");
    }
}

// -- views --

void EpochLaws::on_views_lost() {
    watch_.on_views_lost();
    final_.clear();
}

void EpochLaws::on_step(std::size_t member, const eh::peers::Member& state) {
    Process& process = processes_[member];
    require(state.contributions() <= fanout_ + 1, "I12", name_of(member));
    require(state.is_pending() == (process.pending != 0), "I5", name_of(member) + " lost its call");
    if (state.is_seated() && state.view_number() != process.seen_view) {
        process.seen_view = state.view_number();
        const eh::CommittedView* const committed = watch_.view(process.seen_view);
        require(committed != nullptr && committed->view() == state.view()->view(), "I7",
                name_of(member) + " is in an uncommitted view");
    }
    if (process.left == state.left_view()) return;
    process.left = state.left_view();
    if (process.left.view == 0 || !state.is_seated()) return;
    const auto [final, is_first] = final_.try_emplace(process.left.view, process.left.newest);
    require(final->second == process.left.newest, "I3c",
            name_of(member) + " left view " + std::to_string(process.left.view) + " at epoch " +
                std::to_string(process.left.newest) + ", others at " +
                std::to_string(final->second));
}

std::uint64_t EpochLaws::fingerprint() const {
    std::uint64_t hash = calls_.size();
    for (std::size_t i = 0; i < processes_.size(); ++i) {
        hash = core::mix(hash, processes_[i].pending);
        hash = core::mix(hash, static_cast<std::uint64_t>(watch_.newest(name_of(i))));
    }
    for (const auto& [epoch, of] : watch_.epochs()) {
        hash = core::mix(hash, static_cast<std::uint64_t>(epoch));
        hash = core::mix(hash, of.view);
    }
    for (const auto& [view, newest] : final_) {
        hash = core::mix(hash, view);
        hash = core::mix(hash, static_cast<std::uint64_t>(newest));
    }
    for (const auto& [member, incarnation] : left_)
        hash = core::mix(hash, member * 97 + incarnation);
    return core::mix(hash, history().size());
}

}  // namespace fopd::sim

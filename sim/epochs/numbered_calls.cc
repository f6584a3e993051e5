#include "sim/epochs/numbered_calls.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/random.h"

namespace fopd::sim {

namespace {

constexpr std::uint64_t kTwice = std::uint64_t{1} << 63;
// A timer may fire a little late.
constexpr Duration kLate = 10us;

std::uint64_t number_at(std::span<const std::byte> numbers, std::size_t index) {
    std::uint64_t value = 0;
    std::memcpy(&value, numbers.data() + 8 * index, sizeof value);
    return value;
}

}  // namespace

NumberedCalls::NumberedCalls(std::vector<std::string> names)
    : names_(std::move(names)), pending_(names_.size()), calls_(names_.size()) {}

void NumberedCalls::combine(std::span<std::byte> into, std::span<const std::byte> one,
                            std::span<const std::byte> other) {
    for (std::size_t i = 0; 8 * i < into.size(); ++i) {
        const std::uint64_t a = number_at(one, i);
        const std::uint64_t b = number_at(other, i);
        const std::uint64_t sum = a != 0 && b != 0 ? (a + b) | kTwice : a + b;
        std::memcpy(into.data() + 8 * i, &sum, sizeof sum);
    }
}

std::vector<std::byte> NumberedCalls::numbers(std::size_t member, std::size_t bytes_at_most) const {
    std::vector<std::byte> data(std::min(numbers_bytes(), bytes_at_most));
    const std::uint64_t call = count(member) + 1;
    if (8 * member < data.size()) std::memcpy(data.data() + 8 * member, &call, sizeof call);
    return data;
}

void NumberedCalls::on_call(EpochWatch& watch, std::size_t member, const Accepted& call,
                            Instant now) {
    watch.require(!is_pending(member), "I5", names_[member] + " may call twice");
    calls_[member].push_back({.bytes = call.bytes});
    pending_[member] = {.number = count(member), .called_at = now, .longest = call.longest};
}

void NumberedCalls::on_leave(std::size_t member, eh::Incarnation incarnation) {
    left_.emplace(member, incarnation);
}

void NumberedCalls::look(EpochWatch& watch, std::size_t member, Duration frozen,
                         Instant now) const {
    const Pending& pending = pending_[member];
    if (pending.number == 0) return;
    const Duration waited = now - pending.called_at - frozen;
    watch.require(waited <= pending.longest + kLate, "I6",
                  names_[member] + " waits for " + std::to_string(waited.count()) + " ns");
}

void NumberedCalls::on_answer(EpochWatch& watch, std::size_t member,
                              const eh::peers::Answer& answer, const Answered& how, Instant now) {
    watch.require(is_pending(member), "I5", names_[member] + " is answered without a call");
    look(watch, member, how.frozen, now);
    if (answer.epoch && is_pending(member)) {
        check_result(watch, member, answer, how);
        calls_[member][pending_[member].number - 1].epoch = *answer.epoch;
    }
    pending_[member] = {};
}

void NumberedCalls::check_result(EpochWatch& watch, std::size_t member,
                                 const eh::peers::Answer& answer, const Answered& how) {
    const std::uint64_t pending = pending_[member].number;
    const std::string who = names_[member] + " in epoch " + std::to_string(*answer.epoch);
    const eh::CommittedView* const of = watch.view(answer.view);
    if (of == nullptr) return;
    const eh::CommittedView& view = *of;
    watch.require(how.numbers.size() <= calls_[member][pending - 1].bytes, "I9", who);

    std::size_t shortest = SIZE_MAX;
    bool sees_all = true;
    for (std::size_t i = 0; i < names_.size(); ++i) {
        const auto in_roster = view.find(names_[i]);
        if (8 * i >= how.numbers.size()) {
            sees_all = false;
            continue;
        }
        const std::uint64_t call = number_at(how.numbers, i);
        const std::string whose = who + " of " + names_[i];
        watch.require((call & kTwice) == 0, "I3", whose + " twice");
        if (!watch.broken().empty()) return;
        if (call == 0) {
            if (!in_roster || !view.at(*in_roster).takes_part) continue;
            watch.require(left_.contains({i, view.at(*in_roster).incarnation}), "I3",
                          whose + " is missing");
            continue;
        }
        watch.require(in_roster.has_value(), "I8", whose + " who is no member");
        watch.require(call <= count(i), "I3", whose);
        if (!watch.broken().empty()) return;
        const Made& made = calls_[i][call - 1];
        // A root that was replaced may still begin an epoch alone, with a lower number.
        watch.require(made.epoch == 0 || made.epoch >= *answer.epoch, "I4",
                      whose + " who has not called since epoch " + std::to_string(made.epoch));
        shortest = std::min(shortest, made.bytes);
        if (i == member) watch.require(call == pending, "I3", whose + " has another call");
        // The result may contain a call that was answered with an error, but not a call that was in
        // an earlier epoch.
        const Identity identity{member, how.incarnation};
        watch.require(seen_.emplace(Call{i, call}, identity).second, "I3b", whose + " again");
    }
    if (sees_all) {
        ++whole_results_;
        watch.require(how.numbers.size() == shortest, "I3", who + " has another length");
    }
    // Whoever is in a later view that has begun epochs is beyond this one.
    const auto& epochs = watch.epochs();
    for (auto later = epochs.rbegin(); later != epochs.rend(); ++later) {
        if (later->second.view <= answer.view) break;
        const eh::CommittedView* const newer = watch.view(later->second.view);
        watch.require(newer == nullptr || !newer->find(names_[member], how.incarnation), "I7",
                      who + " of an old view");
    }
}

std::uint64_t NumberedCalls::fingerprint() const {
    std::uint64_t hash = 1;
    for (const auto& calls : calls_) hash = core::mix(hash, calls.size());
    for (const Pending& each : pending_) hash = core::mix(hash, each.number);
    for (const auto& [member, incarnation] : left_)
        hash = core::mix(hash, member * 97 + incarnation);
    return hash;
}

}  // namespace fopd::sim

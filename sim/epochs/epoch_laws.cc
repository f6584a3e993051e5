#include "sim/epochs/epoch_laws.h"

#include <algorithm>

#include "core/random.h"

namespace fopd::sim {

namespace {

std::vector<std::string> names_of(std::size_t members) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < members; ++i) names.push_back(EpochLaws::name_of(i));
    return names;
}

}  // namespace

EpochLaws::EpochLaws(std::size_t members, std::size_t fanout, Duration watchdog)
    : members_(members),
      watchdog_(watchdog),
      calls_(names_of(members)),
      states_(names_of(members), fanout) {}

eh::EpochRules EpochLaws::rules(Duration timeout) {
    return {.timeout = timeout, .combine = NumberedCalls::combine, .granule = 8};
}

std::string EpochLaws::name_of(std::size_t member) {
    return "m" + std::to_string(member);
}

// -- calls --

std::vector<std::byte> EpochLaws::contribution(std::size_t member,
                                               std::size_t bytes_at_most) const {
    auto data = calls_.numbers(member, bytes_at_most);
    // Zeros behind the numbers, so that the calls for one epoch have different lengths.
    const std::size_t zeros = 8 * ((calls_.count(member) + member) % 4);
    data.resize(std::min(data.size() + zeros, bytes_at_most));
    return data;
}

void EpochLaws::on_call(std::size_t member, std::size_t bytes, Instant now) {
    calls_.on_call(watch_, member, {.bytes = bytes, .longest = watchdog_}, now);
}

void EpochLaws::on_leave(std::size_t member, const eh::peers::Member& state) {
    calls_.on_leave(member, state.incarnation());
}

void EpochLaws::on_crash(std::size_t member) {
    calls_.on_crash(member);
    states_.on_crash(member);
}

void EpochLaws::on_answer(std::size_t member, const eh::peers::Member& state,
                          const eh::peers::Answer& answer, Duration frozen, Instant now) {
    if (answer.epoch) watch_.on_epoch(name_of(member), answer);
    calls_.on_answer(watch_, member, answer,
                     {.incarnation = state.incarnation(), .numbers = answer.data, .frozen = frozen},
                     now);
}

// -- views --

void EpochLaws::on_views_lost() {
    watch_.on_views_lost();
    states_.on_views_lost();
}

void EpochLaws::on_step(std::size_t member, const eh::peers::Member& state) {
    watch_.require(state.is_pending() == calls_.is_pending(member), "I5",
                   name_of(member) + " lost its call");
    states_.on_step(watch_, member, state);
}

bool EpochLaws::has_seen(std::size_t member, const eh::peers::Member& state) const {
    return state.is_pending() == calls_.is_pending(member) && states_.has_seen(member, state);
}

std::uint64_t EpochLaws::fingerprint() const {
    std::uint64_t hash = calls_.fingerprint();
    for (std::size_t i = 0; i < members_; ++i)
        hash = core::mix(hash, static_cast<std::uint64_t>(watch_.newest(name_of(i))));
    for (const auto& [epoch, of] : watch_.epochs()) {
        hash = core::mix(hash, static_cast<std::uint64_t>(epoch));
        hash = core::mix(hash, of.view);
    }
    hash = core::mix(hash, states_.fingerprint());
    return core::mix(hash, history().size());
}

}  // namespace fopd::sim

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "eh/peers/member.h"
#include "sim/epochs/epoch_watch.h"
#include "sim/epochs/member_states.h"
#include "sim/epochs/numbered_calls.h"

namespace fopd::sim {

// The invariants of epochs, checked against everything that the members of a world do. Member i is
// called "m<i>". Contributions are the numbers of calls. A value, as Member is.
class EpochLaws {
public:
    EpochLaws(std::size_t members, std::size_t fanout, Duration watchdog);

    // The rules under which contributions are combined.
    static eh::EpochRules rules(Duration timeout);
    static std::string name_of(std::size_t member);

    // A call that was accepted; its contribution has as many bytes.
    std::vector<std::byte> contribution(std::size_t member, std::size_t bytes_at_most) const;
    void on_call(std::size_t member, std::size_t bytes, Instant now);
    void on_leave(std::size_t member, const eh::peers::Member& state);
    // `frozen`: how long the process did not run since the call.
    void on_answer(std::size_t member, const eh::peers::Member& state,
                   const eh::peers::Answer& answer, Duration frozen, Instant now);
    void on_crash(std::size_t member);
    void on_commit(const eh::ViewHandle& view) { watch_.on_commit(view); }
    // The numbers of views begin again, those of epochs do not.
    void on_views_lost();
    // After each step of a member.
    void on_step(std::size_t member, const eh::peers::Member& state);

    // Something else that must not be.
    void fail(const std::string& how) { watch_.require(false, "world", how); }
    // The first law that was broken, and how; empty: none.
    const std::string& broken() const { return watch_.broken(); }
    const std::vector<eh::ViewHandle>& history() const { return watch_.views(); }
    std::uint64_t epochs() const { return watch_.epochs().size(); }
    eh::EpochNumber newest() const { return watch_.newest(); }
    std::uint64_t fingerprint() const;

private:
    std::size_t members_;
    Duration watchdog_;
    EpochWatch watch_;
    NumberedCalls calls_;
    MemberStates states_;
};

}  // namespace fopd::sim

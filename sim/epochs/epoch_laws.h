#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "eh/peers/member.h"
#include "sim/epochs/epoch_watch.h"
#include "sim/epochs/member_states.h"
#include "sim/epochs/numbered_calls.h"

namespace fopd::sim {

// Checks the invariants of epochs against everything that the members of a simulated world do.
// Member i has the name "m<i>". Each call contributes its number, so that the data of an epoch show
// which calls it has. A value: it can be copied together with the members.
class EpochLaws {
public:
    EpochLaws(std::size_t members, std::size_t fanout, Duration watchdog);

    // The rules under which contributions are combined.
    static eh::EpochRules rules(Duration timeout);
    static std::string name_of(std::size_t member);

    // The contribution of the member's next call, at most so long. Those of different calls have
    // different lengths, as far as there is room. If the call is accepted, on_call() follows with
    // the size of the contribution.
    std::vector<std::byte> contribution(std::size_t member, std::size_t bytes_at_most) const;
    void on_call(std::size_t member, std::size_t bytes, Instant now);
    void on_leave(std::size_t member, const eh::peers::Member& state);
    // `frozen`: for how long the process has stood still since the call.
    void on_answer(std::size_t member, const eh::peers::Member& state,
                   const eh::peers::Answer& answer, Duration frozen, Instant now);
    void on_crash(std::size_t member);
    void on_commit(const eh::ViewHandle& view) { watch_.on_commit(view); }
    // The store has lost its view: views are numbered from 1 again, and epochs go on with higher
    // numbers.
    void on_views_lost();
    // Called after each step of a member. It may be left out if has_seen().
    void on_step(std::size_t member, const eh::peers::Member& state);
    // Whether on_step() would find nothing wrong and note nothing new.
    bool has_seen(std::size_t member, const eh::peers::Member& state) const;

    // Whether a call of the member is not answered yet.
    bool is_pending(std::size_t member) const { return calls_.is_pending(member); }

    // Notes a broken law that the world has seen itself.
    void fail(std::string_view law, const std::string& how) { watch_.require(false, law, how); }
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

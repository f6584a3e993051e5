#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/time.h"
#include "eh/peers/member.h"
#include "sim/epochs/epoch_watch.h"

namespace fopd::sim {

// The calls of members for epochs, and the laws of their answers. A contribution is an array with a
// number of 8 bytes for each member. The contributor's number says which of its calls this is; the
// others are 0. So a combined result shows which calls it contains. Members are identified by their
// index. A value: a copy continues independently.
class NumberedCalls {
public:
    explicit NumberedCalls(std::vector<std::string> names);

    // Numbers at equal offsets are added. A number that is in the result twice shows.
    static void combine(std::span<std::byte> into, std::span<const std::byte> one,
                        std::span<const std::byte> other);
    // The numbers of the member's next call, as many as fit.
    std::vector<std::byte> numbers(std::size_t member, std::size_t bytes_at_most) const;
    std::size_t numbers_bytes() const { return 8 * names_.size(); }

    // A call was accepted, whose contribution has so many bytes of numbers. It is to be answered
    // within `longest`.
    struct Accepted {
        std::size_t bytes = 0;
        Duration longest{};
    };
    void on_call(EpochWatch& watch, std::size_t member, const Accepted& call, Instant now);
    // The member has left, and may be missing in results from now on.
    void on_leave(std::size_t member, eh::Incarnation incarnation);
    // `numbers` are those of the result, if there is one. `frozen` does not count as time that the
    // call took: its process did not run.
    struct Answered {
        eh::Incarnation incarnation = 0;
        std::span<const std::byte> numbers{};
        Duration frozen{};
    };
    // REQUIRES: the watch has been told of the epoch.
    void on_answer(EpochWatch& watch, std::size_t member, const eh::peers::Answer& answer,
                   const Answered& how, Instant now);
    // The process has ended, and its call with it.
    void on_crash(std::size_t member) { pending_[member] = {}; }
    // A call that is not answered yet must not be late.
    void look(EpochWatch& watch, std::size_t member, Duration frozen, Instant now) const;

    std::size_t count(std::size_t member) const { return calls_[member].size(); }  // So far.
    bool is_pending(std::size_t member) const { return pending_[member].number != 0; }
    // REQUIRES: is_pending().
    Instant called_at(std::size_t member) const { return pending_[member].called_at; }
    // Results that had the numbers of all members.
    std::uint64_t whole_results() const { return whole_results_; }
    std::uint64_t fingerprint() const;

private:
    using Identity = std::pair<std::size_t, eh::Incarnation>;
    struct Call {
        std::size_t member = 0;
        std::uint64_t number = 0;
        auto operator<=>(const Call&) const = default;
    };
    struct Made {
        std::size_t bytes = 0;
        eh::EpochNumber epoch = 0;  // That answered it; 0: none so far, or an error.
    };
    struct Pending {
        std::uint64_t number = 0;  // Among this member's; 0: no call is pending.
        Instant called_at{};
        Duration longest{};
    };

    void check_result(EpochWatch& watch, std::size_t member, const eh::peers::Answer& answer,
                      const Answered& how);

    std::vector<std::string> names_;
    std::vector<Pending> pending_;          // By member.
    std::vector<std::vector<Made>> calls_;  // By member. Call n is at n - 1.
    std::set<Identity> left_;
    std::set<std::pair<Call, Identity>> seen_;  // Contributions, and the members that got them.
    std::uint64_t whole_results_ = 0;
};

}  // namespace fopd::sim

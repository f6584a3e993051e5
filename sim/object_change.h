#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <span>

#include "core/random.h"
#include "fop/range.h"

namespace fopd::sim {

// Counts what clients and faults do, in the order in which it happens.
using Moment = std::uint64_t;
inline constexpr Moment kNotYet = std::numeric_limits<Moment>::max();

// The change of objects by one fop, and what its client knows about it. The effect of an
// acknowledged change is certain; an unacknowledged change may take effect at any time or never.
struct ObjectChange {
    enum class State : std::uint8_t {
        kUnderWay,
        kDone,
        kRefused,  // The change has had no effect, and will have none.
        kUnknown,
    };

    std::uint64_t number = 0;  // Names its bytes.
    std::uint32_t life = 0;    // Of the client.
    Moment begun = 0;
    Moment ended = kNotYet;
    // From then on the change is visible to all clients, and no fault of the server undoes it.
    Moment sure = kNotYet;
    // After that the change cannot take effect any more, or again.
    Moment over = kNotYet;
    State state = State::kUnderWay;
    bool buffered = false;
    // Buffered, and lost by the server since: its client writes it again where nobody else has
    // changed anything, or is told that it is lost.
    bool lost = false;
    bool was_lost = false;  // Stays true if the change came back.
    // So it was told, of all or some of it: nobody can say what of it there is.
    bool told_lost = false;
    std::uint32_t server_life = 0;  // In which it began.

    // The bytes it writes; zeros, where it makes a hole or cuts the end off.
    fop::Range range{};
    bool zeros = false;
    bool placed = true;  // Not so for an append before anybody knows where it lies.

    bool may_show() const { return state != State::kRefused; }
    // Byte `index` of what it writes; never zero.
    std::byte byte_at(std::uint64_t index) const {
        const std::uint64_t word = core::mix(number, index / 8);
        const auto byte = static_cast<std::uint8_t>(word >> index % 8 * 8);
        return static_cast<std::byte>(byte == 0 ? 0x5a : byte);
    }
    void fill(std::span<std::byte> bytes) const {
        for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = byte_at(i);
    }
};

// Somebody looks at something between two moments.
struct ObjectLook {
    std::uint32_t life = 0;
    Moment begun = 0;
    // What it shows in one place has happened, and shows in all.
    std::set<const ObjectChange*> witnessed{};
};

// Whether it has happened when somebody looks. A client sees what it has written, until it is told
// that this is lost. What is written again comes in pieces.
inline bool has_happened(const ObjectChange& change, const ObjectLook& look) {
    if (change.told_lost) return false;
    const bool own = change.life == look.life && change.state == ObjectChange::State::kDone;
    return change.sure < look.begun || (own && change.ended < look.begun) ||
           (!change.lost && look.witnessed.contains(&change));
}

// Whether nothing of `first` can come after `second`: what was lost does not come again where
// others have changed something since. What a client has changed itself it does not write again,
// unless it does not know whether it has.
inline bool comes_before(const ObjectChange& first, const ObjectChange& second) {
    const bool is_known = second.state == ObjectChange::State::kDone;
    if (first.lost && first.life == second.life && !is_known) return false;
    return first.over < second.begun;
}

}  // namespace fopd::sim

#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <span>

#include "core/byte_order.h"
#include "core/random.h"
#include "fop/range.h"

namespace fopd::sim {

// A counter of the events of clients and faults, in their order.
using Moment = std::uint64_t;
inline constexpr Moment kNotYet = std::numeric_limits<Moment>::max();

// The change of objects by one fop, and what its client knows about it. The effect of an
// acknowledged change is certain; an unacknowledged change may take effect at any time or never.
struct BookedChange {
    enum class State : std::uint8_t {
        kUnderWay,
        kDone,
        kRefused,  // The change has had no effect, and will have none.
        kUnknown,
    };

    std::uint64_t number = 0;  // Determines its bytes.
    std::uint32_t life = 0;    // The client's life.
    Moment begun = 0;
    Moment ended = kNotYet;
    // From then on the change is visible to all clients, and no fault of the server undoes it.
    Moment sure = kNotYet;
    // After that the change cannot take effect any more, or again.
    Moment over = kNotYet;
    State state = State::kUnderWay;
    bool buffered = false;
    // A buffered change that the server has lost since: its client writes it again if no other
    // client has changed the bytes, or is told that it is lost.
    bool lost = false;
    bool was_lost = false;  // Stays true if the change came back.
    // The client was told that the change, or part of it, is lost: how much of it exists is
    // unknown.
    bool told_lost = false;
    std::uint32_t server_life = 0;  // The server's life in which it began.

    // The range it writes, or zeroes by a hole or a truncation.
    fop::Range range{};
    bool zeros = false;
    bool placed = true;  // False for an append whose offset is unknown.

    bool may_show() const { return state != State::kRefused; }
    // Eight of the written bytes, from byte 8 * index on; none of them is zero.
    std::uint64_t word_at(std::uint64_t index) const {
        constexpr std::uint64_t kLowBits = 0x7f7f'7f7f'7f7f'7f7f;
        const std::uint64_t word = core::mix(number, index);
        // The highest bit of each byte that is zero.
        const std::uint64_t zero = ~(((word & kLowBits) + kLowBits) | word | kLowBits);
        return word | (zero >> 7) * 0x5a;
    }
    std::byte byte_at(std::uint64_t index) const {
        return static_cast<std::byte>(word_at(index / 8) >> index % 8 * 8);
    }
    void fill(std::span<std::byte> bytes) const {
        std::size_t at = 0;
        for (; bytes.size() - at >= 8; at += 8) {
            store_little(bytes.data() + at, word_at(at / 8));
        }
        for (; at < bytes.size(); ++at) bytes[at] = byte_at(at);
    }
    // Whether these are the written bytes from byte `index` on.
    bool has(std::uint64_t index, std::span<const std::byte> bytes) const {
        for (std::size_t at = 0; at < bytes.size();) {
            if ((index + at) % 8 == 0 && bytes.size() - at >= 8) {
                const auto word = load_little<std::uint64_t>(bytes.data() + at);
                if (word != word_at((index + at) / 8)) return false;
                at += 8;
            } else {
                if (bytes[at] != byte_at(index + at)) return false;
                ++at;
            }
        }
        return true;
    }
};

// An observation by a client between two moments.
struct ObjectLook {
    std::uint32_t life = 0;
    Moment begun = 0;
    // Changes that the observation has proved; they must then be visible everywhere.
    std::set<const BookedChange*> witnessed{};
};

// Whether the change has certainly taken effect at the time of the look. A client sees its own
// writes, until it is told that they are lost. A lost write that is repeated becomes visible in
// parts.
inline bool has_happened(const BookedChange& change, const ObjectLook& look) {
    if (change.told_lost) return false;
    const bool own = change.life == look.life && change.state == BookedChange::State::kDone;
    return change.sure < look.begun || (own && change.ended < look.begun) ||
           (!change.lost && look.witnessed.contains(&change));
}

// Whether no part of `first` can take effect after `second`: a lost write is not repeated where
// other clients have changed the bytes since. A client does not repeat it over its own later change
// either, unless the outcome of that change is unknown to it.
inline bool comes_before(const BookedChange& first, const BookedChange& second) {
    const bool is_known = second.state == BookedChange::State::kDone;
    if (first.lost && first.life == second.life && !is_known) return false;
    return first.over < second.begun;
}

}  // namespace fopd::sim

// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "client/object_call.h"
#include "client/slots.h"
#include "core/gate.h"

namespace fopd::client {

// A long range of one object, moved in pieces of ObjectClientOptions::fop_bytes, several of which
// are in flight at a time. Pieces end at multiples of their length, so they are whole blocks except
// at the ends of the range. A subclass moves one piece. Memory of the pieces is borrowed.
class Pieces {
public:
    // Moves all pieces. After a failure no more are begun, and those in flight are waited for: each
    // ends by the call's deadline or cancel source. May be called again.
    Task<Outcome<void>> move();

protected:
    Pieces(Slots& slots, fop::Range whole, Wait wait);
    ~Pieces() = default;
    Pieces(const Pieces&) = delete;
    Pieces& operator=(const Pieces&) = delete;

    virtual Task<Outcome<void>> move_piece(std::size_t index) = 0;

    fop::Range range_of(std::size_t index) const;
    // The memory of one piece, as a part of the memory of all.
    template <typename Span>
    Span part_of(Span all, std::size_t index) const {
        const fop::Range range = range_of(index);
        return all.subspan(range.offset - whole_.offset, range.length);
    }

    Slots& slots_;
    const fop::Range whole_;
    const Wait wait_;
    std::vector<std::uint64_t> results_;  // One for each piece; the subclass gives the meaning.

private:
    Task<void> move_some();

    std::size_t next_ = 0;
    std::optional<Problem> problem_;
};

}  // namespace fopd::client

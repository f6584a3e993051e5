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

// A long range of one object, moved in chunks of ObjectClientOptions::fop_bytes, with several in
// flight at a time. Chunks end at multiples of their length, so they are whole blocks except at the
// ends of the range. A subclass moves one chunk. The caller owns the memory of the chunks, and
// keeps it until move() has returned.
class Chunks {
public:
    // Moves all chunks. After a failure no more are begun, and those in flight are waited for: each
    // ends by the call's deadline or cancel source. May be called again.
    Task<Outcome<void>> move();

protected:
    Chunks(Slots& slots, fop::Range whole, Wait wait);
    ~Chunks() = default;
    Chunks(const Chunks&) = delete;
    Chunks& operator=(const Chunks&) = delete;

    virtual Task<Outcome<void>> move_chunk(std::size_t index) = 0;

    fop::Range range_of(std::size_t index) const;
    // The memory of one chunk, as a part of the memory of all.
    template <typename Span>
    Span memory_of(Span all, std::size_t index) const {
        const fop::Range range = range_of(index);
        return all.subspan(range.offset - whole_.offset, range.length);
    }

    Slots& slots_;
    const fop::Range whole_;
    const Wait wait_;
    std::vector<std::uint64_t> results_;  // One for each chunk; the subclass gives the meaning.

private:
    Task<void> move_some();

    std::size_t next_ = 0;
    std::optional<Problem> problem_;
};

}  // namespace fopd::client

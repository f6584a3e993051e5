// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "client/held_writes.h"
#include "client/object_call.h"
#include "client/slots.h"

namespace fopd::client {

struct NewObject {
    std::string name{};   // May be empty.
    std::string pool{};   // Empty: the server's default.
    std::string group{};  // Empty: the first group of the principal.
    std::uint16_t mode = 0640;
    bool no_replace = false;
    // Objects of the same collection are kept together on tape. Empty: the group.
    std::string collection{};
};

// Uploads of whole objects, which become visible when all of their bytes are durable.
//
// Parts are acknowledged as buffered: a caller that cannot send a part again calls keep() before it
// drops the bytes.
class Uploads {
public:
    Uploads(Slots& slots, HeldWrites& held) : slots_(slots), held_(held) {}
    Uploads(const Uploads&) = delete;
    Uploads& operator=(const Uploads&) = delete;

    // Uploads an object that is in memory.
    Task<Outcome<fop::Fid>> put(NewObject object, std::span<const std::byte> from, Wait wait);

    // The size is 0 if it is unknown.
    Task<Outcome<fop::Fid>> begin(NewObject object, std::uint64_t size_bytes, Wait wait);
    struct Part {
        fop::Fid fid{};
        std::uint64_t offset = 0;           // The beginning of a block.
        std::span<const std::byte> from{};  // Whole blocks, except at the end of the object.
    };
    // The receipt is for the whole part: the lowest incarnation and the highest sequence number of
    // its chunks.
    Task<Outcome<fop::Receipt>> write(Part part, Wait wait);
    // Makes a part durable. False: some of it may be lost.
    Task<Outcome<bool>> keep(fop::Receipt receipt, Wait wait);
    struct Committed {
        // False: the parts that were acknowledged in another incarnation than `incarnation` are
        // missing, and must be sent again.
        bool done = false;
        std::uint64_t incarnation = 0;
    };
    // REQUIRES: `size_bytes` is the end of a part that was given to write().
    Task<Outcome<Committed>> commit(fop::Fid fid, std::uint64_t size_bytes, Wait wait);
    // Discards the upload and frees its space. The server also does so, later, if the upload is not
    // committed.
    Task<void> abort(fop::Fid fid);

private:
    struct Beginning {
        std::uint16_t slot = 0;
        const NewObject* object = nullptr;
        std::uint64_t size_bytes = 0;
    };
    Task<Outcome<fop::Fid>> begin_at(Beginning beginning, Wait wait);
    Task<Outcome<fop::Fid>> put_at(Beginning beginning, std::span<const std::byte> from, Wait wait);

    Slots& slots_;
    HeldWrites& held_;
};

}  // namespace fopd::client

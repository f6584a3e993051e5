#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/result.h"
#include "store/fid.h"
#include "store/index.h"
#include "store/object.h"
#include "store/record.h"

namespace fopd::objects {

// The stored form of the reply to a fop that must not run twice; docs/formats/reply.md has the
// bytes. The receipt is left out: when a stored reply is sent, the change has long been durable.
struct RecordedReply {
    std::uint16_t type = 0;  // The number of the fop's type.
    store::Fid fid{};        // The created object; zero if the request names the object.
    std::uint64_t version = 0;
    std::uint64_t size_bytes = 0;
    std::uint64_t offset = 0;

    friend bool operator==(const RecordedReply&, const RecordedReply&) = default;
};

inline constexpr std::size_t kRecordedReplyBytesMax = 2 + 1 + 16 + 3 * 8;

// Returns the part of `into` that was written.
store::Bytes write_recorded_reply(const RecordedReply& reply,
                                  std::span<std::byte, kRecordedReplyBytesMax> into);
// kCorrupt if the bytes are not a recorded reply.
Result<RecordedReply> read_recorded_reply(store::Bytes bytes);

// For one change of an object in place and the reply to it.
inline constexpr std::size_t kReplyRecordBytesMax =
    store::reply_record_bytes(kRecordedReplyBytesMax);

}  // namespace fopd::objects

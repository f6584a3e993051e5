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

// What was answered to a fop that must not run twice, as the store keeps it:
// docs/formats/reply.md has the bytes. The receipt is left out: when it is asked for, all of it has
// long been durable.
struct RecordedReply {
    std::uint16_t type = 0;  // The number of the fop's type.
    store::Fid fid{};        // Of what it has made; zero where the request says it.
    std::uint64_t version = 0;
    std::uint64_t size_bytes = 0;
    std::uint64_t offset = 0;

    friend bool operator==(const RecordedReply&, const RecordedReply&) = default;
};

inline constexpr std::size_t kRecordedReplyBytesMax = 2 + 1 + 16 + 3 * 8;

// A part of `into`.
store::Bytes write_recorded_reply(const RecordedReply& reply,
                                  std::span<std::byte, kRecordedReplyBytesMax> into);
// kCorrupt for what is none.
Result<RecordedReply> read_recorded_reply(store::Bytes bytes);

// The records of a change of one object in place, and of its reply.
inline constexpr std::size_t kReplyRecordBytesMax =
    store::reply_record_bytes(kRecordedReplyBytesMax);

}  // namespace fopd::objects

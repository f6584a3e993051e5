#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/result.h"
#include "fop/bodies.h"
#include "store/fid.h"
#include "store/index.h"
#include "store/object.h"

namespace fopd::reqh {

// What was answered to a fop that must not run twice, as the store keeps it:
// docs/formats/reply.md has the bytes. The receipt is left out: when it is asked for, all of it has
// long been durable.
struct RecordedReply {
    std::uint16_t type = 0;  // The number of the fop's type.
    store::Fid fid{};
    std::uint64_t version = 0;
    std::uint64_t size_bytes = 0;
    std::uint64_t offset = 0;

    friend bool operator==(const RecordedReply&, const RecordedReply&) = default;
};

// Whose request it is. A client's own number is no secret: whoever else says it asks for something
// of his own.
store::ReplyKey reply_key(std::span<const std::byte, 16> client, std::string_view principal,
                          std::uint64_t number);

inline constexpr std::size_t kRecordedReplyBytes = 2 + 16 + 3 * 8;

std::array<std::byte, kRecordedReplyBytes> write_recorded_reply(const RecordedReply& reply);
// kCorrupt for what is none.
Result<RecordedReply> read_recorded_reply(store::Bytes bytes);

}  // namespace fopd::reqh

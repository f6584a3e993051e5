#include "reqh/reply_record.h"

#include <algorithm>

#include "fop/hash.h"
#include "store/little_endian.h"

namespace fopd::reqh {

namespace {

constexpr std::size_t kTypeAt = 0;
constexpr std::size_t kFidAt = 2;
constexpr std::size_t kVersionAt = 18;
constexpr std::size_t kSizeAt = 26;
constexpr std::size_t kOffsetAt = 34;

}  // namespace

store::ReplyKey reply_key(std::span<const std::byte, 16> client, std::string_view principal,
                          std::uint64_t number) {
    const fop::Hash whose = fop::hash({client, std::as_bytes(std::span(principal))});
    store::ReplyKey key{.request_number = number};
    std::copy_n(whose.begin(), key.client.bytes.size(), key.client.bytes.begin());
    return key;
}

std::array<std::byte, kRecordedReplyBytes> write_recorded_reply(const RecordedReply& reply) {
    std::array<std::byte, kRecordedReplyBytes> bytes{};
    store::put_little(bytes, kTypeAt, reply.type);
    store::put_little(bytes, kFidAt, reply.fid.high);
    store::put_little(bytes, kFidAt + 8, reply.fid.low);
    store::put_little(bytes, kVersionAt, reply.version);
    store::put_little(bytes, kSizeAt, reply.size_bytes);
    store::put_little(bytes, kOffsetAt, reply.offset);
    return bytes;
}

Result<RecordedReply> read_recorded_reply(store::Bytes bytes) {
    if (bytes.size() != kRecordedReplyBytes) {
        return std::unexpected(Error{.code = Errc::kCorrupt, .context = "a recorded reply"});
    }
    return RecordedReply{.type = store::get_little<std::uint16_t>(bytes, kTypeAt),
                         .fid = {.high = store::get_little<std::uint64_t>(bytes, kFidAt),
                                 .low = store::get_little<std::uint64_t>(bytes, kFidAt + 8)},
                         .version = store::get_little<std::uint64_t>(bytes, kVersionAt),
                         .size_bytes = store::get_little<std::uint64_t>(bytes, kSizeAt),
                         .offset = store::get_little<std::uint64_t>(bytes, kOffsetAt)};
}

}  // namespace fopd::reqh

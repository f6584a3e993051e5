#include "objects/reply_record.h"

#include "core/byte_order.h"
#include "store/corrupt.h"

namespace fopd::objects {

namespace {

constexpr std::size_t kWhichAt = 2;
constexpr std::size_t kPartsAt = 3;

// Flags of the fields that follow, in this order; fields that are zero are omitted.
enum Part : std::uint8_t { kFid = 1, kVersion = 2, kSize = 4, kOffset = 8, kAllParts = 15 };

// The size of the old form, which omitted no fields.
constexpr std::size_t kOldReplyBytes = 42;

RecordedReply read_old_reply(store::Bytes bytes) {
    return {.type = get_little<std::uint16_t>(bytes, 0),
            .fid = {.high = get_little<std::uint64_t>(bytes, 2),
                    .low = get_little<std::uint64_t>(bytes, 10)},
            .version = get_little<std::uint64_t>(bytes, 18),
            .size_bytes = get_little<std::uint64_t>(bytes, 26),
            .offset = get_little<std::uint64_t>(bytes, 34)};
}

}  // namespace

store::Bytes write_recorded_reply(const RecordedReply& reply,
                                  std::span<std::byte, kRecordedReplyBytesMax> into) {
    std::uint8_t which = 0;
    std::size_t end = kPartsAt;
    const auto put = [&](std::uint64_t value) {
        put_little(into, end, value);
        end += sizeof value;
    };
    const auto put_unless_zero = [&](Part part, std::uint64_t value) {
        if (value == 0) return;
        which |= part;
        put(value);
    };
    put_little(into, 0, reply.type);
    if (reply.fid != store::Fid{}) {
        which |= kFid;
        put(reply.fid.high);
        put(reply.fid.low);
    }
    put_unless_zero(kVersion, reply.version);
    put_unless_zero(kSize, reply.size_bytes);
    put_unless_zero(kOffset, reply.offset);
    into[kWhichAt] = static_cast<std::byte>(which);
    return into.first(end);
}

Result<RecordedReply> read_recorded_reply(store::Bytes bytes) {
    constexpr const char* kWhat = "a recorded reply";
    if (bytes.size() == kOldReplyBytes) return read_old_reply(bytes);
    if (bytes.size() < kPartsAt) return store::corrupt(kWhat);
    const auto which = std::to_integer<std::uint8_t>(bytes[kWhichAt]);
    RecordedReply reply{.type = get_little<std::uint16_t>(bytes, 0)};
    store::Bytes rest = bytes.subspan(kPartsAt);
    bool is_whole = which <= kAllParts;
    const auto take = [&](Part part, std::uint64_t& value) {
        if ((which & part) == 0) return;
        is_whole = is_whole && rest.size() >= sizeof value;
        if (!is_whole) return;
        value = get_little<std::uint64_t>(rest, 0);
        rest = rest.subspan(sizeof value);
    };
    take(kFid, reply.fid.high);
    take(kFid, reply.fid.low);
    take(kVersion, reply.version);
    take(kSize, reply.size_bytes);
    take(kOffset, reply.offset);
    if (!is_whole || !rest.empty()) return store::corrupt(kWhat);
    return reply;
}

}  // namespace fopd::objects

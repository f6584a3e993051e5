#include "store/schema.h"

#include <algorithm>

#include "core/byte_order.h"
#include "store/corrupt.h"
#include "store/object.h"

namespace fopd::store {

namespace {

// In version 2 the key is the kind, the client and the request's number, highest byte first; the
// value is the time at which the reply was made, and the reply.
constexpr std::size_t kOldKeyBytes = 25;
constexpr std::size_t kOldNumberAt = 17;
constexpr std::size_t kOldHeadBytes = 8;

bool is_of_reply(const Record& record) {
    const bool has_key = record.kind == RecordKind::kPut || record.kind == RecordKind::kForget;
    return has_key && record.key.front() == static_cast<std::byte>(KeyKind::kReply);
}

Result<void> put_reply_in_place(const Record& record, RecordWriter& into) {
    if (record.key.size() != kOldKeyBytes || record.value.size() < kOldHeadBytes ||
        record.value.size() > kOldHeadBytes + kReplyBytesMax) {
        return store::corrupt("a reply of an older version");
    }
    ReplyRecord reply{
        .made = Duration(static_cast<std::int64_t>(get_little<std::uint64_t>(record.value, 0))),
        .reply = record.value.subspan(kOldHeadBytes)};
    std::ranges::copy(record.key.subspan(1, reply.key.client.bytes.size()),
                      reply.key.client.bytes.begin());
    for (const std::byte each : record.key.subspan(kOldNumberAt)) {
        reply.key.request_number =
            reply.key.request_number << 8 | std::to_integer<std::uint64_t>(each);
    }
    ValueBuffer value;
    into.put(Key::reply(reply.key), write_reply(value, reply));
    return {};
}

}  // namespace

// Leaves out kForget records: the place may have another reply by now. A reply that therefore stays
// is forgotten when it is old enough.
Result<void> put_replies_in_places(Bytes records, RecordWriter& into) {
    RecordReader reader(records);
    for (;;) {
        const auto record = reader.next();
        if (!record) return std::unexpected(record.error());
        if (!record->has_value()) return {};
        if (!is_of_reply(**record)) {
            into.copy(reader.bytes());
        } else if ((*record)->kind == RecordKind::kPut) {
            const Result<void> put = put_reply_in_place(**record, into);
            if (!put) return put;
        }
    }
}

Result<void> copy_records(Bytes records, RecordWriter& into) {
    RecordReader reader(records);
    for (;;) {
        const auto record = reader.next();
        if (!record) return std::unexpected(record.error());
        if (!record->has_value()) return {};
        into.copy(reader.bytes());
    }
}

Result<SchemaUpgrade::Records> SchemaUpgrade::upgraded(std::uint32_t version, Records records) {
    if (version == 0 || version > schema_.version) {
        return std::unexpected(
            Error{.code = Errc::kUnsupported, .context = "records of an unknown version"});
    }
    for (; version < schema_.version; ++version) {
        RecordWriter& into = version % 2 == 0 ? even_ : odd_;
        into.clear();
        const Result<void> done = schema_.steps[version - 1](records.bytes, into);
        if (!done) return std::unexpected(done.error());
        records = {.bytes = into.bytes(), .count = into.count()};
    }
    return records;
}

}  // namespace fopd::store

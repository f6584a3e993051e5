#include "fop/message_writer.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "core/crc32c.h"
#include "core/ensure.h"
#include "fop/body_wire.h"
#include "fop/layout.h"

namespace fopd::fop {

namespace {

namespace flat = flatbuffers;
using FlatBuilder = flat::FlatBufferBuilder;

// Upper bounds of the bytes that FlatBuffers needs for each part, including alignment and the
// vtable. Too small a value would fail the tests with full buffers, because seal() checks the sum.
constexpr std::size_t kRecordBytesMax = 112;  // A Request or Reply without the data it refers to.
constexpr std::size_t kRootBytesMax = 96;
constexpr std::size_t kOffsetBytes = sizeof(flat::uoffset_t);  // In the root's list of records.

static_assert(kPrefixBytes + kMessageAlignment + 3 * list_bytes_max(kHeaderTextBytesMax) +
                  kRecordBytesMax + kBodyBytesMax + list_bytes_max(kTokenBytesMax) + kOffsetBytes +
                  kRootBytesMax <=
              kRequestOverheadMax);
static_assert(kPrefixBytes + kMessageAlignment + kRecordBytesMax + kBodyBytesMax +
                  list_bytes_max(kWordsBytesMax) + kOffsetBytes + kRootBytesMax <=
              kReplyOverheadMax);
// The ids may be in one list or in both.
static_assert(kPrefixBytes + list_bytes_max(kCancelsMax * sizeof(std::uint64_t)) +
                  list_bytes_max(0) + list_bytes_max(kWordsBytesMax) + kRecordBytesMax <=
              kControlBytesMax);

std::uint64_t to_us(Duration timeout) {
    ENSURE(timeout >= Duration::zero());
    return static_cast<std::uint64_t>(
        std::chrono::ceil<std::chrono::microseconds>(timeout).count());
}

// Truncates words that are too long: behind a word, or behind a character if the last word is very
// long.
std::string_view shortened(std::string_view words) {
    if (words.size() <= kWordsBytesMax) return words;
    const std::size_t blank = words.substr(0, kWordsBytesMax + 1).rfind(' ');
    if (blank != std::string_view::npos && blank > kWordsBytesMax / 2) {
        const std::size_t last = words.substr(0, blank).find_last_not_of(' ');
        return words.substr(0, last == std::string_view::npos ? 0 : last + 1);
    }
    std::size_t end = kWordsBytesMax;
    const auto continues = [&](std::size_t at) {
        return (static_cast<unsigned char>(words[at]) & 0xc0) == 0x80;
    };
    while (end > kWordsBytesMax - 3 && continues(end)) --end;
    return words.substr(0, end);
}

flat::Offset<flat::Vector<std::uint64_t>> ids(FlatBuilder& builder,
                                              std::span<const std::uint64_t> from) {
    if (from.empty()) return 0;
    return builder.CreateVector(from.data(), from.size());
}

std::optional<wire::TimeSpent> wire_times(const std::optional<TimeSpent>& times) {
    if (!times) return std::nullopt;
    return wire::TimeSpent(times->parts());
}

// The root's list of records.
template <typename Record>
flat::Offset<flat::Vector<flat::Offset<Record>>> records(FlatBuilder& builder,
                                                         std::span<const flat::uoffset_t> offsets) {
    std::array<flat::Offset<Record>, kFopsMax> list;
    std::ranges::copy(offsets, list.begin());
    return builder.CreateVector(list.data(), offsets.size());
}

}  // namespace

class MessageWriter::Builder {
public:
    void start(std::span<std::byte> buffer, MessageKind kind);
    void start_requests(std::span<std::byte> buffer, const RequestHeader& header);
    bool add(const Request& request);
    bool add(const Reply& reply);
    std::size_t count() const { return count_; }
    std::size_t seal(const PrefixFields& fields);
    std::size_t write_control(std::span<std::byte> buffer, const PrefixFields& fields,
                              const Control& control);

private:
    // Where a payload is in the message.
    struct WrittenPayload {
        std::uint32_t offset = 0;
        std::uint32_t bytes = 0;
        std::uint32_t crc = 0;
    };

    bool fits(std::size_t payload_bytes, std::size_t envelope_bytes) const;
    WrittenPayload put_payload(std::span<const std::byte> payload,
                               std::optional<std::uint32_t> crc);
    // Finishes the envelope with its root, and writes it and the prefix to the buffer.
    template <typename Root>
    std::size_t finish(flat::Offset<Root> root, const PrefixFields& fields);

    // 4 KiB is enough for most messages. It grows if necessary, and keeps its size.
    FlatBuilder builder_{4096};
    std::span<std::byte> buffer_;
    MessageKind kind_ = MessageKind::kHandshake;
    bool started_ = false;
    std::size_t payload_end_ = 0;
    std::size_t count_ = 0;
    std::array<flat::uoffset_t, kFopsMax> offsets_{};
    flat::Offset<flat::String> job_;
    flat::Offset<flat::String> pool_;
    flat::Offset<flat::String> user_;
    std::uint8_t priority_ = 0;
    bool wants_times_ = false;
};

void MessageWriter::Builder::start(std::span<std::byte> buffer, MessageKind kind) {
    ENSURE(buffer.size() <= UINT32_MAX);
    builder_.Clear();
    buffer_ = buffer;
    kind_ = kind;
    started_ = true;
    payload_end_ = kPrefixBytes;
    count_ = 0;
}

void MessageWriter::Builder::start_requests(std::span<std::byte> buffer,
                                            const RequestHeader& header) {
    ENSURE(buffer.size() >= kRequestOverheadMax);
    ENSURE(header.job.size() <= kHeaderTextBytesMax);
    ENSURE(header.pool.size() <= kHeaderTextBytesMax);
    ENSURE(header.user.size() <= kHeaderTextBytesMax);
    start(buffer, MessageKind::kRequests);
    job_ = wire_text(builder_, header.job);
    pool_ = wire_text(builder_, header.pool);
    user_ = wire_text(builder_, header.user);
    priority_ = header.priority;
    wants_times_ = header.wants_times;
}

bool MessageWriter::Builder::fits(std::size_t payload_bytes, std::size_t envelope_bytes) const {
    if (count_ == kFopsMax) return false;
    const std::size_t others =
        aligned(payload_end_) + builder_.GetSize() + kRootBytesMax + (count_ + 1) * kOffsetBytes;
    // Compared separately, so that no sum of the caller's lengths overflows.
    if (others + envelope_bytes > buffer_.size()) return false;
    const std::size_t left = buffer_.size() - others - envelope_bytes;
    return payload_bytes <= left && aligned(payload_bytes) <= left;
}

MessageWriter::Builder::WrittenPayload MessageWriter::Builder::put_payload(
    std::span<const std::byte> payload, std::optional<std::uint32_t> crc) {
    if (payload.empty()) return {};
    const std::size_t start = aligned(payload_end_);
    std::memset(buffer_.data() + payload_end_, 0, start - payload_end_);
    std::memcpy(buffer_.data() + start, payload.data(), payload.size());
    payload_end_ = start + payload.size();
    return {.offset = static_cast<std::uint32_t>(start),
            .bytes = static_cast<std::uint32_t>(payload.size()),
            .crc = crc ? *crc : core::crc32c(buffer_.subspan(start, payload.size()))};
}

bool MessageWriter::Builder::add(const Request& request) {
    ENSURE(started_ && kind_ == MessageKind::kRequests);
    ENSURE(request.token.size() <= kTokenBytesMax);
    const std::uint64_t timeout_us = to_us(request.timeout);
    if (!fits(request.payload.size(), kRecordBytesMax + kBodyBytesMax +
                                          borrowed_wire_bytes_max(request.body) +
                                          list_bytes_max(request.token.size()))) {
        return false;
    }
    const WrittenPayload payload = put_payload(request.payload, request.payload_crc);
    const auto token = wire_bytes(builder_, request.token);
    const auto table = write_body(builder_, request.body);
    offsets_[count_++] =
        wire::CreateRequest(builder_, request.id, request.type, timeout_us, token, payload.offset,
                            payload.bytes, payload.crc,
                            static_cast<wire::RequestBody>(request.body.index()), table)
            .o;
    return true;
}

bool MessageWriter::Builder::add(const Reply& reply) {
    ENSURE(started_ && kind_ == MessageKind::kReplies);
    const std::string_view words = shortened(reply.words);
    if (!fits(reply.payload.size(), kRecordBytesMax + kBodyBytesMax +
                                        borrowed_wire_bytes_max(reply.body) +
                                        list_bytes_max(words.size()))) {
        return false;
    }
    const WrittenPayload payload = put_payload(reply.payload, reply.payload_crc);
    const auto why = wire_text(builder_, words);
    const auto table = write_body(builder_, reply.body);
    const auto times = wire_times(reply.times);
    offsets_[count_++] =
        wire::CreateReply(builder_, reply.id, static_cast<std::uint16_t>(reply.status), why,
                          payload.offset, payload.bytes, payload.crc,
                          static_cast<wire::ReplyBody>(reply.body.index()), table,
                          times ? &*times : nullptr)
            .o;
    return true;
}

template <typename Root>
std::size_t MessageWriter::Builder::finish(flat::Offset<Root> root, const PrefixFields& fields) {
    builder_.Finish(root);
    const std::size_t start = aligned(payload_end_);
    const std::size_t envelope_bytes = builder_.GetSize();
    ENSURE(start <= buffer_.size());
    ENSURE(envelope_bytes <= buffer_.size() - start);
    std::memset(buffer_.data() + payload_end_, 0, start - payload_end_);
    std::memcpy(buffer_.data() + start, builder_.GetBufferPointer(), envelope_bytes);
    write_prefix(buffer_.first(start + envelope_bytes), kind_, fields, envelope_bytes);
    started_ = false;
    return start + envelope_bytes;
}

std::size_t MessageWriter::Builder::seal(const PrefixFields& fields) {
    ENSURE(started_);
    ENSURE(count_ > 0);
    const auto offsets = std::span<const flat::uoffset_t>(offsets_).first(count_);
    count_ = 0;
    if (kind_ == MessageKind::kReplies) {
        const auto replies = records<wire::Reply>(builder_, offsets);
        return finish(wire::CreateReplies(builder_, replies), fields);
    }
    const auto fops = records<wire::Request>(builder_, offsets);
    return finish(wire::CreateRequests(builder_, job_, pool_, priority_, user_, fops, wants_times_),
                  fields);
}

std::size_t MessageWriter::Builder::write_control(std::span<std::byte> buffer,
                                                  const PrefixFields& fields,
                                                  const Control& control) {
    ENSURE(buffer.size() >= kControlBytesMax);
    ENSURE(control.cancel.size() + control.let_go.size() <= kCancelsMax);
    start(buffer, MessageKind::kControl);
    const auto cancel = ids(builder_, control.cancel);
    const auto let_go = ids(builder_, control.let_go);
    const auto words = wire_text(builder_, shortened(control.words));
    return finish(wire::CreateControl(builder_, control.ping, control.pong,
                                      control.surrender_messages, control.surrendered_messages,
                                      control.surrender_fops, control.surrendered_fops, cancel,
                                      static_cast<std::uint8_t>(control.bye), words, let_go),
                  fields);
}

MessageWriter::MessageWriter() : builder_(std::make_unique<Builder>()) {}
MessageWriter::~MessageWriter() = default;

void MessageWriter::start_requests(std::span<std::byte> buffer, const RequestHeader& header) {
    builder_->start_requests(buffer, header);
}
void MessageWriter::start_replies(std::span<std::byte> buffer) {
    ENSURE(buffer.size() >= kReplyOverheadMax);
    builder_->start(buffer, MessageKind::kReplies);
}
bool MessageWriter::add(const Request& request) {
    return builder_->add(request);
}
bool MessageWriter::add(const Reply& reply) {
    return builder_->add(reply);
}
std::size_t MessageWriter::count() const {
    return builder_->count();
}
std::size_t MessageWriter::seal(const PrefixFields& fields) {
    return builder_->seal(fields);
}
std::size_t MessageWriter::write_control(std::span<std::byte> buffer, const PrefixFields& fields,
                                         const Control& control) {
    return builder_->write_control(buffer, fields, control);
}

}  // namespace fopd::fop

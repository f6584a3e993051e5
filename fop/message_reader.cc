#include "fop/message_reader.h"

#include <algorithm>
#include <array>
#include <bit>

#include "core/crc32c.h"
#include "core/ensure.h"
#include "fop/body_check.h"
#include "fop/body_wire.h"
#include "fop/fop_type.h"
#include "fop/invalid.h"
#include "fop/layout.h"

namespace fopd::fop {

namespace {

namespace flat = flatbuffers;

static_assert(static_cast<std::size_t>(wire::RequestBody::MAX) == kFopTypes.size());
static_assert(static_cast<std::size_t>(wire::ReplyBody::MAX) == kFopTypes.size());

// The root, and each record with its body.
constexpr flat::uoffset_t kTablesMax = 1 + 2 * kFopsMax;
constexpr flat::uoffset_t kDepthMax = 3;

// The root of an envelope whose offsets all lie within it, otherwise nullptr.
template <typename Root>
const Root* verified_root(std::span<const std::byte> message) {
    const auto envelope = envelope_of(message);
    ENSURE(reinterpret_cast<std::uintptr_t>(envelope.data()) % kMessageAlignment == 0);
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(envelope.data());
    flat::Verifier::Options options;
    options.max_depth = kDepthMax;
    options.max_tables = kTablesMax;
    flat::Verifier verifier(bytes, envelope.size(), options);
    if (!verifier.VerifyBuffer<Root>(nullptr)) return nullptr;
    return flat::GetRoot<Root>(bytes);
}

template <typename Record>
std::span<const std::byte> payload_of(std::span<const std::byte> message, const Record& record) {
    return message.subspan(record.payload_offset(), record.payload_bytes());
}

std::optional<TimeSpent> read_times(const wire::TimeSpent* from) {
    if (from == nullptr) return std::nullopt;
    std::array<std::uint16_t, TimeSpent::kParts> parts;
    for (flat::uoffset_t i = 0; i < parts.size(); ++i) parts[i] = from->parts()->Get(i);
    return TimeSpent::from_parts(parts);
}

// Payloads follow each other in the order of the records, each at the first possible offset, and
// the envelope follows in the same way: so every byte is covered by the MAC or a checksum.
template <typename Record>
bool payloads_are_in_order(std::span<const std::byte> message,
                           const flat::Vector<flat::Offset<Record>>& records) {
    const std::size_t envelope_start = message.size() - envelope_of(message).size();
    std::size_t end = kPrefixBytes;
    const auto padding_is_zero = [&](std::size_t until) {
        return std::ranges::all_of(message.subspan(end, until - end),
                                   [](std::byte each) { return each == std::byte{0}; });
    };
    for (const Record* const record : records) {
        const std::size_t start = record->payload_offset();
        const std::size_t size_bytes = record->payload_bytes();
        if (size_bytes == 0) {
            if (start != 0) return false;
            continue;
        }
        if (start != aligned(end) || start > envelope_start ||
            size_bytes > envelope_start - start || !padding_is_zero(start)) {
            return false;
        }
        end = start + size_bytes;
    }
    return envelope_start == aligned(end) && padding_is_zero(envelope_start);
}

// The fault of a request that was read, apart from its body.
Status fault_of(const Request& request, const wire::Request& from) {
    const FopType* const type = find_fop_type(request.type);
    if (type == nullptr || from.body_type() > wire::RequestBody::MAX) return Status::kUnknownFop;
    const bool may_have_payload = request_may_carry(type->payload);
    if (static_cast<std::size_t>(from.body_type()) != body_index(*type) ||
        request.token.size() > kTokenBytesMax || (!may_have_payload && !request.payload.empty())) {
        return Status::kMalformed;
    }
    return Status::kDone;
}

// Numbers are returned as they are in the message, without a copy.
static_assert(std::endian::native == std::endian::little);
Result<std::span<const std::uint64_t>> read_ids(const flat::Vector<std::uint64_t>* from) {
    if (from == nullptr) return std::span<const std::uint64_t>();
    if (from->size() > kCancelsMax) return invalid("number of cancelled requests");
    // FlatBuffers does not verify the alignment.
    if (reinterpret_cast<std::uintptr_t>(from->Data()) % alignof(std::uint64_t) != 0) {
        return invalid("place of the cancelled requests");
    }
    return std::span(reinterpret_cast<const std::uint64_t*>(from->Data()), from->size());
}

Duration from_us(std::uint64_t timeout_us) {
    constexpr auto kMax = std::chrono::floor<std::chrono::microseconds>(Duration::max());
    if (timeout_us >= static_cast<std::uint64_t>(kMax.count())) return kMax;
    return std::chrono::microseconds(timeout_us);
}

}  // namespace

Result<RequestsView> read_requests(std::span<const std::byte> message) {
    const auto* const root = verified_root<wire::Requests>(message);
    if (root == nullptr) return invalid("envelope of requests");
    const auto* const fops = root->fops();
    if (fops == nullptr || fops->size() == 0 || fops->size() > kFopsMax) {
        return invalid("number of requests");
    }
    for (const auto* const string : {root->job(), root->pool(), root->user()}) {
        if (text_of(string).size() > kHeaderTextBytesMax) {
            return invalid("text in the header of requests");
        }
    }
    if (!payloads_are_in_order(message, *fops)) return invalid("payload of a request");
    return RequestsView(message, *root);
}

Result<RepliesView> read_replies(std::span<const std::byte> message) {
    const auto* const root = verified_root<wire::Replies>(message);
    if (root == nullptr) return invalid("envelope of replies");
    const auto* const replies = root->replies();
    if (replies == nullptr || replies->size() == 0 || replies->size() > kFopsMax) {
        return invalid("number of replies");
    }
    for (const wire::Reply* const reply : *replies) {
        if (text_of(reply->words()).size() > kWordsBytesMax) {
            return invalid("words of a reply");
        }
    }
    if (!payloads_are_in_order(message, *replies)) return invalid("payload of a reply");
    return RepliesView(message, *root);
}

Result<Control> read_control(std::span<const std::byte> message) {
    const auto* const root = verified_root<wire::Control>(message);
    if (root == nullptr) return invalid("envelope of a control message");
    if (envelope_of(message).size() != message.size() - kPrefixBytes) {
        return invalid("control message with a payload");
    }
    Control control{.ping = root->ping(),
                    .pong = root->pong(),
                    .surrender_messages = root->surrender_messages(),
                    .surrendered_messages = root->surrendered_messages(),
                    .surrender_fops = root->surrender_fops(),
                    .surrendered_fops = root->surrendered_fops(),
                    .words = text_of(root->words())};
    if (control.words.size() > kWordsBytesMax) {
        return invalid("words of a control message");
    }
    const auto cancel = read_ids(root->cancel());
    if (!cancel) return std::unexpected(cancel.error());
    control.cancel = *cancel;
    const auto let_go = read_ids(root->let_go());
    if (!let_go) return std::unexpected(let_go.error());
    control.let_go = *let_go;
    if (control.cancel.size() + control.let_go.size() > kCancelsMax) {
        return invalid("number of cancelled requests");
    }
    switch (root->bye()) {
        case static_cast<std::uint8_t>(Bye::kNone): break;
        case static_cast<std::uint8_t>(Bye::kDraining): control.bye = Bye::kDraining; break;
        default: control.bye = Bye::kOther;
    }
    return control;
}

RequestHeader RequestsView::header() const {
    return {.job = text_of(root_->job()),
            .pool = text_of(root_->pool()),
            .user = text_of(root_->user()),
            .priority = root_->priority(),
            .wants_times = root_->wants_times()};
}

std::size_t RequestsView::count() const {
    return root_->fops()->size();
}

Request RequestsView::operator[](std::size_t index) const {
    ENSURE(index < count());
    const wire::Request& from = *root_->fops()->Get(static_cast<flat::uoffset_t>(index));
    Request request{.id = from.id(),
                    .type = from.type(),
                    .timeout = from_us(from.timeout_us()),
                    .token = bytes_of(from.token()),
                    .payload = payload_of(message_, from),
                    .payload_crc = from.payload_crc()};
    request.fault = fault_of(request, from);
    if (request.fault != Status::kDone) return request;
    Result<void> sound;
    if (request.id == 0) {
        // Where requests are remembered by their numbers, it stands for none.
        sound = invalid("a request has no number");
    } else if (!read_body(from, request.body)) {
        sound = invalid("a part of the request is missing or has another type");
    } else {
        sound = check_request(request);
    }
    if (!sound) {
        request.fault = Status::kMalformed;
        request.fault_words = sound.error().context;
        request.body = {};
    }
    return request;
}

std::size_t RepliesView::count() const {
    return root_->replies()->size();
}

Reply RepliesView::operator[](std::size_t index) const {
    ENSURE(index < count());
    const wire::Reply& from = *root_->replies()->Get(static_cast<flat::uoffset_t>(index));
    return {.id = from.id(),
            .status = status_row(from.status()).status,
            .words = text_of(from.words()),
            .payload = payload_of(message_, from),
            .payload_crc = from.payload_crc(),
            .body = read_body(from),
            .times = read_times(from.times())};
}

bool payload_intact(const Request& request) {
    ENSURE(request.payload_crc.has_value());
    return core::crc32c(request.payload) == *request.payload_crc;
}

bool payload_intact(const Reply& reply) {
    ENSURE(reply.payload_crc.has_value());
    return core::crc32c(reply.payload) == *reply.payload_crc;
}

}  // namespace fopd::fop

#include "tests/fop/samples.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>

#include "core/ensure.h"
#include "fop/fop_type.h"
#include "fop/listing.h"
#include "fop/message_writer.h"
#include "fop/prefix.h"

namespace fopd::fop {

namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
    return std::as_bytes(std::span(text));
}

SealedDescriptor descriptor(unsigned first) {
    SealedDescriptor sealed;
    for (std::size_t i = 0; i < sealed.size(); ++i) sealed[i] = static_cast<std::byte>(first + i);
    return sealed;
}

constexpr Fid kFid{.high = 0x0007'0000'0000'0001, .low = 0x1122334455667788};

std::vector<std::byte> listing_of(const auto&... entries) {
    std::vector<std::byte> payload(256);
    ListingWriter writer(payload);
    const bool added = (writer.add(entries) && ...);
    ENSURE(added);
    payload.resize(writer.written().size());
    return payload;
}

const std::vector<std::byte>& slots_listing() {
    static const auto kMade = listing_of(
        SlotEntry{
            .slot = 7, .locality = 1, .in_default_pool = true, .free_bytes = 4096, .pool = "fast"},
        SlotEntry{.slot = 8, .state = SlotState::kMissing, .pool = "slow"});
    return kMade;
}

const std::vector<std::byte>& pools_listing() {
    static const auto kMade = listing_of(PoolEntry{.total_bytes = 1U << 30,
                                                   .used_bytes = 12288,
                                                   .free_bytes = 1U << 29,
                                                   .objects = 1,
                                                   .pool = "fast"});
    return kMade;
}

const std::vector<std::byte>& list_listing() {
    static const auto kMade = listing_of(
        ListEntry{.fid = kFid, .size_bytes = 8195, .changed_ns = 17, .name = "results/42"},
        ListEntry{.fid = {.high = 1, .low = 2}, .name = "\u00e9"});
    return kMade;
}

constexpr bool kHasSample = false;  // Of this type of fop: add one.

constexpr RequestHeader kHeader{.job = "sim-42", .pool = "scratch", .user = "ada", .priority = 3};
constexpr PrefixFields kFields{.session = 0x0102030405060708,
                               .sequence = 7,
                               .message_credits = 2,
                               .fop_credits = 5,
                               .acknowledged = 41};

std::vector<std::byte> requests(const RequestHeader& header, std::span<const Request> each) {
    std::vector<std::byte> buffer(16U << 10);
    MessageWriter writer;
    writer.start_requests(buffer, header);
    for (const Request& request : each) ENSURE(writer.add(request));
    buffer.resize(writer.seal(kFields));
    return buffer;
}

std::vector<std::byte> replies(std::span<const Reply> each) {
    std::vector<std::byte> buffer(16U << 10);
    MessageWriter writer;
    writer.start_replies(buffer);
    for (const Reply& reply : each) ENSURE(writer.add(reply));
    buffer.resize(writer.seal(kFields));
    return buffer;
}

std::vector<std::byte> control_message(const Control& control) {
    std::vector<std::byte> buffer(kControlBytesMax);
    MessageWriter writer;
    buffer.resize(writer.write_control(buffer, kFields, control));
    return buffer;
}

std::vector<std::byte> handshake_message() {
    std::vector<std::byte> buffer(512);
    buffer.resize(write_handshake(buffer, {.session = 9}, bytes_of("\x01hello")));
    return buffer;
}

}  // namespace

Request sample_request(std::uint16_t type) {
    Request request{.id = 40U + type, .type = type};
    switch (type) {
        case 1: request.body = Ping{}; return request;
        case 2:
            request.body = Echo{};
            request.timeout = 30s;
            request.token = bytes_of("a capability");
            request.payload = bytes_of("Hello, wire");
            return request;
        case 3:
            request.body =
                BulkEcho{.source = descriptor(1), .target = descriptor(101), .bytes = 1U << 20};
            request.timeout = 1500us;
            return request;
        default: break;
    }
    ENSURE(kHasSample);
    return request;
}

Reply sample_reply(std::uint16_t type) {
    Reply reply{.id = 40U + type};
    switch (type) {
        case 1: reply.body = PingReply{}; return reply;
        case 2:
            reply.body = EchoReply{};
            reply.payload = bytes_of("Hello, wire");
            return reply;
        case 3: reply.body = BulkEchoReply{.bytes = 1U << 20, .crc = 0xe3069283}; return reply;
        default: break;
    }
    ENSURE(kHasSample);
    return reply;
}

std::vector<SampleMessage> sample_messages() {
    std::vector<SampleMessage> samples;
    std::vector<Request> all_requests;
    std::vector<Reply> all_replies;
    for (const FopType& type : kFopTypes) {
        const auto& request = all_requests.emplace_back(sample_request(type.number));
        const auto& reply = all_replies.emplace_back(sample_reply(type.number));
        samples.push_back({"request_" + std::string(type.name), requests(kHeader, {&request, 1})});
        samples.push_back({"reply_" + std::string(type.name), replies({&reply, 1})});
    }
    // Payloads of lengths that leave padding of every kind behind them.
    for (std::size_t length = 1; length <= 9; ++length) {
        Request request = sample_request(2);
        request.payload = request.payload.first(length);
        all_requests.push_back(request);
        Reply reply = sample_reply(2);
        reply.payload = reply.payload.first(length);
        all_replies.push_back(reply);
    }
    all_replies.push_back(
        {.id = 99, .status = Status::kDenied, .words = "the right to write is missing"});
    samples.push_back({"requests_of_every_type", requests(kHeader, all_requests)});
    samples.push_back({"requests_without_a_header", requests({}, all_requests)});
    samples.push_back({"replies_of_every_type", replies(all_replies)});

    constexpr std::array<std::uint64_t, 3> kCancelled{41, 42, 1ULL << 40};
    samples.push_back({"control_of_nothing", control_message({})});
    samples.push_back({"control_of_everything", control_message({.ping = 11,
                                                                 .pong = 12,
                                                                 .surrender_messages = 1,
                                                                 .surrendered_messages = 2,
                                                                 .surrender_fops = 3,
                                                                 .surrendered_fops = 4,
                                                                 .cancel = kCancelled,
                                                                 .bye = Bye::kDraining,
                                                                 .words = "restarting"})});
    samples.push_back({"handshake", handshake_message()});
    return samples;
}

std::vector<std::byte> example_listing() {
    return list_listing();
}

std::vector<SampleMessage> sample_listings() {
    return {{"list", list_listing()}, {"slots", slots_listing()}, {"pools", pools_listing()}};
}

std::vector<std::byte> example_message() {
    const std::array each{sample_request(2), sample_request(1)};
    return requests(kHeader, each);
}

std::string hex_dump(std::span<const std::byte> bytes) {
    std::string dump;
    for (std::size_t at = 0; at < bytes.size(); at += 16) {
        std::array<char, 24> number{};
        std::string hex;
        std::string letters;
        for (const std::byte each :
             bytes.subspan(at, std::min<std::size_t>(16, bytes.size() - at))) {
            const auto value = static_cast<unsigned char>(each);
            std::snprintf(number.data(), number.size(), " %02x", value);
            hex += number.data();
            letters += value >= 0x20 && value < 0x7f ? static_cast<char>(value) : '.';
        }
        hex.resize(48, ' ');
        std::snprintf(number.data(), number.size(), "%08zx ", at);
        dump += number.data() + hex + "  |" + letters + "|\n";
    }
    return dump;
}

}  // namespace fopd::fop

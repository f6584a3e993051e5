#include "eh/peers/message.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <type_traits>
#include <utility>

#include "core/ensure.h"
#include "eh/peers/view_wire.h"

namespace fopd::eh::peers {

namespace {

constexpr std::uint8_t kVersion = 1;
constexpr std::uint8_t kBigEndian = 1;
constexpr std::size_t kChildrenMax = 1024;

template <typename Wire, typename Enum, typename Fields>
void choice(Wire& wire, Enum& value, Fields last) {
    if constexpr (Wire::kReads) {
        std::uint8_t number = 0;
        wire.number(number);
        if (number > static_cast<std::uint8_t>(last)) wire.fail();
        value = wire.ok() ? static_cast<Enum>(number) : Enum{};
    } else {
        wire.number(static_cast<std::uint8_t>(value));
    }
}

template <typename Wire, typename Rules>
void rules_fields(Wire& wire, Rules& rules) {
    wire.number(rules.hash);
    wire.number(rules.timeout_ns);
    wire.number(rules.grace_ns);
    wire.number(rules.root_silent_ns);
    wire.number(rules.fanout);
}

template <typename Wire, typename B>
void body_fields(Wire& wire, B& body) {
    using Kind = std::remove_const_t<B>;
    const auto number = [&](auto& value) { wire.number(value); };
    if constexpr (std::is_same_v<Kind, Ready>) {
        wire.number(body.count);
        wire.number(body.leavers);
        wire.number(body.waited_us);
        wire.data(body.data, kEpochBytesMax);
    } else if constexpr (std::is_same_v<Kind, First> || std::is_same_v<Kind, Closing>) {
        wire.number(body.waited_us);
    } else if constexpr (std::is_same_v<Kind, Start>) {
        wire.signed_number(body.epoch);
        wire.number(body.count);
        wire.data(body.data, kEpochBytesMax);
    } else if constexpr (std::is_same_v<Kind, StartAck>) {
        wire.flag(body.is_alone);
    } else if constexpr (std::is_same_v<Kind, Abort>) {
        wire.number(body.next_round);
    } else if constexpr (std::is_same_v<Kind, PollAck>) {
        choice(wire, body.state, PollState::kLeaving);
        wire.list(body.missing, kChildrenMax, number);
    } else if constexpr (std::is_same_v<Kind, Beat>) {
        wire.number(body.age_us);
    } else if constexpr (std::is_same_v<Kind, ViewNews>) {
        wire.number(body.difference.base);
        wire.number(body.difference.roster_hash);
        wire.list(body.difference.first, kRosterMax, number);
        wire.list(body.difference.removed, kRosterMax, number);
        wire.list(body.difference.added, kRosterMax,
                  [&](auto& entry) { entry_fields(wire, entry); });
        rest_fields(wire, body.difference.rest);
    } else if constexpr (std::is_same_v<Kind, ViewWant>) {
        wire.number(body.number);
        wire.number(body.offset);
    } else if constexpr (std::is_same_v<Kind, ViewPart>) {
        wire.number(body.number);
        wire.number(body.offset);
        wire.number(body.total);
        wire.data(body.bytes, kViewPartMax);
    } else if constexpr (std::is_same_v<Kind, Nack>) {
        wire.number(body.number);
        wire.flag(body.is_excluded);
        wire.flag(body.is_promised);
        wire.text(body.root, kMemberNameMax);
        wire.text(body.root_address, kMemberAddressMax);
    } else if constexpr (std::is_same_v<Kind, Join>) {
        wire.text(body.address, kMemberAddressMax);
        rules_fields(wire, body.rules);
        wire.signed_number(body.newest);
    } else if constexpr (std::is_same_v<Kind, Redirect>) {
        wire.text(body.root, kMemberNameMax);
        wire.text(body.root_address, kMemberAddressMax);
    } else if constexpr (std::is_same_v<Kind, Refuse>) {
        choice(wire, body.reason, RefuseReason::kSecondOfName);
        wire.number(body.incarnation);
        choice(wire, body.rule, UnlikeRule::kPolicies);
        wire.text(body.address, kMemberAddressMax);
    } else if constexpr (std::is_same_v<Kind, Promise>) {
        wire.text(body.address, kMemberAddressMax);
        rules_fields(wire, body.rules);
    } else if constexpr (std::is_same_v<Kind, PromiseAck>) {
        wire.flag(body.is_member);
        wire.flag(body.wants_join);
        wire.text(body.address, kMemberAddressMax);
        wire.number(body.waited_us);
        start_fields(wire, body.record);
    } else {
        static_assert(std::is_empty_v<Kind>);
    }
}

template <std::size_t kAt = 0>
bool read_body(WireReader& reader, std::uint8_t kind, Body& body) {
    if constexpr (kAt == std::variant_size_v<Body>) {
        return false;
    } else {
        if (kind != kAt) return read_body<kAt + 1>(reader, kind, body);
        body_fields(reader, body.emplace<kAt>());
        return true;
    }
}

constexpr std::array kNames{
    "ready",      "first", "closing", "start",    "start_ack", "abort",    "poll",
    "poll_ack",   "leave", "beat",    "ask",      "view_news", "view_ack", "view_want",
    "view_piece", "nack",  "join",    "redirect", "refuse",    "promise",  "promise_ack"};
static_assert(kNames.size() == std::variant_size_v<Body>);

}  // namespace

std::vector<std::byte> encode(const Message& message) {
    WireWriter writer;
    writer.number(kVersion);
    writer.number(static_cast<std::uint8_t>(message.body.index()));
    writer.number(static_cast<std::uint8_t>(message.is_foreign != kHostIsBig ? kBigEndian : 0));
    writer.number(std::uint8_t{0});
    writer.number(message.round);
    writer.number(message.view);
    writer.number(message.incarnation);
    std::visit([&](const auto& body) { body_fields(writer, body); }, message.body);
    std::vector<std::byte> bytes = writer.take();
    ENSURE(bytes.size() <= kMessageBytesMax);
    return bytes;
}

Result<Message> decode(std::span<const std::byte> bytes) {
    WireReader reader(bytes);
    std::uint8_t version = 0;
    std::uint8_t kind = 0;
    std::uint8_t flags = 0;
    std::uint8_t zero = 0;
    Message message;
    reader.number(version);
    reader.number(kind);
    reader.number(flags);
    reader.number(zero);
    reader.number(message.round);
    reader.number(message.view);
    reader.number(message.incarnation);
    message.is_foreign = (flags == kBigEndian) != kHostIsBig;
    const bool is_known = read_body(reader, kind, message.body);
    if (bytes.size() > kMessageBytesMax || !is_known || !reader.ok() || !reader.at_end() ||
        version != kVersion || flags > kBigEndian || zero != 0) {
        return std::unexpected(Error{.code = Errc::kCorrupt, .context = "not an epoch message"});
    }
    return message;
}

const char* name_of(const Body& body) {
    return kNames[body.index()];
}

std::uint64_t waited_us(Instant since, Instant now) {
    if (since == kNever || since >= now) return 0;
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(now - since).count());
}

Duration span_of(std::uint64_t us) {
    constexpr std::uint64_t kLongest = 3'600'000'000;
    return std::chrono::microseconds(std::min(us, kLongest));
}

}  // namespace fopd::eh::peers

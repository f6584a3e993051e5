// Goal: every length that a body tells or borrows has a limit, and beyond it the body is refused by
// whoever reads the message.
// Method: walk the bodies of all types. What a body is made of is found by the names of its parts,
// so that a body that is added with such a part is walked, too; docs/formats/limits.md lists them.
#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "fop/borrowed.h"
#include "fop/fop_type.h"
#include "fop/message_reader.h"
#include "fop/message_writer.h"
#include "fop/name.h"
#include "fop/prefix.h"
#include "tests/catch.h"
#include "tests/fop/samples.h"

namespace fopd::fop {

namespace {

std::vector<std::byte> sealed(MessageWriter& writer, std::vector<std::byte> buffer) {
    buffer.resize(writer.seal({}));
    REQUIRE(read_prefix(buffer).has_value());
    return buffer;
}

Status fault_of(const Request& request) {
    std::vector<std::byte> buffer(64U << 10);
    MessageWriter writer;
    writer.start_requests(buffer, {});
    REQUIRE(writer.add(request));
    const auto message = sealed(writer, std::move(buffer));
    return (*read_requests(message))[0].fault;
}

bool is_refused(const Reply& reply) {
    std::vector<std::byte> buffer(64U << 10);
    MessageWriter writer;
    writer.start_replies(buffer);
    REQUIRE(writer.add(reply));
    const auto message = sealed(writer, std::move(buffer));
    return std::holds_alternative<std::monostate>((*read_replies(message))[0].body);
}

// One more than there may be of each thing that is borrowed.
const std::string kLongText(kObjectNameBytesMax + 1, 'n');
const std::vector<Range> kManyRanges(kRangesMax + 1);
const std::vector<std::uint32_t> kManyChecksums(kChecksumsMax + 1);
const std::vector<Receipt> kManyReceipts(kReceiptsMax + 1);
const std::vector<Fid> kManyTickets(kTicketsMax + 1, Fid{.high = 1, .low = 2});
// Of bytes: states of tickets, and an epoch message.
const std::vector<std::uint8_t> kManyBytes(std::max<std::size_t>(kTicketsMax,
                                                                 kEpochMessageBytesMax) +
                                           1);

void exceed(std::string_view& part) {
    part = kLongText;
}
void exceed(List<Range>& part) {
    part = kManyRanges;
}
void exceed(List<std::uint32_t>& part) {
    part = kManyChecksums;
}
void exceed(List<Receipt>& part) {
    part = kManyReceipts;
}
void exceed(List<Fid>& part) {
    part = kManyTickets;
}
void exceed(List<std::uint8_t>& part) {
    part = kManyBytes;
}

// Calls `visit` with each number that says how long something is or where it lies, and with the
// most it may be.
template <typename Body, typename Visit>
void for_each_length(Body& body, Visit& visit) {
    if constexpr (std::is_same_v<Body, BulkEcho> || std::is_same_v<Body, BulkEchoReply>) {
        visit(body.bytes, kBulkEchoBytesMax);
    } else if constexpr (requires { body.bytes; }) {
        visit(body.bytes, kTransferBytesMax);
    }
    if constexpr (requires { body.length; }) visit(body.length, kTransferBytesMax);
    if constexpr (requires { body.size_bytes; }) visit(body.size_bytes, kOffsetMax);
    if constexpr (requires { body.allocated_bytes; }) visit(body.allocated_bytes, kOffsetMax);
    if constexpr (requires { body.offset; }) visit(body.offset, kOffsetMax);
    if constexpr (requires { body.pin_s; }) visit(body.pin_s, kPinSecondsMax);
    if constexpr (requires { body.blocks; }) visit(body.blocks, kOffsetMax / kBlockBytes);
    if constexpr (requires { body.range; }) {
        visit(body.range.offset, kOffsetMax);
        visit(body.range.length, kOffsetMax);
    }
    if constexpr (requires { body.changed; }) for_each_length(body.changed, visit);
    if constexpr (requires { body.attributes; }) for_each_length(body.attributes, visit);
}

// Calls `look` with the body as it is when one of its parts is beyond its limit, for each part.
template <typename Variant>
std::size_t with_each_part_exceeded(const Variant& body,
                                    const std::function<void(const Variant&)>& look) {
    std::size_t count = 0;
    for (bool found = true; found; count += found ? 1 : 0) {
        found = false;
        Variant changed = body;
        std::size_t at = 0;
        auto exceed_one = [&](auto& part) {
            if (at++ != count) return;
            exceed(part);
            found = true;
        };
        auto exceed_number = [&](std::uint64_t& number, std::uint64_t most) {
            if (at++ != count) return;
            number = most + 1;
            found = true;
        };
        std::visit(
            [&](auto& each) {
                for_each_borrowed(each, exceed_one);
                for_each_length(each, exceed_number);
            },
            changed);
        if (found) look(changed);
    }
    return count;
}

}  // namespace

TEST_CASE("fop limits: a request with a part beyond its limit is malformed", "[fop]") {
    std::size_t parts = 0;
    for (const FopType& type : kFopTypes) {
        Request request = sample_request(type.number);
        CAPTURE(type.name);
        REQUIRE(fault_of(request) == Status::kDone);
        parts += with_each_part_exceeded<RequestBody>(request.body, [&](const RequestBody& body) {
            CAPTURE(parts);
            request.body = body;
            CHECK(fault_of(request) == Status::kMalformed);
        });
    }
    CHECK(parts > 25);
}

TEST_CASE("fop limits: a reply with a part beyond its limit has no body", "[fop]") {
    std::size_t parts = 0;
    for (const FopType& type : kFopTypes) {
        Reply reply = sample_reply(type.number);
        CAPTURE(type.name);
        REQUIRE_FALSE(is_refused(reply));
        parts += with_each_part_exceeded<ReplyBody>(reply.body, [&](const ReplyBody& body) {
            reply.body = body;
            CHECK(is_refused(reply));
        });
    }
    CHECK(parts > 20);
}

TEST_CASE("fop limits: values of maximum length are accepted", "[fop]") {
    Request bulk = sample_request(find_fop_type("bulk_echo")->number);
    std::get<BulkEcho>(bulk.body).bytes = kBulkEchoBytesMax;
    CHECK(fault_of(bulk) == Status::kDone);
    Request punch = sample_request(find_fop_type("punch")->number);
    std::get<Punch>(punch.body).range = {.offset = 0, .length = kOffsetMax};
    CHECK(fault_of(punch) == Status::kDone);
    Reply stat = sample_reply(find_fop_type("stat")->number);
    std::get<StatReply>(stat.body).attributes.size_bytes = kOffsetMax;
    CHECK_FALSE(is_refused(stat));
}

TEST_CASE("fop message: a message holds no old bytes of its buffer", "[fop]") {
    for (const FopType& type : kFopTypes) {
        CAPTURE(type.name);
        std::array<std::vector<std::byte>, 2> made;
        for (std::size_t i = 0; i < made.size(); ++i) {
            std::vector<std::byte> buffer(16U << 10, i == 0 ? std::byte{0x00} : std::byte{0xa5});
            MessageWriter writer;
            writer.start_replies(buffer);
            // Of an odd length, so that bytes follow that nobody has asked for.
            Reply reply = sample_reply(type.number);
            if (!reply.payload.empty()) reply.payload = reply.payload.first(1);
            REQUIRE(writer.add(reply));
            REQUIRE(writer.add(reply));
            made[i] = sealed(writer, std::move(buffer));
        }
        REQUIRE(made[0] == made[1]);
    }
}

}  // namespace fopd::fop

// Goal: what a request says is refused when it makes no sense, with the reason, and what a body
// borrows can be kept.
#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <vector>

#include "fop/body_check.h"
#include "fop/borrowed.h"
#include "fop/fop_type.h"
#include "fop/message_reader.h"
#include "fop/message_writer.h"
#include "fop/prefix.h"
#include "tests/catch.h"
#include "tests/fop/samples.h"

namespace fopd::fop {

namespace {

std::uint16_t number(std::string_view name) {
    const FopType* const type = find_fop_type(name);
    REQUIRE(type != nullptr);
    return type->number;
}

// What is said of a sample after `change`; empty when it is right.
template <typename Body>
std::string why(std::string_view type, std::function<void(Body&)> change) {
    Request request = sample_request(number(type));
    change(std::get<Body>(request.body));
    const auto checked = check_request(request);
    return checked ? "" : checked.error().context;
}

std::vector<std::byte> sealed_body(const Request& request) {
    std::vector<std::byte> buffer(16U << 10);
    MessageWriter writer;
    writer.start_requests(buffer, {});
    REQUIRE(writer.add(request));
    buffer.resize(writer.seal({}));
    return buffer;
}

}  // namespace

TEST_CASE("fop body: samples of every type make sense", "[fop]") {
    for (const FopType& type : kFopTypes) {
        CAPTURE(type.name);
        REQUIRE(check_request(sample_request(type.number)));
        REQUIRE(is_bounded(sample_reply(type.number).body));
    }
}

TEST_CASE("fop body: names are checked wherever there is one", "[fop]") {
    const std::string long_name(481, 'n');
    REQUIRE(why<Create>("create", [](Create& body) { body.name = {}; }).empty());
    REQUIRE(why<Create>("create", [&](Create& body) { body.name = long_name; }) ==
            "the name is longer than 480 bytes");
    REQUIRE(why<Lookup>("lookup", [](Lookup& body) { body.name = {}; }) == "the name is empty");
    REQUIRE(why<Rename>("rename", [](Rename& body) { body.name = "\n"; }) ==
            "the name has a control character");
    REQUIRE(why<Rename>("rename", [](Rename& body) { body.from = "\xff"; }) ==
            "the name is not UTF-8");
    REQUIRE(why<Rename>("rename", [](Rename& body) { body.from = {}; }).empty());
    REQUIRE(why<Delete>("delete", [&](Delete& body) { body.from = long_name; }) ==
            "the name is longer than 480 bytes");
    REQUIRE(why<UploadBegin>("upload_begin", [](UploadBegin& body) { body.name = {}; }).empty());
    REQUIRE(why<UploadBegin>("upload_begin", [](UploadBegin& body) { body.name = "\x7f"; }) ==
            "the name has a control character");
    // A part of a name may end within a character.
    REQUIRE(why<ListObjects>("list", [](ListObjects& body) { body.prefix = "\xe2"; }).empty());
    REQUIRE(why<ListObjects>("list", [&](ListObjects& body) { body.prefix = long_name; }) ==
            "the prefix is too long");
    REQUIRE(why<ListObjects>("list", [&](ListObjects& body) { body.cursor = long_name; }) ==
            "the cursor is too long");
    REQUIRE(why<SetAttributes>("set_attributes", [&](SetAttributes& body) {
                body.owner = long_name;
            }) == "the owner is not a valid name");
    REQUIRE(why<Create>("create", [&](Create& body) { body.group = long_name; }) ==
            "the group is not a valid name");
    REQUIRE(why<Create>("create", [&](Create& body) { body.collection = long_name; }) ==
            "the collection is not a valid name");
}

TEST_CASE("fop body: an object has to be named", "[fop]") {
    const auto none = [](auto& body) { body.fid = Fid{}; };
    const std::string kReason = "no object is named";
    REQUIRE(why<Stat>("stat", none) == kReason);
    REQUIRE(why<SetAttributes>("set_attributes", none) == kReason);
    REQUIRE(why<Rename>("rename", none) == kReason);
    REQUIRE(why<Delete>("delete", none) == kReason);
    REQUIRE(why<Read>("read", none) == kReason);
    REQUIRE(why<Write>("write", none) == kReason);
    REQUIRE(why<Append>("append", none) == kReason);
    REQUIRE(why<Truncate>("truncate", none) == kReason);
    REQUIRE(why<Punch>("punch", none) == kReason);
    REQUIRE(why<UploadWrite>("upload_write", none) == kReason);
    REQUIRE(why<UploadCommit>("upload_commit", none) == kReason);
    REQUIRE(why<UploadAbort>("upload_abort", none) == kReason);
}

TEST_CASE("fop body: offsets and lengths end at 2^60", "[fop]") {
    constexpr std::uint64_t kEnd = 1ULL << 60;
    const auto punch = [](Range range) {
        return why<Punch>("punch", [range](Punch& body) { body.range = range; });
    };
    REQUIRE(punch({.offset = 0, .length = kEnd}).empty());
    REQUIRE(punch({.offset = kEnd, .length = 0}).empty());
    REQUIRE(punch({.offset = 1, .length = kEnd}) == "the range ends beyond 2^60");
    REQUIRE(punch({.offset = kEnd + 1, .length = 0}) == "the offset is beyond 2^60");
    const auto truncate = [](std::uint64_t size_bytes) {
        return why<Truncate>("truncate", [=](Truncate& body) { body.size_bytes = size_bytes; });
    };
    REQUIRE(truncate(kEnd - 1).empty());
    REQUIRE(truncate(kEnd).empty());
    REQUIRE(truncate(kEnd + 1) == "the size is beyond 2^60");
    const std::array ranges{Range{.offset = kEnd - 1, .length = 2}};
    REQUIRE(why<Read>("read", [&](Read& body) { body.ranges = ranges; }) ==
            "the range ends beyond 2^60");
    REQUIRE(why<Quota>("quota", [](Quota& body) { body.wanted_bytes = kEnd; }).empty());
    REQUIRE(why<Quota>("quota", [](Quota& body) { body.wanted_bytes = kEnd + 1; }) ==
            "the size is beyond 2^60");
    REQUIRE(why<UploadCommit>("upload_commit", [](UploadCommit& body) {
                body.size_bytes = kEnd + 1;
            }) == "the size is beyond 2^60");
    REQUIRE(why<UploadCommit>("upload_commit", [](UploadCommit& body) { body.blocks = 6; }) ==
            "there are more blocks than the size has");
}

TEST_CASE("fop body: ranges, checksums and payload belong together", "[fop]") {
    const std::array<Range, 65> many{};
    REQUIRE(why<Read>("read", [&](Read& body) { body.ranges = many; }) ==
            "there are more than 64 ranges");
    REQUIRE(why<Read>("read", [](Read& body) { body.ranges = {}; }).empty());
    const std::array<std::uint32_t, 2> few{};
    REQUIRE(why<Write>("write", [&](Write& body) { body.checksums = few; }) ==
            "the checksums are not as many as the runs of the ranges");
    REQUIRE(why<Write>("write", [](Write& body) { body.source.emplace(); }) ==
            "the payload is not as long as the ranges");
    REQUIRE(why<Append>("append", [](Append& body) { body.source.reset(); }) ==
            "the payload is not as long as the ranges");
    REQUIRE(why<Append>("append", [](Append& body) { body.length = (4U << 20) + 1; }) ==
            "the ranges are longer than 4 MiB together");
    REQUIRE(why<UploadWrite>("upload_write", [](UploadWrite& body) { body.range.offset = 1; }) ==
            "the offset is within a block");
    REQUIRE(why<Write>("write", [](Write& body) {
                body.durability = static_cast<Durability>(2);
            }) == "the durability is not known");

    Request nothing = sample_request(number("write"));
    nothing.body = Write{.fid = {.high = 1}, .ranges = {}, .checksums = {}};
    nothing.payload = {};
    REQUIRE(check_request(nothing));
}

TEST_CASE("fop body: attributes and receipts have their limits", "[fop]") {
    REQUIRE(why<Create>("create", [](Create& body) { body.mode = 01000; }) ==
            "the mode has more than permission bits");
    REQUIRE(why<SetAttributes>("set_attributes", [](SetAttributes& body) { body.which = 8; }) ==
            "an attribute is not known");
    const std::vector<Receipt> receipts(kReceiptsMax + 1);
    REQUIRE(why<Sync>("sync", [&](Sync& body) {
                body.receipts = List<Receipt>(receipts.data(), kReceiptsMax);
            }).empty());
    REQUIRE(why<Sync>("sync", [&](Sync& body) { body.receipts = receipts; }) ==
            "there are more than 256 receipts");
    REQUIRE_FALSE(is_bounded(SyncReply{.receipts = receipts}));
}

TEST_CASE("fop body: an invalid body is refused with a reason", "[fop]") {
    Request request = sample_request(number("truncate"));
    std::get<Truncate>(request.body).size_bytes = ~0ULL;
    const auto message = sealed_body(request);
    REQUIRE(read_prefix(message).has_value());

    const Request read = (*read_requests(message))[0];

    REQUIRE(read.fault == Status::kMalformed);
    REQUIRE(read.fault_words == "the size is beyond 2^60");
    REQUIRE(read.body == RequestBody{});
    REQUIRE(read.id == request.id);
}

TEST_CASE("fop body: the question what fits a quota comes back, and so does the answer", "[fop]") {
    Request request = sample_request(number("quota"));
    std::get<Quota>(request.body).wanted_bytes = 9000;
    std::get<Quota>(request.body).wanted_objects = 7;
    const auto asked = sealed_body(request);
    REQUIRE(read_prefix(asked).has_value());
    REQUIRE((*read_requests(asked))[0].body == request.body);

    const Reply reply{.id = 1, .body = QuotaReply{.end = true, .compared = true}};
    std::vector<std::byte> answer(16U << 10);
    MessageWriter writer;
    writer.start_replies(answer);
    REQUIRE(writer.add(reply));
    answer.resize(writer.seal({}));
    REQUIRE(read_prefix(answer).has_value());
    REQUIRE((*read_replies(answer))[0].body == reply.body);
}

TEST_CASE("fop body: the largest lists fit into the messages a server takes", "[fop]") {
    const std::vector<Receipt> receipts(kReceiptsMax);
    static_cast<void>(
        sealed_body({.id = 1, .type = number("sync"), .body = Sync{.receipts = receipts}}));
    const std::vector<Range> ranges(64, Range{.offset = 4095, .length = kTransferBytesMax / 64});
    const std::vector<std::uint32_t> checksums(count_checksums(ranges));
    const auto message = sealed_body({.id = 1,
                                      .type = number("write"),
                                      .body = Write{.fid = {.high = 1},
                                                    .ranges = ranges,
                                                    .checksums = checksums,
                                                    .source = SealedDescriptor{}}});
    REQUIRE(read_prefix(message).has_value());
    REQUIRE((*read_requests(message))[0].fault == Status::kDone);
}

TEST_CASE("fop body: a kept body does not depend on its message", "[fop]") {
    for (const SampleMessage& sample : sample_messages()) {
        CAPTURE(sample.name);
        auto message = sample.bytes;
        const auto prefix = read_prefix(message);
        REQUIRE(prefix.has_value());
        const auto keep = [](auto body, std::vector<std::byte>& room) {
            room.resize(borrowed_bytes(body));
            keep_borrowed(body, room);
            return body;
        };
        if (prefix->kind == MessageKind::kRequests) {
            const auto view = read_requests(message);
            std::vector<std::vector<std::byte>> rooms(view->count());
            std::vector<RequestBody> kept;
            for (std::size_t i = 0; i < view->count(); ++i) {
                kept.push_back(keep((*view)[i].body, rooms[i]));
            }
            const std::size_t count = view->count();
            const auto original = sample.bytes;
            std::ranges::fill(message, std::byte{0xdb});
            const auto again = read_requests(original);
            for (std::size_t i = 0; i < count; ++i) REQUIRE(kept[i] == (*again)[i].body);
        }
        if (prefix->kind == MessageKind::kReplies) {
            const auto view = read_replies(message);
            std::vector<std::vector<std::byte>> rooms(view->count());
            std::vector<ReplyBody> kept;
            for (std::size_t i = 0; i < view->count(); ++i) {
                kept.push_back(keep((*view)[i].body, rooms[i]));
            }
            const std::size_t count = view->count();
            const auto original = sample.bytes;
            std::ranges::fill(message, std::byte{0xdb});
            const auto again = read_replies(original);
            for (std::size_t i = 0; i < count; ++i) REQUIRE(kept[i] == (*again)[i].body);
        }
    }
}

}  // namespace fopd::fop

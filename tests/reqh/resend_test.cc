// Goal: a change that is asked for again is made once, and undoes nothing that others have done
// since. Method: each type of change is made, its reply is taken for lost, another client changes
// the same, and the first one asks again: at once, and after the node has started again, in order
// or by a loss of power.
#include <algorithm>
#include <functional>
#include <string_view>
#include <variant>
#include <vector>

#include "objects/home_volume.h"
#include "tests/catch.h"
#include "tests/reqh/store_stage.h"

namespace fopd::reqh::testing {

namespace {

using Way = WriteSpec::Way;

constexpr std::array<std::byte, 16> kFirst{std::byte{0xa}};
constexpr std::array<std::byte, 16> kOther{std::byte{0xb}};

FopSpec from(const std::array<std::byte, 16>& client, std::uint64_t number, FopSpec spec) {
    spec.client = client;
    spec.number = number;
    return spec;
}

fop::Changed changed_by(const FakeFop& fop) {
    fop::Changed changed;
    std::visit(
        [&changed](const auto& body) {
            if constexpr (requires { body.changed; }) changed = body.changed;
        },
        fop.answer->body);
    return changed;
}

FopSpec set_mode(fop::Fid fid, std::uint16_t mode) {
    return {
        .type = type_of("set_attributes"),
        .body = fop::SetAttributes{.fid = fid, .mode = mode, .which = fop::SetAttributes::kMode}};
}

// What one client does, and another does to the same afterwards.
struct Changes {
    std::string_view what;
    std::function<FopSpec(fop::Fid)> first;
    std::function<FopSpec(fop::Fid)> other;
};

// The bytes that specs refer to.
class Sources {
public:
    FopSpec write(fop::Fid fid, std::uint64_t offset, const Bytes& bytes) {
        return writes_
            .emplace_back(fid, std::vector{fop::Range{.offset = offset, .length = bytes.size()}},
                          bytes)
            .spec(Way::kMemory);
    }
    FopSpec append(fop::Fid fid, const Bytes& bytes) {
        return appends_.emplace_back(fid, bytes).spec(Way::kMemory);
    }
    std::vector<Changes> changes() {
        return {
            {"truncate, and bytes behind it", [](auto fid) { return truncate(fid, 5000); },
             [this](auto fid) { return append(fid, pattern(3000, 2)); }},
            {"write, and others in its place",
             [this](auto fid) { return write(fid, 100, pattern(9000, 3)); },
             [this](auto fid) { return write(fid, 4096, pattern(4096, 4)); }},
            {"punch, and bytes in the hole",
             [](auto fid) { return punch(fid, {.offset = 4096, .length = 8192}); },
             [this](auto fid) { return write(fid, 5000, pattern(500, 5)); }},
            {"set_attributes, and another mode", [](auto fid) { return set_mode(fid, 0600); },
             [](auto fid) { return set_mode(fid, 0644); }},
            {"append, and what cuts it off",
             [this](auto fid) { return append(fid, pattern(700, 6)); },
             [](auto fid) { return truncate(fid, 100); }},
        };
    }

private:
    std::deque<WriteSpec> writes_;
    std::deque<AppendSpec> appends_;
};

// A block of an upload, from memory of the client.
class UploadPart {
public:
    explicit UploadPart(StoreStage& node) {
        const FakeFop& begun =
            node.call({.type = type_of("upload_begin"),
                       .body = fop::UploadBegin{.slot = kFirstSlot, .mode = 0600}});
        fid_ = std::get<fop::UploadBeginReply>(begun.answer->body).fid;
    }
    FopSpec spec(const Bytes& bytes) {
        const fop::Range range{.offset = 0, .length = bytes.size()};
        checksums_ = checksums_of({range}, bytes);
        fop::UploadWrite body{
            .fid = fid_,
            .range = range,
            .checksums = fop::List<std::uint32_t>(checksums_.data(), checksums_.size())};
        body.source.emplace();
        return {.type = type_of("upload_write"), .body = body, .source = bytes};
    }

private:
    fop::Fid fid_{};
    std::vector<std::uint32_t> checksums_;
};

}  // namespace

TEST_CASE("reqh resend: what comes again undoes nothing that others did since", "[reqh]") {
    StoreStage node;
    Sources sources;
    const auto which = GENERATE(range(0, 5));
    const Changes changes = sources.changes()[static_cast<std::size_t>(which)];
    const auto between = GENERATE(0, 1, 2);
    CAPTURE(changes.what, between);
    const fop::Fid fid = node.create();
    node.write(fid, 0, pattern(20'000, 1));
    const FopSpec first = from(kFirst, 0x107, changes.first(fid));
    const FakeFop& done = node.call(first);
    REQUIRE(done.status() == fop::Status::kDone);
    const fop::Changed changed = changed_by(done);
    REQUIRE(node.call(from(kOther, 0x107, changes.other(fid))).status() == fop::Status::kDone);
    const fop::Attributes before = node.stat(fid);
    const std::uint16_t mode_before = before.mode;
    const Bytes bytes_before = node.read(fid, 0, before.size_bytes);
    if (between == 1) {
        node.stop();
        node.start();
    }
    if (between == 2) node.restart();

    const FakeFop& again = node.call(first);

    INFO(again.answer->words);
    CHECK(again.status() == fop::Status::kDone);
    CHECK(changed_by(again).version == changed.version);
    CHECK(changed_by(again).size_bytes == changed.size_bytes);
    const fop::Attributes then = node.stat(fid);
    CHECK(then.version == before.version);
    CHECK(then.mode == mode_before);
    CHECK(then.size_bytes == before.size_bytes);
    CHECK(node.read(fid, 0, before.size_bytes) == bytes_before);
}

TEST_CASE("reqh resend: a part of an upload that comes again is not written over a later one",
          "[reqh]") {
    StoreStage node;
    const FakeFop& begun = node.call({.type = type_of("upload_begin"),
                                      .body = fop::UploadBegin{.slot = kFirstSlot, .mode = 0600}});
    const fop::Fid fid = std::get<fop::UploadBeginReply>(begun.answer->body).fid;
    const fop::Range range{.offset = 0, .length = objects::kBlock};
    const std::array bytes{pattern(objects::kBlock, 1), pattern(objects::kBlock, 2)};
    const std::array checksums{checksums_of({range}, bytes[0]), checksums_of({range}, bytes[1])};
    const auto part = [&](std::size_t which) {
        return FopSpec{.type = type_of("upload_write"),
                       .body = fop::UploadWrite{.fid = fid,
                                                .range = range,
                                                .checksums = fop::List<std::uint32_t>(
                                                    checksums[which].data(), 1)},
                       .payload_bytes = bytes[which]};
    };
    REQUIRE(node.call(from(kFirst, 0x101, part(0))).status() == fop::Status::kDone);
    REQUIRE(node.call(from(kOther, 0x101, part(1))).status() == fop::Status::kDone);
    REQUIRE(node.call(from(kFirst, 0x101, part(0))).status() == fop::Status::kDone);
    const FakeFop& committed = node.call(
        {.type = type_of("upload_commit"),
         .body = fop::UploadCommit{.fid = fid, .size_bytes = objects::kBlock, .blocks = 1}});
    REQUIRE(committed.status() == fop::Status::kDone);
    CHECK(node.read(fid, 0, objects::kBlock) == bytes[1]);
}

TEST_CASE("reqh resend: a buffered write that was lost is made when it comes again", "[reqh]") {
    StoreStage node;
    const fop::Fid fid = node.create();
    node.write(fid, 0, pattern(objects::kBlock, 1));
    const WriteSpec write(fid, {{.offset = 0, .length = objects::kBlock}},
                          pattern(objects::kBlock, 2));
    const FopSpec spec = from(kFirst, 0x107, write.spec(Way::kMemory, fop::Durability::kBuffered));
    REQUIRE(node.call(spec).status() == fop::Status::kDone);
    const bool is_told_durable = GENERATE(false, true);
    CAPTURE(is_told_durable);
    // A reply that is told again is durable first.
    if (is_told_durable) REQUIRE(node.call(spec).status() == fop::Status::kDone);
    node.restart();
    if (is_told_durable) CHECK(node.read(fid, 0, objects::kBlock) == pattern(objects::kBlock, 2));
    REQUIRE(node.call(spec).status() == fop::Status::kDone);
    CHECK(node.read(fid, 0, objects::kBlock) == pattern(objects::kBlock, 2));
}

TEST_CASE("reqh resend: a request that is still at work is made once, wherever it comes again",
          "[reqh]") {
    StoreStage node({.localities = 2});
    const fop::Fid fid = node.create();
    const AppendSpec append(fid, pattern(5000, 1));
    FopSpec spec = from(kFirst, 0x107, append.spec(Way::kMemory));
    spec.transfer_time = 100ms;
    FakeFop& first = node.send(spec, 0);
    node.run_for(10ms);
    FakeFop& again = node.send(spec, 1);
    node.wait_for(first);
    node.wait_for(again);
    CHECK(first.status() == fop::Status::kDone);
    CHECK(again.status() == fop::Status::kDone);
    CHECK(changed_by(again).version == changed_by(first).version);
    CHECK(node.stat(fid).size_bytes == 5000);
}

TEST_CASE("reqh resend: a client that sends data slowly does not delay the same request elsewhere",
          "[reqh]") {
    StoreStage node({.localities = 2});
    const fop::Fid fid = node.create();
    Sources sources;
    UploadPart part(node);
    const std::array specs{sources.append(fid, pattern(5000, 1)),
                           sources.write(fid, 100, pattern(9000, 2)),
                           part.spec(pattern(objects::kBlock, 3))};
    const auto which = GENERATE(range(0, 3));
    CAPTURE(which);
    FopSpec slow = from(kFirst, 0x107, specs[static_cast<std::size_t>(which)]);
    slow.transfer_time = 4s;
    FakeFop& first = node.send(slow, 0);
    node.run_for(100ms);
    REQUIRE(first.transfers.size() == 1);
    FopSpec quick = slow;
    quick.transfer_time = 1ms;
    FakeFop& again = node.send(quick, 1);
    node.run_for(100ms);
    REQUIRE(again.answer.has_value());
    CHECK(again.status() == fop::Status::kDone);
    REQUIRE_FALSE(first.answer.has_value());
    const auto version = node.stat(fid).version;

    node.wait_for(first);

    CHECK(first.status() == fop::Status::kDone);
    CHECK(changed_by(first).version == changed_by(again).version);
    CHECK(node.stat(fid).version == version);
    CHECK(node.all_buffers_are_back());
}

TEST_CASE("reqh resend: a request that arrives after a later one in its place does nothing",
          "[reqh]") {
    StoreStage node;
    const fop::Fid fid = node.create();
    node.write(fid, 0, pattern(9000, 1));
    REQUIRE(node.call(from(kFirst, 0x107, truncate(fid, 8000))).status() == fop::Status::kDone);
    REQUIRE(node.call(from(kFirst, 0x507, truncate(fid, 7000))).status() == fop::Status::kDone);
    CHECK(node.call(from(kFirst, 0x107, truncate(fid, 8000))).status() == fop::Status::kCancelled);
    CHECK(node.call(from(kFirst, 0x106, truncate(fid, 6000))).status() == fop::Status::kDone);
    CHECK(node.stat(fid).size_bytes == 6000);
}

TEST_CASE("reqh resend: a client has a bounded number of replies, whether it takes them or not",
          "[reqh]") {
    StoreStage node;
    const fop::Fid fid = node.create();
    Sources sources;
    const FopSpec write = sources.write(fid, 0, pattern(objects::kBlock, 1));
    for (std::uint64_t number = 0x100; number < 0x100 + 3000; ++number) {
        REQUIRE(node.call(from(kFirst, number, write)).status() == fop::Status::kDone);
    }
    // And that to the one who made the object.
    CHECK(node.reply_count() == fop::kRequestPlaces + 1);
    node.restart();
    CHECK(node.reply_count() == fop::kRequestPlaces + 1);
}

TEST_CASE("reqh resend: a fop that changes nothing leaves no recorded reply", "[reqh]") {
    StoreStage node;
    const fop::Fid fid = node.create();
    REQUIRE(node.reply_count() == 1);
    Sources sources;
    REQUIRE(node.call(from(kFirst, 0x101, sources.write(fid, 0, {}))).status() ==
            fop::Status::kDone);
    FopSpec denied = from(kFirst, 0x102, truncate(fid, 5));
    denied.principal = "mallory";
    denied.rights = fop::kWrite;
    REQUIRE(node.call(denied).status() == fop::Status::kDenied);
    const fop::Fid nothing{.high = fid.high, .low = fid.low + 1000};
    REQUIRE(node.call(from(kFirst, 0x103, truncate(nothing, 5))).status() ==
            fop::Status::kNotFound);
    CHECK(node.reply_count() == 1);
}

}  // namespace fopd::reqh::testing

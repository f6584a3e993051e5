#include <algorithm>
#include <array>
#include <variant>
#include <vector>

#include "tests/catch.h"
#include "tests/reqh/store_stage.h"

namespace fopd::reqh::testing::upload_fops_test {

namespace {

using Way = WriteSpec::Way;

fop::Fid begin_upload(StoreStage& node, std::string_view name, bool no_replace = false) {
    FakeFop& fop =
        node.call({.type = type_of("upload_begin"),
                   .body = fop::UploadBegin{
                       .name = name, .slot = kFirstSlot, .mode = 0600, .no_replace = no_replace}});
    INFO(fop.answer->words);
    REQUIRE(fop.status() == fop::Status::kDone);
    return std::get<fop::UploadBeginReply>(fop.answer->body).fid;
}

fop::Status upload(StoreStage& node, fop::Fid fid, std::uint64_t offset, const Bytes& bytes,
                   Way way = Way::kMemory) {
    const auto checksums = checksums_of({{.offset = offset, .length = bytes.size()}}, bytes);
    fop::UploadWrite body{
        .fid = fid,
        .range = {.offset = offset, .length = bytes.size()},
        .checksums = fop::List<std::uint32_t>(checksums.data(), checksums.size())};
    FopSpec spec{.type = type_of("upload_write")};
    if (way == Way::kMemory) {
        body.source.emplace();
        spec.source = bytes;
    } else {
        spec.payload_bytes = bytes;
    }
    spec.body = body;
    return node.call(spec).status();
}

FopSpec commit(fop::Fid fid, std::uint64_t size_bytes, std::uint64_t blocks) {
    return {.type = type_of("upload_commit"),
            .body = fop::UploadCommit{.fid = fid, .size_bytes = size_bytes, .blocks = blocks}};
}

FopSpec stat(fop::Fid fid) {
    return {.type = type_of("stat"), .body = fop::Stat{.fid = fid}};
}

fop::Receipt write_buffered(StoreStage& node, fop::Fid fid, const Bytes& bytes) {
    const WriteSpec write(fid, {{.offset = 0, .length = bytes.size()}}, bytes);
    FakeFop& fop = node.call(write.spec(Way::kInline, fop::Durability::kBuffered));
    REQUIRE(fop.status() == fop::Status::kDone);
    return std::get<fop::WriteReply>(fop.answer->body).changed.receipt;
}

FopSpec sync(const std::vector<fop::Receipt>& receipts) {
    return {
        .type = type_of("sync"),
        .body = fop::Sync{.receipts = fop::List<fop::Receipt>(receipts.data(), receipts.size())}};
}

}  // namespace

TEST_CASE("reqh uploads: an upload is invisible before its commit, then complete", "[reqh]") {
    StoreStage node;
    const fop::Fid old = node.create("name");
    const fop::Fid fid = begin_upload(node, "name");
    const Bytes bytes = pattern(5 * objects::kBlock + 100, 1);
    const auto middle = bytes.begin() + 2 * objects::kBlock;
    REQUIRE(upload(node, fid, 2 * objects::kBlock, Bytes(middle, bytes.end())) ==
            fop::Status::kDone);
    CHECK(node.call(stat(fid)).status() == fop::Status::kNotFound);
    CHECK(node.call(commit(fid, bytes.size(), 6)).status() == fop::Status::kLost);
    REQUIRE(upload(node, fid, 0, Bytes(bytes.begin(), middle), Way::kInline) == fop::Status::kDone);
    REQUIRE(upload(node, fid, 0, Bytes(bytes.begin(), middle)) == fop::Status::kDone);

    FopSpec spec = commit(fid, bytes.size(), 6);
    spec.number = 90;
    CHECK(node.call(spec).status() == fop::Status::kDone);
    CHECK(node.read(fid, 0, 1 << 20) == bytes);
    CHECK(node.stat(fid).name == "name");
    node.run_for(1s);
    CHECK(node.call(stat(old)).status() == fop::Status::kNotFound);
    node.restart();
    CHECK(node.read(fid, 0, 1 << 20) == bytes);
    CHECK(node.call(spec).status() == fop::Status::kDone);
    CHECK(node.call(commit(fid, bytes.size(), 6)).status() == fop::Status::kNotFound);
}

TEST_CASE("reqh uploads: one that is larger than what the disk has left does not begin", "[reqh]") {
    StoreStage node;
    const auto left_blocks = [&node] { return node.volume().space_use().room_blocks(); };
    const auto begin = [&node](std::uint64_t size_bytes) -> FakeFop& {
        return node.call({.type = type_of("upload_begin"),
                          .body = fop::UploadBegin{
                              .name = "name", .size_bytes = size_bytes, .slot = kFirstSlot}});
    };
    const FakeFop& refused = begin(left_blocks() * objects::kBlock + 1);
    CHECK(refused.status() == fop::Status::kNoSpace);
    CHECK(refused.answer->words == "not enough space left on the disk of the object");
    CHECK(begin(fop::kOffsetMax).status() == fop::Status::kNoSpace);
    CHECK(node.quota().whole().used() == objects::Amount{});
    CHECK(begin(left_blocks() * objects::kBlock).status() == fop::Status::kDone);
    CHECK(begin(0).status() == fop::Status::kDone);
}

TEST_CASE("reqh uploads: a commit that does not fit what was written is refused", "[reqh]") {
    StoreStage node;
    const fop::Fid fid = begin_upload(node, {});
    REQUIRE(upload(node, fid, 0, pattern(3 * objects::kBlock, 1)) == fop::Status::kDone);
    CHECK(node.call(commit(fid, 3 * objects::kBlock, 2)).status() == fop::Status::kMalformed);
    CHECK(node.call(commit(fid, 2 * objects::kBlock, 3)).status() == fop::Status::kMalformed);
    CHECK(node.call(commit(fid, 3 * objects::kBlock - 1, 3)).status() == fop::Status::kMalformed);
    CHECK(node.call(commit(fid, 3 * objects::kBlock, 4)).status() == fop::Status::kLost);
    CHECK(node.call(commit(fid, 9 * objects::kBlock + 5, 3)).status() == fop::Status::kDone);
    CHECK(node.stat(fid).size_bytes == 9 * objects::kBlock + 5);
}

TEST_CASE("reqh uploads: what was lost is asked for at the commit", "[reqh]") {
    StoreStage node;
    const fop::Fid fid = begin_upload(node, "name");
    const Bytes bytes = pattern(2 * objects::kBlock, 1);
    REQUIRE(upload(node, fid, 0, bytes) == fop::Status::kDone);
    node.restart();
    FakeFop& lost = node.call(commit(fid, bytes.size(), 2));
    REQUIRE((lost.status() == fop::Status::kLost || lost.status() == fop::Status::kDone));
    if (lost.status() == fop::Status::kLost) {
        REQUIRE(upload(node, fid, 0, bytes) == fop::Status::kDone);
        REQUIRE(node.call(commit(fid, bytes.size(), 2)).status() == fop::Status::kDone);
    }
    CHECK(node.read(fid, 0, 1 << 20) == bytes);
}

TEST_CASE("reqh uploads: a name that is taken meanwhile", "[reqh]") {
    StoreStage node;
    const fop::Fid fid = begin_upload(node, "name", true);
    const fop::Fid winner = node.create("name");
    CHECK(node.call(commit(fid, 0, 0)).status() == fop::Status::kExists);
    CHECK(node.call({.type = type_of("upload_begin"),
                     .body =
                         fop::UploadBegin{
                             .name = "name", .slot = kFirstSlot, .mode = 0600, .no_replace = true}})
              .status() == fop::Status::kExists);
    CHECK(node.call(stat(winner)).status() == fop::Status::kDone);
}

TEST_CASE("reqh uploads: one that is given up leaves its room", "[reqh]") {
    StoreStage node;
    const auto used = [&node] { return node.volume().space_use().free_blocks; };
    const fop::Fid fid = begin_upload(node, "name");
    REQUIRE(upload(node, fid, 0, pattern(10 * objects::kBlock, 1)) == fop::Status::kDone);
    const std::uint64_t before = used();
    FopSpec by_bob{.type = type_of("upload_abort"), .body = fop::UploadAbort{.fid = fid}};
    by_bob.principal = "bob";
    by_bob.rights = fop::kCreate;
    CHECK(node.call(by_bob).status() == fop::Status::kDenied);
    const FopSpec abort{.type = type_of("upload_abort"), .body = fop::UploadAbort{.fid = fid}};
    CHECK(node.call(abort).status() == fop::Status::kDone);
    CHECK(node.call(abort).status() == fop::Status::kDone);
    CHECK(upload(node, fid, 0, pattern(objects::kBlock, 1)) == fop::Status::kNotFound);
    node.run_for(2s);
    CHECK(used() == before + 10);
}

TEST_CASE("reqh sync: what was acknowledged before is there after a loss of power", "[reqh]") {
    StoreStage node({.localities = 2, .disks = 2});
    const fop::Fid one = node.create({}, kFirstSlot);
    const fop::Fid other = node.create({}, kFirstSlot + 1);
    const std::vector receipts{write_buffered(node, one, pattern(3 * objects::kBlock, 1)),
                               write_buffered(node, other, pattern(5000, 2))};
    FakeFop& fop = node.call(sync(receipts));
    REQUIRE(fop.status() == fop::Status::kDone);
    const auto& reply = std::get<fop::SyncReply>(fop.answer->body);
    REQUIRE(reply.receipts.size() == 2);
    CHECK(reply.receipts[0].incarnation == receipts[0].incarnation);
    CHECK(reply.receipts[0].seq >= receipts[0].seq);
    node.restart();
    CHECK(node.read(one, 0, 1 << 20) == pattern(3 * objects::kBlock, 1));
    CHECK(node.read(other, 0, 1 << 20) == pattern(5000, 2));
    CHECK(node.call(sync({})).status() == fop::Status::kDone);
}

TEST_CASE("reqh sync: what was lost is said to be", "[reqh]") {
    bool was_lost = false;
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
        StoreStage node({.seed = seed});
        const fop::Fid fid = node.create();
        const fop::Receipt receipt = write_buffered(node, fid, pattern(objects::kBlock, 1));
        node.restart();
        FakeFop& fop = node.call(sync({receipt}));
        const bool is_there = node.read(fid, 0, objects::kBlock) == pattern(objects::kBlock, 1);
        CHECK((fop.status() == fop::Status::kDone) == is_there);
        was_lost = was_lost || !is_there;
        for (int lives_ago = 2; lives_ago <= 6; ++lives_ago) {
            node.restart();
            const auto status = node.call(sync({receipt})).status();
            CHECK((status == fop::Status::kDone) == is_there);
        }
        // Of what was longer ago nothing is known any more.
        node.restart();
        CHECK(node.call(sync({receipt})).status() == fop::Status::kLost);
    }
    CHECK(was_lost);
}

}  // namespace fopd::reqh::testing::upload_fops_test

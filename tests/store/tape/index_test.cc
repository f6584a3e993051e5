// Goal: the lines of an index are as documented, and a wrong one is refused.
#include <string>
#include <string_view>

#include "store/tape/tape_index.h"
#include "tests/catch.h"
#include "tests/store/tape/tape_stage.h"

using namespace fopd;
using namespace fopd::store;
using namespace fopd::store::testing;

namespace {

TapeEntry some_entry() {
    TapeEntry entry;
    entry.file = {.number = 12,
                  .block = 3'456,
                  .file_id = 0xfedcba9876543210,
                  .kind = TapeFileKind::kObjects};
    entry.position = 8'192;
    entry.member = some_member(42, 10'000);
    entry.member.checksum = 0x1234abcd;
    return entry;
}

IndexHead some_head() {
    return {
        .identity = some_identity(), .first = 9, .last = 20, .previous = {.file = 8, .block = 99}};
}

}  // namespace

TEST_CASE("store tape index: the lines are as documented", "[store][tape]") {
    REQUIRE(encode_index_head(some_head()) ==
            "fopd-index=1 vsn=FPD001 node=a0a1a2a3a4a5a6a7a8a9aaabacadaeaf generation=3 first=9 "
            "last=20 previous=8:99");
    REQUIRE(encode_index_line(some_entry()) ==
            "file=12 block=3456 id=fedcba9876543210 position=8192 "
            "fid=0003000000000001000000000000002a version=142 offset=0 size=10000 "
            "object_size=10000 checksum=1234abcd created=1700000000000000000 "
            "changed=1700000001500000000 mode=640 name_version=49 "
            "name=runs/n\xc3\xb6%2042%2050%25=x pool=cold owner=alice@example.org group=physics "
            "collection=run%207");
    REQUIRE(encode_index_end(7) == "lines=7");
    REQUIRE(parse_index_head(encode_index_head(some_head())) == some_head());
    REQUIRE(parse_index_line(encode_index_line(some_entry())) == some_entry());
    REQUIRE(parse_index_end("lines=7") == 7);
}

TEST_CASE("store tape index: a cut line is refused wherever it is cut", "[store][tape]") {
    const std::string line = encode_index_line(some_entry());
    for (std::size_t size = 0; size < line.size(); ++size) {
        const auto parsed = parse_index_line(std::string_view(line).substr(0, size));
        // Text at the end of the line can be cut.
        REQUIRE((!parsed || size > line.find("collection=") + 10));
    }
    const std::string head = encode_index_head(some_head());
    for (std::size_t size = 0; size + 1 < head.size(); ++size) {
        REQUIRE_FALSE(parse_index_head(std::string_view(head).substr(0, size)).has_value());
    }
}

TEST_CASE("store tape index: lines in a wrong order, missing or too many are refused",
          "[store][tape]") {
    const std::string head = encode_index_head(some_head());
    const std::string line = encode_index_line(some_entry());
    IndexLines right;
    REQUIRE(right.take(head).has_value());
    REQUIRE(right.take(line).value() == some_entry());
    REQUIRE_FALSE(right.complete());
    REQUIRE(right.take("lines=1").has_value());
    REQUIRE(right.complete());
    REQUIRE_FALSE(right.take(line).has_value());

    IndexLines no_head;
    REQUIRE_FALSE(no_head.take(line).has_value());
    IndexLines missing;
    REQUIRE(missing.take(head).has_value());
    REQUIRE_FALSE(missing.take("lines=1").has_value());
    REQUIRE_FALSE(missing.take(head).has_value());
    IndexLines outside;
    TapeEntry entry = some_entry();
    entry.file.number = 21;
    REQUIRE(outside.take(head).has_value());
    REQUIRE_FALSE(outside.take(encode_index_line(entry)).has_value());
}

TEST_CASE("store tape index: many copies become several parts", "[store][tape]") {
    TapeStage stage;
    stage.start();
    const auto written = stage.write_file(1, {{1, 10}});
    REQUIRE(written.has_value());
    std::vector<TapeEntry> entries;
    for (std::uint64_t i = 0; i < 10'000; ++i) {
        TapeEntry entry = (*written)[0];
        entry.position = i * 512;
        entries.push_back(entry);
    }
    const auto index = stage.write_index_file(entries);
    REQUIRE(index.has_value());
    REQUIRE(index->kind == TapeFileKind::kIndex);

    FoundEntries found;
    const auto recovered = stage.recover(found);
    REQUIRE(recovered.has_value());
    REQUIRE(recovered->files_read == 1);
    REQUIRE(found.entries.size() == 10'000);
}

TEST_CASE("store tape index: an entry of a file that it does not cover is refused",
          "[store][tape]") {
    TapeStage stage;
    stage.start();
    const auto written = stage.write_file(1, {{1, 10}});
    REQUIRE(written.has_value());
    TapeEntry entry = (*written)[0];
    entry.file.number = 2;

    REQUIRE(stage.write_index_file({entry}).error().code == Errc::kInvalid);
    REQUIRE_FALSE(stage.writer->file_open());
    REQUIRE_FALSE(stage.writer->failed());
    REQUIRE(stage.write_index_file({(*written)[0]}).has_value());
}

// Goal: a tape for tape_image_test.py, which reads it without any code of ours.
// Method: this is run by that test, in a folder of its own. It makes image.tap, and `expected` with
// a line for each object: the file, the fid, the version, the size and the name. The object's bytes
// are in a file named by the fid.
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/catch.h"
#include "tests/store/tape/tape_stage.h"

using namespace fopd;
using namespace fopd::store;
using namespace fopd::store::testing;

namespace {

using Objects = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

void write_bytes(const std::string& path, const std::vector<std::byte>& bytes) {
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    file.close();
    REQUIRE(file.good());
}

struct Expected {
    std::vector<TapeEntry> copies;
    std::vector<std::byte> image;
};

// A file for each list of objects; an index where there are none.
Expected write_image(const std::vector<Objects>& files) {
    Expected expected;
    TapeStage stage;
    stage.start();
    std::vector<TapeEntry> since;
    std::uint64_t first = 1;
    for (std::size_t i = 0; i < files.size(); ++i) {
        if (files[i].empty()) {
            REQUIRE(stage.write_index_file(std::exchange(since, {}), first).has_value());
            first = stage.writer->end().index.file + 1;
            continue;
        }
        const auto written = stage.write_file(0xf00 + i, files[i]);
        REQUIRE(written.has_value());
        expected.copies.insert(expected.copies.end(), written->begin(), written->end());
        since.insert(since.end(), written->begin(), written->end());
    }
    REQUIRE(stage.run(stage.writer->sync()).has_value());
    expected.image = stage.tape.as_simh();
    return expected;
}

}  // namespace

TEST_CASE("store tape image: written for others to read", "[.tape-image]") {
    const Expected large = write_image({{{1, 1'000'000}},
                                        {{2, 10}, {3, 0}, {4, 300'001}},
                                        {},
                                        {{5, 4'096}},
                                        {{6, 262'144}},
                                        {},
                                        {{7, 1}}});
    std::ofstream expected("expected");
    for (const TapeEntry& entry : large.copies) {
        const Member& member = entry.member;
        const std::string fid = hex_text(member.fid.high, 16) + hex_text(member.fid.low, 16);
        expected << entry.file.number << ' ' << fid << ' ' << member.version << ' '
                 << member.size_bytes << ' ' << member.name << '\n';
        write_bytes(fid, some_bytes(member.fid.low, member.size_bytes));
    }
    expected.close();
    REQUIRE(expected.good());
    write_bytes("image.tap", large.image);
    // A seed for fuzz_tape_image.
    write_bytes("small.tap", write_image({{{1, 10}, {2, 0}}, {}, {{3, 1}}, {}, {{4, 2}}}).image);
}

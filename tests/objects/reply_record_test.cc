// Goal: what is recorded of a reply is what docs/formats/reply.md says, and comes back as it was.
#include "objects/reply_record.h"

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "fop/hex.h"
#include "tests/catch.h"

namespace fopd::objects {

namespace {

constexpr RecordedReply kExample{.type = 15, .version = 3, .size_bytes = 5000, .offset = 4096};

}  // namespace

TEST_CASE("objects reply record: the written bytes match the document's example", "[objects]") {
    std::array<std::byte, kRecordedReplyBytesMax> memory{};
    const auto bytes = write_recorded_reply(kExample, memory);
    std::string text = "    the reply, 27 bytes\n";
    for (std::size_t at = 0; at < bytes.size(); at += 16) {
        const std::string offset = std::to_string(at);
        text += "    " + std::string(4 - offset.size(), ' ') + offset + " ";
        for (std::size_t i = at; i < std::min(at + 16, bytes.size()); ++i) {
            text += " " + fop::to_hex(std::span(&bytes[i], 1));
        }
        text += "\n";
    }
    std::ifstream file("docs/formats/reply.md");
    REQUIRE(file.good());
    const std::string document{std::istreambuf_iterator<char>(file), {}};
    INFO("the document should show\n" << text);
    CHECK(document.find(text) != std::string::npos);
    CHECK(read_recorded_reply(bytes) == kExample);
}

TEST_CASE("objects reply record: one of an older server is read", "[objects]") {
    std::array<std::byte, 42> old{};
    for (std::size_t at = 0; at < old.size(); ++at) old[at] = static_cast<std::byte>(at);
    CHECK(read_recorded_reply(old) ==
          RecordedReply{.type = 0x0100,
                        .fid = {.high = 0x0908070605040302, .low = 0x11100f0e0d0c0b0a},
                        .version = 0x1918171615141312,
                        .size_bytes = 0x21201f1e1d1c1b1a,
                        .offset = 0x2928272625242322});
}

TEST_CASE("objects reply record: parts that are zero are left out", "[objects]") {
    const RecordedReply made{.type = 6, .fid = {.high = 0, .low = 7}, .version = 1};
    std::array<std::byte, kRecordedReplyBytesMax> memory{};
    CHECK(write_recorded_reply({}, memory).size() == 3);
    const auto bytes = write_recorded_reply(made, memory);
    CHECK(bytes.size() == 3 + 16 + 8);
    CHECK(read_recorded_reply(bytes) == made);
    memory[2] = std::byte{0x10};
    CHECK(read_recorded_reply(bytes).error().code == Errc::kCorrupt);
}

TEST_CASE("objects reply record: another length is refused", "[objects]") {
    std::array<std::byte, kRecordedReplyBytesMax> memory{};
    const auto bytes = write_recorded_reply(kExample, memory);
    std::vector<std::byte> longer(bytes.begin(), bytes.end());
    longer.push_back({});
    CHECK(read_recorded_reply(longer).error().code == Errc::kCorrupt);
    CHECK(read_recorded_reply(bytes.first(26)).error().code == Errc::kCorrupt);
    CHECK(read_recorded_reply({}).error().code == Errc::kCorrupt);
}

}  // namespace fopd::objects

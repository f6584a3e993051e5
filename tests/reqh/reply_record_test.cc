// Goal: what is recorded of a reply is what docs/formats/reply.md says, and comes back as it was.
#include "reqh/reply_record.h"

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "fop/hex.h"
#include "tests/catch.h"

namespace fopd::reqh {

namespace {

constexpr RecordedReply kExample{.type = 15,
                                 .fid = {.high = 0x0003000000000005, .low = 0x2a00000000000007},
                                 .version = 3,
                                 .size_bytes = 5000,
                                 .offset = 4096};

}  // namespace

TEST_CASE("reqh reply record: the example of the document is what is written", "[reqh]") {
    const auto bytes = write_recorded_reply(kExample);
    std::string text = "    the reply, 42 bytes\n";
    for (std::size_t at = 0; at < bytes.size(); at += 16) {
        const std::string place = std::to_string(at);
        text += "    " + std::string(4 - place.size(), ' ') + place + " ";
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

TEST_CASE("reqh reply record: what is of another length is none", "[reqh]") {
    const auto bytes = write_recorded_reply(kExample);
    std::vector<std::byte> longer(bytes.begin(), bytes.end());
    longer.push_back({});
    CHECK(read_recorded_reply(longer).error().code == Errc::kCorrupt);
    CHECK(read_recorded_reply(std::span(bytes).first(41)).error().code == Errc::kCorrupt);
    CHECK(read_recorded_reply({}).error().code == Errc::kCorrupt);
}

}  // namespace fopd::reqh

// Goal: what is kept about the format says what the code does.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <span>
#include <string>

#include "tests/catch.h"
#include "tests/fop/samples.h"

namespace fopd::fop {

namespace {

std::string content_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    REQUIRE(file.good());
    return {std::istreambuf_iterator<char>(file), {}};
}

std::string example_in(const std::string& path) {
    const std::string page = content_of(path);
    const auto start = page.find("\n00000000 ");
    REQUIRE(start != std::string::npos);
    const auto end = page.find("\n```", start);
    REQUIRE(end != std::string::npos);
    return page.substr(start + 1, end - start);
}

}  // namespace

TEST_CASE("fop message: the code writes the documented example", "[fop]") {
    // Otherwise: build/dev/bin/message_samples shows the examples as they are now.
    REQUIRE(example_in("docs/formats/message.md") == hex_dump(example_message()));
    REQUIRE(example_in("docs/formats/listing.md") == hex_dump(example_listing()));
}

TEST_CASE("fop message: the fuzzer starts from every sample", "[fop]") {
    for (const SampleMessage& sample : sample_messages()) {
        // Otherwise: build/dev/bin/message_samples tests/fuzz/corpus/message
        const std::string kept = content_of("tests/fuzz/corpus/message/" + sample.name);
        CAPTURE(sample.name);
        REQUIRE(std::ranges::equal(std::as_bytes(std::span(kept)), sample.bytes));
    }
    for (const SampleMessage& sample : sample_listings()) {
        // Otherwise: build/dev/bin/message_samples tests/fuzz/corpus/listing listings
        const std::string kept = content_of("tests/fuzz/corpus/listing/" + sample.name);
        CAPTURE(sample.name);
        REQUIRE(std::ranges::equal(std::as_bytes(std::span(kept)), sample.bytes));
    }
}

}  // namespace fopd::fop

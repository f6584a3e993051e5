// Goal: the fuzz targets compile and begin, so that hours of fuzzing can start, and they pass with
// the inputs that are kept. Method: each gets these, and an empty one. A fuzz target aborts when
// something is wrong; memory errors are seen with ASan only.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "tests/catch.h"

#ifndef __SANITIZE_ADDRESS__
#include <malloc.h>
// Without ASan, what a target calls that counts memory. With TSan, mallinfo2() knows nothing.
// NOLINTNEXTLINE(bugprone-reserved-identifier)
extern "C" std::size_t __sanitizer_get_current_allocated_bytes() {
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}
#endif

extern "C" {
#define FOPD_FUZZ_TARGET(name) int fuzz_##name(const std::uint8_t* data, std::size_t size);
#include <fuzz_targets.inc>
#undef FOPD_FUZZ_TARGET
}

namespace fopd {

namespace {

struct FuzzTarget {
    const char* name;
    int (*run)(const std::uint8_t* data, std::size_t size);
};

constexpr FuzzTarget kFuzzTargets[] = {
#define FOPD_FUZZ_TARGET(name) {#name, &fuzz_##name},
#include <fuzz_targets.inc>
#undef FOPD_FUZZ_TARGET
};

std::vector<std::uint8_t> read_input(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    REQUIRE(file.good());
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

TEST_CASE("fuzz inputs: each target passes with an empty input and with those that are kept",
          "[fuzz]") {
    const std::filesystem::path corpora("tests/fuzz/corpus");
    std::size_t with_corpus = 0;
    for (const FuzzTarget& target : kFuzzTargets) {
        CAPTURE(target.name);
        REQUIRE(target.run(nullptr, 0) == 0);
        const std::filesystem::path corpus = corpora / target.name;
        if (!std::filesystem::exists(corpus)) continue;
        ++with_corpus;
        for (const auto& each : std::filesystem::recursive_directory_iterator(corpus)) {
            if (!each.is_regular_file()) continue;
            CAPTURE(each.path());
            const auto input = read_input(each.path());
            REQUIRE(target.run(input.data(), input.size()) <= 0);
        }
    }
    // Each corpus has a target.
    const std::filesystem::directory_iterator folders(corpora);
    CHECK(std::distance(begin(folders), end(folders)) == static_cast<std::ptrdiff_t>(with_corpus));
    CHECK(with_corpus > 0);
}

}  // namespace fopd

// Goal: the fuzz targets do what their tests of hours need: they compile, they begin, and what was
// found once stays mended. Method: each gets its kept inputs, and an empty one. Most fuzz targets
// abort when something is wrong.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "tests/catch.h"

#ifndef __SANITIZE_ADDRESS__
#include <malloc.h>
// Without ASan, what a target that counts memory calls instead.
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
    for (const FuzzTarget& target : kFuzzTargets) {
        CAPTURE(target.name);
        REQUIRE(target.run(nullptr, 0) == 0);
        const std::filesystem::path corpus =
            std::filesystem::path("tests/fuzz/corpus") / target.name;
        if (!std::filesystem::exists(corpus)) continue;
        for (const auto& each : std::filesystem::recursive_directory_iterator(corpus)) {
            if (!each.is_regular_file()) continue;
            CAPTURE(each.path());
            const auto input = read_input(each.path());
            REQUIRE(target.run(input.data(), input.size()) <= 0);
        }
    }
}

}  // namespace fopd

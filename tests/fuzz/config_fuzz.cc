// Whatever the bytes of a configuration file: either problems that can be shown, or a snapshot that
// prints, loads back the same, and survives a reload in both directions.
//
//     build/fuzz/bin/fuzz_config -max_len=4096 tests/fuzz/corpus/config
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "config/schema.h"
#include "core/ensure.h"
#include "core/utf8.h"
#include "tests/config/example_schema.h"

using namespace fopd::config;

namespace {

void check_problems(const Problems& problems) {
    ENSURE(!problems.empty());
    const Position* last = nullptr;
    for (const Problem& problem : problems) {
        ENSURE(problem.file == "f.yaml");
        ENSURE(problem.position.line >= 1);
        ENSURE(problem.position.column >= 1);
        ENSURE(!problem.key.empty());
        ENSURE(!problem.wrong.empty());
        ENSURE(!problem.right.empty());
        const std::string line = to_string(problem);
        ENSURE(fopd::core::is_utf8(line));
        ENSURE(!fopd::core::has_control(line));
        const bool is_sorted =
            last == nullptr || last->line < problem.position.line ||
            (last->line == problem.position.line && last->column <= problem.position.column);
        ENSURE(is_sorted);
        last = &problem.position;
    }
}

void check_round_trip(const Schema& schema, const SnapshotPtr& snapshot) {
    const std::string text = print_effective(*snapshot);
    const auto again = schema.load_text(text, "effective");
    ENSURE(again.has_value());
    ENSURE(print_effective(**again) == text);
    ENSURE(merge(snapshot, *again).changes.empty());
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it by this name.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size_bytes) {
    static const Schema kSchema = example::schema();
    static const SnapshotPtr kDefaults = *kSchema.load_text("", "defaults");

    const std::string_view text(reinterpret_cast<const char*>(data), size_bytes);
    const auto loaded = kSchema.load_text(text, "f.yaml");
    if (!loaded) {
        check_problems(loaded.error());
        return 0;
    }
    check_round_trip(kSchema, *loaded);
    check_round_trip(kSchema, merge(kDefaults, *loaded).snapshot);
    check_round_trip(kSchema, merge(*loaded, kDefaults).snapshot);
    return 0;
}

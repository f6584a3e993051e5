#include "library/settings.h"

#include "config/schema.h"
#include "tests/catch.h"

using namespace fopd;
using namespace fopd::library;

namespace {

using Libraries = std::vector<LibrarySettings>;

std::expected<config::SnapshotPtr, config::Problems> load_libraries(std::string_view item) {
    config::Schema schema;
    schema.add(libraries_section());
    return schema.load_text("libraries:\n  - " + std::string(item) + "\n", "fopd.yaml");
}

std::string problem_of(std::string_view item) {
    const auto loaded = load_libraries(item);
    REQUIRE_FALSE(loaded.has_value());
    return to_string(loaded.error().front());
}

}  // namespace

TEST_CASE("library settings: a library of SCSI devices has a changer and drives", "[library]") {
    const auto loaded = load_libraries(
        "{ name: tl0, kind: scsi, path: /dev/sg3, drive_paths: [/dev/nst0, /dev/nst1], pool: cold "
        "}");
    REQUIRE(loaded.has_value());
    std::vector<devices::PoolSettings> pools{
        {.name = "cold", .family = devices::Family::kTape, .staging = "fast"}};

    const auto options = options_of((*loaded)->get<Libraries>(), pools);

    REQUIRE(options->kind == LibraryKind::kScsi);
    REQUIRE(options->path == "/dev/sg3");
    REQUIRE(options->drive_paths == std::vector<std::string>{"/dev/nst0", "/dev/nst1"});
}

TEST_CASE("library settings: devices that make no sense are refused where they stand",
          "[library]") {
    REQUIRE_THAT(problem_of("{ name: a, kind: scsi, path: /dev/sg3, pool: cold }"),
                 ContainsSubstring("fopd.yaml:2:5: libraries[0].drive_paths: a library of kind "
                                   "scsi has none"));
    REQUIRE_THAT(problem_of("{ name: a, path: /v, drive_paths: [/dev/nst0], pool: cold }"),
                 ContainsSubstring("libraries[0].drive_paths: a library of kind virtual"));
    REQUIRE_THAT(problem_of("{ name: a, kind: scsi, path: /dev/sg3, drive_paths: [/dev/nst0, "
                            "/dev/nst0], pool: cold }"),
                 ContainsSubstring("libraries[0].drive_paths[1]: /dev/nst0 is there twice"));
    REQUIRE_THAT(problem_of("{ name: a, kind: scsi, path: /dev/sg3, drive_paths: [/dev/sg3], "
                            "pool: cold }"),
                 ContainsSubstring("/dev/sg3 is there twice"));
    REQUIRE_THAT(problem_of("{ name: a, kind: scsi, path: /dev/sg3, drive_paths: [nst0], pool: "
                            "cold }"),
                 ContainsSubstring("libraries[0].drive_paths[0]"));
    REQUIRE_THAT(problem_of("{ name: a, kind: tape, path: /v, pool: cold }"),
                 ContainsSubstring("libraries[0].kind"));
}

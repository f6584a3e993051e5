// Goal: the section `libraries` takes what a library can have, and refuses the rest where it
// stands.

#include "library/settings.h"

#include <string>
#include <utility>
#include <vector>

#include "config/schema.h"
#include "tests/catch.h"

using namespace fopd;
using namespace fopd::library;

namespace {

using Libraries = std::vector<LibrarySettings>;

std::expected<config::SnapshotPtr, config::Problems> load(const std::string& text) {
    config::Schema schema;
    schema.add(libraries_section());
    return schema.load_text(text, "fopd.yaml");
}

// With what is required, and one key more.
std::string with(const std::string& line) {
    return "libraries:\n  - name: vtl0\n    path: /vtl\n    pool: cold\n    " + line + "\n";
}

std::string problem_of(const std::string& item) {
    const auto loaded = load("libraries:\n  - " + item + "\n");
    REQUIRE_FALSE(loaded.has_value());
    return to_string(loaded.error().front());
}

}  // namespace

TEST_CASE("library settings: each key is what the file says", "[library]") {
    const auto loaded = load(R"(
libraries:
  - name: robot
    kind: virtual
    path: /srv/tapes
    drives: 3
    cartridges: 40
    model: lto8
    cartridge_size: 2GiB
    timing: calculate
    pool: cold
    migrate_bytes: 1GiB
    migrate_files: 50
    migrate_age: 2h
    piece: 2GiB
    staging_high: 70
    staging_low: 30
    drive_failures: 7
    cartridge_failures: 4
)");
    REQUIRE(loaded.has_value());
    const auto& libraries = (*loaded)->get<Libraries>();
    REQUIRE(libraries.size() == 1);
    const std::vector<devices::PoolSettings> pools{
        {.name = "fast"},
        {.name = "cold", .family = devices::Family::kTape, .staging = "fast", .copies = 3}};
    REQUIRE(check_pools(libraries, pools).empty());

    const auto options = options_of(libraries, pools);

    REQUIRE(options.has_value());
    CHECK(options->name == "robot");
    CHECK(options->kind == LibraryKind::kVirtual);
    CHECK(options->path == "/srv/tapes");
    CHECK(options->drives == 3);
    CHECK(options->cartridges == 40);
    CHECK(options->model == "lto8");
    CHECK(options->cartridge_bytes == 2ULL << 30);
    CHECK(options->timing == LibraryTiming::kCalculate);
    CHECK(options->health.drive_failures == 7);
    CHECK(options->health.cartridge_failures == 4);
    REQUIRE(options->pools.size() == 1);
    const TapePoolOptions& pool = options->pools.front();
    CHECK(pool.name == "cold");
    CHECK(pool.staging == "fast");
    CHECK(pool.copies == 3);
    CHECK(pool.migrate_bytes == 1ULL << 30);
    CHECK(pool.migrate_files == 50);
    CHECK(pool.migrate_age == 2h);
    CHECK(pool.piece_bytes == 2ULL << 30);
    CHECK(pool.staging_high == 70);
    CHECK(pool.staging_low == 30);
}

TEST_CASE("library settings: what is left out has the defaults of the options", "[library]") {
    const auto loaded = load("libraries: [ { name: vtl0, path: /vtl, pool: cold } ]\n");
    REQUIRE(loaded.has_value());
    const std::vector<devices::PoolSettings> pools{
        {.name = "cold", .family = devices::Family::kTape, .staging = "fast"}};

    const auto options = options_of((*loaded)->get<Libraries>(), pools);

    REQUIRE(options.has_value());
    const LibraryOptions defaults;
    const TapePoolOptions pool_defaults;
    CHECK(options->drives == defaults.drives);
    CHECK(options->cartridges == defaults.cartridges);
    CHECK(options->model == defaults.model);
    CHECK(options->cartridge_bytes == 0);
    CHECK(options->timing == LibraryTiming::kNone);
    CHECK(options->health.drive_failures == defaults.health.drive_failures);
    CHECK(options->health.cartridge_failures == defaults.health.cartridge_failures);
    CHECK(options->pools.front().migrate_bytes == pool_defaults.migrate_bytes);
    CHECK(options->pools.front().piece_bytes == 64ULL << 30);
    CHECK(options->pools.front().staging_high == pool_defaults.staging_high);
    CHECK_FALSE(options_of({}, pools).has_value());
}

TEST_CASE("library settings: each mistake is refused at its key", "[library]") {
    const std::vector<std::pair<std::string, std::string>> mistakes{
        {"kind: paper", "kind"},
        {"drives: 0", "drives"},
        {"drives: 65", "drives"},
        {"cartridges: 0", "cartridges"},
        {"cartridges: 10001", "cartridges"},
        {"model: lto5", "model"},
        {"cartridge_size: 1KiB", "cartridge_size"},
        {"cartridge_size: 2PiB", "cartridge_size"},
        {"cartridge_size: auto", "cartridge_size"},
        {"timing: slow", "timing"},
        {"migrate_bytes: 0", "migrate_bytes"},
        {"migrate_files: 0", "migrate_files"},
        {"migrate_age: 10", "migrate_age"},
        {"migrate_age: 10ms", "migrate_age"},
        {"piece: 1023KiB", "piece"},
        {"piece: 2000000", "piece"},  // No whole number of blocks.
        {"staging_high: 101", "staging_high"},
        {"staging_low: -1", "staging_low"},
        {"staging_low: 90", "staging_low"},  // Higher than staging_high.
        {"drive_failures: 1", "drive_failures"},
        {"drive_failures: 1001", "drive_failures"},
        {"cartridge_failures: 0", "cartridge_failures"},
        {"cartridge_failures: many", "cartridge_failures"},
        {"shelves: 2", "shelves"},
    };
    for (const auto& [line, key] : mistakes) {
        CAPTURE(line);
        const auto loaded = load(with(line));
        REQUIRE_FALSE(loaded.has_value());
        CHECK(loaded.error().front().key == "libraries[0]." + key);
        CHECK(loaded.error().front().position.line == 5);
    }
    CHECK(load(with("staging_high: 0")).has_value());  // Then the other does not matter.
}

TEST_CASE("library settings: name, path and pool are required, and one library is all",
          "[library]") {
    const auto key_of = [](const std::string& text) {
        const auto loaded = load(text);
        return loaded ? std::string() : loaded.error().front().key;
    };
    CHECK(key_of("libraries: [ { path: /vtl, pool: cold } ]") == "libraries[0].name");
    CHECK(key_of("libraries: [ { name: vtl0, pool: cold } ]") == "libraries[0].path");
    CHECK(key_of("libraries: [ { name: vtl0, path: /vtl } ]") == "libraries[0].pool");
    CHECK(key_of("libraries: [ { name: vtl0, path: vtl, pool: cold } ]") == "libraries[0].path");
    CHECK(key_of("libraries: [ { name: 'a b', path: /vtl, pool: cold } ]") == "libraries[0].name");
    CHECK(
        key_of("libraries: [ { name: a, path: /a, pool: cold }, { name: b, path: /b, pool: cold } "
               "]") == "libraries");
    CHECK(key_of("libraries: []").empty());
}

TEST_CASE("library settings: a library of SCSI devices has a changer and drives", "[library]") {
    const auto loaded = load(
        "libraries:\n  - { name: tl0, kind: scsi, path: /dev/sg3, drive_paths: [/dev/nst0, "
        "/dev/nst1], pool: cold "
        "}\n");
    REQUIRE(loaded.has_value());
    std::vector<devices::PoolSettings> pools{
        {.name = "cold", .family = devices::Family::kTape, .staging = "fast"}};

    const auto options = options_of((*loaded)->get<Libraries>(), pools);

    REQUIRE(options->kind == LibraryKind::kScsi);
    REQUIRE_FALSE(options->labels_blank);
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
    REQUIRE_THAT(
        problem_of("{ name: a, kind: scsi, path: /dev/sg3, drive_paths: [/dev/nst0, "
                   "/dev/nst0], pool: cold }"),
        ContainsSubstring("libraries[0].drive_paths[1]: device /dev/nst0 is listed twice"));
    REQUIRE_THAT(problem_of("{ name: a, kind: scsi, path: /dev/sg3, drive_paths: [/dev/sg3], "
                            "pool: cold }"),
                 ContainsSubstring("device /dev/sg3 is listed twice"));
    REQUIRE_THAT(problem_of("{ name: a, kind: scsi, path: /dev/sg3, drive_paths: [nst0], pool: "
                            "cold }"),
                 ContainsSubstring("libraries[0].drive_paths[0]"));
    for (const std::string key :
         {"drives: 3", "cartridges: 9", "cartridge_size: 3GiB", "timing: real"}) {
        REQUIRE_THAT(
            problem_of("{ name: a, kind: scsi, path: /dev/sg3, drive_paths: [/dev/nst0], " + key +
                       ", pool: cold }"),
            ContainsSubstring("libraries[0]." + key.substr(0, key.find(':')) +
                              ": only a library of kind virtual has this key"));
    }
    REQUIRE_THAT(problem_of("{ name: a, kind: tape, path: /v, pool: cold }"),
                 ContainsSubstring("libraries[0].kind"));
}

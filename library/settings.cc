#include "library/settings.h"

#include <algorithm>
#include <span>
#include <utility>

#include "devices/label.h"
#include "devices/tape/drive_model.h"

namespace fopd::library {

namespace {

config::TypePtr<std::string> name_type() {
    return config::text({.length_min = 1,
                         .length_max = devices::kPoolNameBytesMax,
                         .charset = config::Charset::kName});
}

config::TypePtr<std::string> model_type() {
    std::vector<std::pair<std::string, std::string>> words;
    for (const devices::DriveModel& each : devices::drive_models()) {
        words.emplace_back(each.technology, each.technology);
    }
    return config::choice<std::string>(std::move(words));
}

void add_migration(config::Record<LibrarySettings>& record) {
    record.field("migrate_bytes", &LibrarySettings::migrate_bytes,
                 config::size({.min = 1, .max = 1ULL << 50}),
                 "The objects of a collection are written to tape when this many bytes of them "
                 "wait, or when migrate_files or migrate_age is reached.");
    record.field("migrate_files", &LibrarySettings::migrate_files,
                 config::integer<std::uint32_t>({.min = 1, .max = 10'000'000}),
                 "The objects of a collection are also written to tape when this many of them "
                 "wait.");
    record.field("migrate_age", &LibrarySettings::migrate_age,
                 config::duration({.min = 1s, .max = 24h * 30}),
                 "The objects of a collection are also written to tape when the oldest of them "
                 "has waited for this time.");
    record.field("piece", &LibrarySettings::piece_bytes,
                 config::size({.min = 1ULL << 20, .max = 1ULL << 50, .multiple_of = 4096}),
                 "A larger object is written to tape in pieces of this size, which may go to "
                 "different cartridges. Of a very large one they are larger, as there are at most "
                 "256, or 128 if the pool has 2 copies.");
    record.field("staging_high", &LibrarySettings::staging_high,
                 config::integer<std::uint32_t>({.min = 0, .max = 100}),
                 "When a staging disk is fuller than so many percent, objects that are on tape "
                 "leave it, the oldest first. 0: they leave it on request, and when "
                 "a change or a recall finds no room.");
    record.field(
        "staging_low", &LibrarySettings::staging_low,
        config::integer<std::uint32_t>({.min = 0, .max = 100}),
        "When objects leave a staging disk because of staging_high, they leave it until it is "
        "less full than so many percent.");
}

void add_health(config::Record<LibrarySettings>& record) {
    record.field(
        "drive_failures", &LibrarySettings::drive_failures,
        config::integer<std::uint32_t>({.min = 2, .max = 1000}),
        "A drive is down after so many failures in a row: with several cartridges, or with "
        "cartridges that other drives can use.");
    record.field(
        "cartridge_failures", &LibrarySettings::cartridge_failures,
        config::integer<std::uint32_t>({.min = 1, .max = 1000}),
        "A cartridge is not written any more after so many failures in a drive, if no other "
        "drive has tried it. If it fails in two drives, it is not written any more at once.");
}

void check_drive_paths(const LibrarySettings& library, config::Complaints& complaints) {
    const std::vector<std::string>& paths = library.drive_paths;
    if (library.kind == LibraryKind::kScsi && paths.empty()) {
        complaints.add("drive_paths", "a library of kind scsi has none",
                       "write the device of at least one drive");
    }
    if (library.kind == LibraryKind::kVirtual && !paths.empty()) {
        complaints.add("drive_paths", "a library of kind virtual has no devices",
                       "write kind: scsi, or leave it out");
    }
    for (std::size_t i = 0; i < paths.size(); ++i) {
        const bool is_twice =
            paths[i] == library.path || std::ranges::count(std::span(paths).first(i), paths[i]) > 0;
        if (!is_twice) continue;
        complaints.add("drive_paths[" + std::to_string(i) + "]",
                       "device " + paths[i] + " is listed twice", "write each device once");
    }
}

// Refuses keys that describe a virtual library to be made.
void check_virtual_keys(const LibrarySettings& library, config::Complaints& complaints) {
    if (library.kind == LibraryKind::kVirtual) return;
    const LibrarySettings defaults;
    const auto check = [&complaints](const char* key, bool is_set) {
        if (!is_set) return;
        complaints.add(key, "only a library of kind virtual has this key", "leave it out");
    };
    check("drives", library.drives != defaults.drives);
    check("cartridges", library.cartridges != defaults.cartridges);
    check("cartridge_size", library.cartridge_bytes != defaults.cartridge_bytes);
    check("timing", library.timing != defaults.timing);
}

// Each copy needs a cartridge and a drive at the same time.
void check_copies(const LibrarySettings& library, const devices::PoolSettings& pool,
                  std::size_t index, std::vector<config::Mistake>& mistakes) {
    const auto check = [&](const char* key, std::size_t count) {
        if (count >= pool.copies) return;
        mistakes.push_back(
            {.wrong = "library " + library.name + " has fewer " + key + " than pool " + pool.name +
                      " has copies",
             .right = "write at least " + std::to_string(pool.copies) + ", or fewer copies",
             .key = "[" + std::to_string(index) + "]." + key});
    };
    if (library.kind == LibraryKind::kScsi) return check("drive_paths", library.drive_paths.size());
    check("drives", library.drives);
    check("cartridges", library.cartridges);
}

}  // namespace

config::ListSection<LibrarySettings> libraries_section() {
    config::Record<LibrarySettings> record;
    record.field("name", &LibrarySettings::name, name_type(), "The name of the library in the log.",
                 {.need = config::Need::kRequired, .example = "vtl0"});
    record.field("kind", &LibrarySettings::kind,
                 config::choice<LibraryKind>(
                     {{"virtual", LibraryKind::kVirtual}, {"scsi", LibraryKind::kScsi}}),
                 "virtual: a directory, with a file for each cartridge. scsi: a media changer and "
                 "its tape drives.");
    record.field("path", &LibrarySettings::path, config::path(),
                 "virtual: the directory, which is made if it is not there. scsi: the device of "
                 "the changer, such as /dev/tape/by-id/scsi-3500507630f00a00a.",
                 {.need = config::Need::kRequired, .example = "/var/lib/fopd/vtl0"});
    record.field("drive_paths", &LibrarySettings::drive_paths,
                 config::list_of(config::path(), {.length_max = 64}),
                 "scsi: the devices of the drives that this node uses, such as "
                 "/dev/tape/by-id/scsi-3500507630f00a00b-nst.");
    record.field("drives", &LibrarySettings::drives,
                 config::integer<std::uint32_t>({.min = 1, .max = 64}),
                 "How many drives a virtual library has.");
    record.field(
        "cartridges", &LibrarySettings::cartridges,
        config::integer<std::uint32_t>({.min = 1, .max = 10'000}),
        "How many cartridges a virtual library is made with. Later it has those whose files "
        "are in its directory.");
    record.field("model", &LibrarySettings::model, model_type(),
                 "The generation of the drives of a virtual library, and of "
                 "the cartridges that it is made with. Also of SCSI drives that do not tell it.");
    record.field("cartridge_size", &LibrarySettings::cartridge_bytes,
                 config::none_or(config::size({.min = 1ULL << 20, .max = 1ULL << 50})),
                 "The capacity of a virtual cartridge. none: as the model's.");
    record.field("timing", &LibrarySettings::timing,
                 config::choice<LibraryTiming>({{"none", LibraryTiming::kNone},
                                                {"calculate", LibraryTiming::kCalculate},
                                                {"real", LibraryTiming::kReal}}),
                 "How long virtual drives take. none: as long as the file takes. calculate: "
                 "likewise, and they count how long the model would take. real: as long as the "
                 "model.");
    record.field(
        "label_blank", &LibrarySettings::label_blank,
        config::choice<LabelBlank>(
            {{"auto", LabelBlank::kAuto}, {"yes", LabelBlank::kYes}, {"no", LabelBlank::kNo}}),
        "Whether a blank cartridge is labelled when objects need one. no: only by "
        "fopctl format. auto: yes in a virtual library, no in one of kind scsi, where "
        "blank cartridges may be of other programs.");
    record.field("pool", &LibrarySettings::pool, name_type(),
                 "The tape pool whose objects are on its cartridges.",
                 {.need = config::Need::kRequired, .example = "cold"});
    add_migration(record);
    add_health(record);
    record.identified_by("name");
    record.check(&check_drive_paths);
    record.check(&check_virtual_keys);
    record.check([](const LibrarySettings& library, config::Complaints& complaints) {
        if (library.staging_high == 0 || library.staging_low <= library.staging_high) return;
        complaints.add("staging_low", "it is higher than staging_high",
                       "write at most the percentage of staging_high");
    });
    return {"libraries", "The tape library of this node: at most one.", std::move(record),
            config::ListRule{.length_max = 1}};
}

std::vector<config::Mistake> check_pools(const std::vector<LibrarySettings>& libraries,
                                         const std::vector<devices::PoolSettings>& pools) {
    std::vector<config::Mistake> mistakes;
    for (std::size_t i = 0; i < libraries.size(); ++i) {
        const LibrarySettings& each = libraries[i];
        const auto pool = std::ranges::find(pools, each.pool, &devices::PoolSettings::name);
        std::string wrong = "the pool of library " + each.name + ", " + each.pool + ",";
        if (pool == pools.end()) {
            wrong += " is not in pools";
        } else if (pool->family != devices::Family::kTape) {
            wrong += " is not a tape pool";
        } else {
            check_copies(each, *pool, i, mistakes);
            continue;
        }
        mistakes.push_back({.wrong = std::move(wrong),
                            .right = "write the name of a pool of the family tape",
                            .key = "[" + std::to_string(i) + "].pool"});
    }
    return mistakes;
}

std::optional<LibraryOptions> options_of(const std::vector<LibrarySettings>& libraries,
                                         const std::vector<devices::PoolSettings>& pools) {
    if (libraries.empty()) return std::nullopt;
    const LibrarySettings& from = libraries.front();
    const auto pool = std::ranges::find(pools, from.pool, &devices::PoolSettings::name);
    LibraryOptions options{.name = from.name,
                           .kind = from.kind,
                           .path = from.path,
                           .drive_paths = from.drive_paths,
                           .drives = from.drives,
                           .cartridges = from.cartridges,
                           .model = from.model,
                           .cartridge_bytes = from.cartridge_bytes.value_or(0),
                           .timing = from.timing,
                           .labels_blank = from.label_blank == LabelBlank::kAuto
                                               ? from.kind == LibraryKind::kVirtual
                                               : from.label_blank == LabelBlank::kYes,
                           .health = {.drive_failures = from.drive_failures,
                                      .cartridge_failures = from.cartridge_failures}};
    options.pools.push_back({.name = from.pool,
                             .staging = pool->staging.value_or(""),
                             .copies = pool->copies,
                             .migrate_bytes = from.migrate_bytes,
                             .migrate_files = from.migrate_files,
                             .migrate_age = from.migrate_age,
                             .piece_bytes = from.piece_bytes,
                             .staging_high = from.staging_high,
                             .staging_low = from.staging_low});
    return options;
}

}  // namespace fopd::library

#include "io_sched/settings.h"

#include <algorithm>
#include <expected>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/types.h"
#include "core/whole_number.h"

namespace fopd::io_sched {

namespace {

const config::FieldRule kLive{.reload = config::Reload::kLive};

// Live, with a value for the sample file that is not the default.
config::FieldRule live_with(const char* example) {
    return {.reload = config::Reload::kLive, .example = example};
}

template <typename Row>
config::TypePtr<const Row*> named_rows(std::span<const Row> rows) {
    std::vector<std::pair<std::string, const Row*>> words;
    for (const Row& row : rows) words.emplace_back(row.name, &row);
    return config::choice<const Row*>(std::move(words));
}

template <typename Row>
config::TypePtr<const Row*> rows_for(std::span<const Row> rows, IoType type) {
    std::vector<std::pair<std::string, const Row*>> words;
    for (const Row& row : rows) {
        if (row.serves[static_cast<std::size_t>(type)]) words.emplace_back(row.name, &row);
    }
    return config::choice<const Row*>(std::move(words));
}

config::TypePtr<const DispatchAlgorithm*> dispatch_for(IoFamily family) {
    std::vector<std::pair<std::string, const DispatchAlgorithm*>> words;
    for (const DispatchAlgorithm& row : dispatch_algorithms()) {
        if (row.suits[static_cast<std::size_t>(family)]) words.emplace_back(row.name, &row);
    }
    return config::choice<const DispatchAlgorithm*>(std::move(words));
}

config::TypePtr<ReadOrder> read_order() {
    std::vector<std::pair<std::string, ReadOrder>> words;
    for (std::size_t i = 0; i < kReadOrderNames.size(); ++i) {
        words.emplace_back(kReadOrderNames[i], static_cast<ReadOrder>(i));
    }
    return config::choice<ReadOrder>(std::move(words));
}

config::TypePtr<const devices::DriveModel*> technology() {
    std::vector<std::pair<std::string, const devices::DriveModel*>> words;
    for (const devices::DriveModel& model : devices::drive_models()) {
        words.emplace_back(model.technology, &model);
    }
    return config::choice<const devices::DriveModel*>(std::move(words));
}

// Three numbers, for reads, writes and formats: 40,40,20.
config::TypePtr<DriveCounts> for_each_type(std::uint32_t min) {
    constexpr std::uint32_t kMost = 1000;
    const std::string limits = std::to_string(min) + " to " + std::to_string(kMost);
    const std::string right =
        "three whole numbers from " + limits + ", for reads, writes and formats, such as 2,1,1";
    const auto parse =
        [min, limits,
         right](const config::Node& scalar) -> std::expected<DriveCounts, config::Mistake> {
        DriveCounts counts{};
        std::string_view text = scalar.text;
        for (std::size_t i = 0; i < kIoTypeCount; ++i) {
            const std::size_t comma = text.find(',');
            const bool is_last = i + 1 == kIoTypeCount;
            if ((comma == std::string_view::npos) != is_last) {
                return std::unexpected(config::Mistake{"not three numbers", "write " + right});
            }
            std::string_view word = text.substr(0, comma);
            while (word.starts_with(' ')) word.remove_prefix(1);
            while (word.ends_with(' ')) word.remove_suffix(1);
            const auto count = core::whole_number<std::uint32_t>(word);
            if (!count) {
                return std::unexpected(config::Mistake{
                    "'" + std::string(word) + "' is not a whole number", "write " + right});
            }
            if (*count < min || *count > kMost) {
                return std::unexpected(config::Mistake{std::string(word) + " is not from " + limits,
                                                       "write " + right});
            }
            counts[i] = *count;
            if (!is_last) text.remove_prefix(comma + 1);
        }
        return counts;
    };
    return std::make_shared<config::ScalarType<DriveCounts>>(
        right, parse, [](const DriveCounts& counts) {
            return config::plain_scalar(std::to_string(counts[0]) + "," +
                                        std::to_string(counts[1]) + "," +
                                        std::to_string(counts[2]));
        });
}

config::Record<TechnologyLimits> technology_limits() {
    config::Record<TechnologyLimits> record;
    record.field("technology", &TechnologyLimits::technology, technology(),
                 "The generation of the drives.",
                 {.need = config::Need::kRequired, .example = "lto9"});
    record.field(
        "min", &TechnologyLimits::min, for_each_type(0),
        "How many drives reads, writes and formats each get at least, while they have requests.",
        {.reload = config::Reload::kLive, .need = config::Need::kRequired, .example = "0,0,0"});
    record.field(
        "max", &TechnologyLimits::max, for_each_type(0),
        "How many drives reads, writes and formats each get at most. 0: none.",
        {.reload = config::Reload::kLive, .need = config::Need::kRequired, .example = "4,4,1"});
    record.identified_by("technology");
    record.check([](const TechnologyLimits& limits, config::Complaints& complaints) {
        for (std::size_t i = 0; i < kIoTypeCount; ++i) {
            if (limits.min[i] <= limits.max[i]) continue;
            complaints.add("min", "more than max", "write at most the number of max for each type");
            return;
        }
    });
    return record;
}

config::Record<TapeSettings> tape_record() {
    config::Record<TapeSettings> record;
    record.field("read_algo", &TapeSettings::read_algo, rows_for(drive_algorithms(), IoType::kRead),
                 "The order of reads. grouped_read: one mount for all that waits for a cartridge.",
                 live_with("grouped_read"));
    record.field("write_algo", &TapeSettings::write_algo,
                 rows_for(drive_algorithms(), IoType::kWrite),
                 "The order of writes. grouped_write: a collection stays on its cartridge.",
                 live_with("grouped_write"));
    record.field("format_algo", &TapeSettings::format_algo,
                 rows_for(drive_algorithms(), IoType::kFormat),
                 "The order in which cartridges are formatted.", kLive);
    record.field(
        "dispatch_algo", &TapeSettings::dispatch_algo, dispatch_for(IoFamily::kTape),
        "How drives are divided among reads, writes and formats. none: each uses all drives. "
        "fair_share: in proportion to what waits.",
        kLive);
    record.field("fair_share_weights", &TapeSettings::fair_share_weights,
                 config::auto_or(for_each_type(1)),
                 "fair_share: the shares of reads, writes and formats; none may be 0. auto: by the "
                 "cost of what waits.",
                 kLive);
    record.field("fair_share_limits", &TapeSettings::fair_share_limits,
                 config::list_of(config::map_of(technology_limits())),
                 "fair_share: the least and the most drives of each technology. If one has limits, "
                 "all that the libraries have need them.",
                 kLive);
    record.field(
        "request_algo", &TapeSettings::request_algo, named_rows(request_algorithms()),
        "Whether a read, a write or a format is next where they share a drive. fair_share: in "
        "proportion to weights, by the time that requests take.",
        kLive);
    record.field("request_fair_share_weights", &TapeSettings::request_fair_share_weights,
                 for_each_type(1), "The weights of request_algo fair_share.", kLive);
    record.field("grouped_read_order", &TapeSettings::grouped_read_order, read_order(),
                 "The order of the files of a cartridge. linear: as they were written. scan: along "
                 "the tape and back. sltf: the nearest next. auto: the one that takes least time.",
                 kLive);
    record.field("grouped_read_mount_bytes", &TapeSettings::grouped_read_mount_bytes,
                 config::size(),
                 "A cartridge is mounted when reads of this many bytes wait for it, or when one of "
                 "the next two limits is reached.",
                 kLive);
    record.field("grouped_read_mount_files", &TapeSettings::grouped_read_mount_files,
                 config::integer<std::uint32_t>({.min = 1, .max = 1'000'000}),
                 "A cartridge is also mounted when reads of this many files wait for it.", kLive);
    record.field(
        "grouped_read_mount_age", &TapeSettings::grouped_read_mount_age,
        config::duration({.max = 7 * 24h}),
        "A cartridge is also mounted when a read has waited for it for this time. 0s: at once, "
        "whatever the two limits before are.",
        kLive);
    record.field("grouped_read_max_wait", &TapeSettings::grouped_read_max_wait,
                 config::duration({.min = 1s, .max = 7 * 24h}),
                 "A cartridge for which a read has waited for longer goes before all others, also "
                 "before more reads of one that is mounted.",
                 kLive);
    record.field("grouped_read_stay_mounted", &TapeSettings::grouped_read_stay_mounted,
                 config::duration({.max = 24h}),
                 "How long a cartridge without waiting requests keeps its drive from other reads. "
                 "Writes, formats, and reads that have waited for grouped_read_max_wait take the "
                 "drive at once.",
                 kLive);
    record.field("grouped_write_max_wait", &TapeSettings::grouped_write_max_wait,
                 config::duration({.min = 1s, .max = 7 * 24h}),
                 "A collection that has waited for longer goes before one whose cartridge is "
                 "mounted. It matters mainly during a repack: otherwise a collection has one batch "
                 "of writes at a time, and leaves its drive after each to the oldest.",
                 kLive);
    return record;
}

}  // namespace

FairShareOptions TapeSettings::fair_share() const {
    FairShareOptions options{.weights = fair_share_weights};
    for (const TechnologyLimits& each : fair_share_limits) {
        options.limits[std::string(each.technology->technology)] = {.min = each.min,
                                                                    .max = each.max};
    }
    return options;
}

bool TapeSettings::lacks_limits_for(Technology wanted) const {
    if (fair_share_limits.empty()) return false;
    return std::ranges::none_of(fair_share_limits, [&](const TechnologyLimits& each) {
        return each.technology->technology == wanted;
    });
}

config::Section<IoSchedSettings> io_sched_section() {
    config::Section<IoSchedSettings> section("io_sched",
                                             "The order of the reads and writes of a device.");
    section.field("read_algo", &IoSchedSettings::read_algo, rows_for(algorithms(), IoType::kRead),
                  "The order of reads.", kLive);
    section.field("write_algo", &IoSchedSettings::write_algo,
                  rows_for(algorithms(), IoType::kWrite), "The order of writes.", kLive);
    section.field("format_algo", &IoSchedSettings::format_algo,
                  rows_for(algorithms(), IoType::kFormat),
                  "The order in which freed space is discarded (\"formats\" below).", kLive);
    section.field(
        "dispatch_algo", &IoSchedSettings::dispatch_algo, dispatch_for(IoFamily::kDisk),
        "How devices are divided among reads, writes and formats. none: each uses all devices.",
        kLive);
    section.field("request_algo", &IoSchedSettings::request_algo, named_rows(request_algorithms()),
                  "Whether a read, a write or a format is next. fifo: the oldest request. "
                  "fair_share: in proportion to weights, by the cost of requests.",
                  kLive);
    section.field("request_fair_share_weights", &IoSchedSettings::request_fair_share_weights,
                  for_each_type(1), "The weights of request_algo fair_share.", kLive);
    section.field(
        "elevator_max_wait", &IoSchedSettings::elevator_max_wait,
        config::duration({.min = 1ms, .max = 1h}),
        "elevator: a request that has waited for longer goes before requests at nearer positions.",
        kLive);
    section.field(
        "latency_goal", &IoSchedSettings::latency_goal,
        config::auto_or(config::duration({.min = 10us, .max = 10s})),
        "A device gets as many requests at a time as it completes within this time, but at "
        "least 16, or 4 if it rotates, and at most depth_max, counted as there. auto: 20ms for "
        "rotating "
        "disks and 2ms for others.");
    section.field("depth_max", &IoSchedSettings::depth_max,
                  config::integer<std::uint32_t>({.min = 1, .max = 4096}),
                  "About how many reads and writes a device has at a time, at most, without those "
                  "of the log. Each counts once, and once more for each 64KiB; the last may exceed "
                  "the limit, and two of any size may run, unless it is 1.");
    section.field("tape", &IoSchedSettings::tape, config::map_of(tape_record()),
                  "The order of the requests of tape drives, whose cartridges change.");
    return section;
}

}  // namespace fopd::io_sched

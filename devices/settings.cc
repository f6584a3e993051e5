#include "devices/settings.h"

#include <algorithm>
#include <utility>

#include "devices/device.h"
#include "devices/label.h"

namespace fopd::devices {

namespace {

// Enough for the label, the superblocks of the log, and a few segments.
constexpr std::uint64_t kSizeBytesMin = 16ULL << 20;
constexpr std::uint64_t kSizeBytesMax = 1ULL << 60;

config::TypePtr<std::string> name_type() {
    return config::text(
        {.length_min = 1, .length_max = kPoolNameBytesMax, .charset = config::Charset::kName});
}

// In these directories, a misspelt device name would create a file in memory that looks like a
// disk. /dev/shm is used for memory on purpose.
bool is_in_dev(const std::string& path) {
    return path.starts_with("/dev/") && !path.starts_with("/dev/shm/");
}

}  // namespace

config::ListSection<DeviceSettings> devices_section() {
    config::Record<DeviceSettings> record;
    record.field("name", &DeviceSettings::name, name_type(),
                 "The name of the disk in the log and in fopctl.",
                 {.need = config::Need::kRequired, .example = "d0"});
    record.field("path", &DeviceSettings::path, config::path(),
                 "A block device, preferably by its name below /dev/disk/by-id, or a file. This "
                 "key and the next ones cannot change while the disk is open.",
                 {.reload = config::Reload::kLive,
                  .need = config::Need::kRequired,
                  .example = "/var/lib/fopd/d0.img"});
    record.field("size", &DeviceSettings::size_bytes,
                 config::none_or(config::size(
                     {.min = kSizeBytesMin, .max = kSizeBytesMax, .multiple_of = kBlockBytes})),
                 "The size with which a missing file is made. An existing file keeps its size. "
                 "none: the file must exist.",
                 {.reload = config::Reload::kLive});
    record.field("thin", &DeviceSettings::thin, config::boolean(),
                 "Whether a file that is made takes space as it fills, instead of all at once. "
                 "When its file system is full, the disk takes no more writes.",
                 {.reload = config::Reload::kLive});
    record.field(
        "pool", &DeviceSettings::pool, name_type(), "The pool of the disk.",
        {.reload = config::Reload::kLive, .need = config::Need::kRequired, .example = "fast"});
    record.identified_by("name");
    record.check([](const DeviceSettings& device, config::Complaints& complaints) {
        if (!device.size_bytes || !is_in_dev(device.path)) return;
        complaints.add("size", "the path is that of a device, which has a size", "leave out size");
    });
    // The settings of an open disk cannot change: the daemon refuses such a reload.
    return {"devices",
            "The disks of this node. A reload opens disks that are new in the list, and closes "
            "empty disks that it no longer has. The first disk of a pool needs a restart.",
            std::move(record), config::ListRule{}, config::Reload::kLive};
}

config::ListSection<PoolSettings> pools_section() {
    config::Record<PoolSettings> record;
    record.field("name", &PoolSettings::name, name_type(), "The name of the pool.",
                 {.need = config::Need::kRequired, .example = "fast"});
    record.field("family", &PoolSettings::family,
                 config::choice<Family>({{"disk", Family::kDisk}, {"tape", Family::kTape}}),
                 "disk: its objects stay on its devices. tape: they are written to tapes of a "
                 "library, and have no devices of their own.");
    record.field("staging", &PoolSettings::staging, config::none_or(name_type()),
                 "Of a tape pool: the disk pool that its uploads land on. none: only for a disk "
                 "pool.");
    record.field("copies", &PoolSettings::copies,
                 config::integer<std::uint32_t>({.min = 1, .max = kTapeCopiesMax}),
                 "Of a tape pool: on how many cartridges each object is written, at the same time. "
                 "It may leave the disks when it is on all of them.");
    record.field("quota", &PoolSettings::quota_bytes, config::none_or(config::size({.min = 1})),
                 "How many bytes its objects may take, on disks or tapes. none: no limit.",
                 {.reload = config::Reload::kLive});
    record.identified_by("name");
    record.check([](const PoolSettings& pool, config::Complaints& complaints) {
        if (pool.family == Family::kTape && !pool.staging) {
            complaints.add("staging", "a tape pool needs disks that its uploads land on",
                           "write the name of a disk pool");
        }
        if (pool.family == Family::kDisk && pool.staging) {
            complaints.add("staging", "only a tape pool has a staging",
                           "leave out staging, or write family: tape");
        }
        if (pool.family == Family::kDisk && pool.copies != 1) {
            complaints.add("copies", "only a tape pool has copies",
                           "leave out copies, or write family: tape");
        }
    });
    return {"pools", "Named sets of objects, and of the disks or tapes that hold them.",
            std::move(record)};
}

std::vector<config::Mistake> check_staging(const std::vector<PoolSettings>& pools) {
    std::vector<config::Mistake> mistakes;
    const std::string right = "write the name of a pool of the family disk";
    for (std::size_t i = 0; i < pools.size(); ++i) {
        const PoolSettings& pool = pools[i];
        if (!pool.staging) continue;
        const std::string key = "[" + std::to_string(i) + "].staging";
        const auto staging = std::ranges::find(pools, *pool.staging, &PoolSettings::name);
        const std::string of = "the staging of pool " + pool.name + ", " + *pool.staging + ",";
        if (staging == pools.end()) {
            mistakes.push_back({.wrong = of + " is not in pools", .right = right, .key = key});
        } else if (staging->family != Family::kDisk) {
            mistakes.push_back({.wrong = of + " is not a disk pool", .right = right, .key = key});
        }
    }
    return mistakes;
}

std::vector<config::Mistake> check_libraries(const std::vector<PoolSettings>& pools,
                                             std::span<const std::string> served) {
    std::vector<config::Mistake> mistakes;
    for (std::size_t i = 0; i < pools.size(); ++i) {
        const PoolSettings& pool = pools[i];
        const bool is_served = std::ranges::find(served, pool.name) != served.end();
        if (pool.family == Family::kTape && !is_served) {
            mistakes.push_back(
                {.wrong = "tape pool " + pool.name + " needs a library that has its tapes",
                 .right = "write a library in libraries whose pool it is, or leave out the pool",
                 .key = "[" + std::to_string(i) + "]"});
        }
    }
    return mistakes;
}

std::vector<std::string> check_devices(const std::vector<DeviceSettings>& devices,
                                       const std::vector<PoolSettings>& pools) {
    std::vector<std::string> problems;
    for (auto device = devices.begin(); device != devices.end(); ++device) {
        const auto pool = std::ranges::find(pools, device->pool, &PoolSettings::name);
        if (pool == pools.end()) {
            problems.push_back("device " + device->name + " is of pool " + device->pool +
                               ", which pools does not have");
        }
        if (pool != pools.end() && pool->family == Family::kTape) {
            problems.push_back("device " + device->name + " is of pool " + device->pool +
                               ", which is a tape pool");
        }
        const auto same = std::find_if(
            devices.begin(), device,
            [device](const DeviceSettings& each) { return each.path == device->path; });
        if (same != device) {
            problems.push_back("devices " + same->name + " and " + device->name +
                               " have one path, " + device->path);
        }
    }
    return problems;
}

}  // namespace fopd::devices

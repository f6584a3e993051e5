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
            "empty disks that it no longer has.",
            std::move(record), config::ListRule{}, config::Reload::kLive};
}

config::ListSection<PoolSettings> pools_section() {
    config::Record<PoolSettings> record;
    record.field("name", &PoolSettings::name, name_type(), "The name of the pool.",
                 {.need = config::Need::kRequired, .example = "fast"});
    record.field("family", &PoolSettings::family, config::choice<Family>({{"disk", Family::kDisk}}),
                 "The kind of its devices.");
    record.field("quota", &PoolSettings::quota_bytes, config::none_or(config::size({.min = 1})),
                 "How many bytes its objects may take on the disks. none: no limit.",
                 {.reload = config::Reload::kLive});
    record.identified_by("name");
    return {"pools", "Named sets of disks that hold objects.", std::move(record)};
}

std::vector<std::string> check_devices(const std::vector<DeviceSettings>& devices,
                                       const std::vector<PoolSettings>& pools) {
    std::vector<std::string> problems;
    for (auto device = devices.begin(); device != devices.end(); ++device) {
        if (std::ranges::find(pools, device->pool, &PoolSettings::name) == pools.end()) {
            problems.push_back("device " + device->name + " is of pool " + device->pool +
                               ", which pools does not have");
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

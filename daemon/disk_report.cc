#include "daemon/disk_report.h"

#include <array>

#include "daemon/space_watch.h"
#include "objects/home_volume.h"

namespace fopd::daemon {

namespace {

const char* scrub_state_name(std::uint64_t state) {
    switch (state) {
        case objects::ScrubProgress::kRunning: return "running";
        case objects::ScrubProgress::kDone: return "done";
        case objects::ScrubProgress::kEnded: return "ended";
        case objects::ScrubProgress::kFailed: return "failed";
        default: return "never";
    }
}

}  // namespace

DiskReport report_of(const NodeDisk& disk, const DiskFacts& facts) {
    const DiskStage stage = disk.stage();
    DiskReport report{.name = disk.settings().name,
                      .pool = disk.settings().pool,
                      .path = disk.settings().path,
                      .state = to_string(stage),
                      .read_only = stage == DiskStage::kDamaged,
                      .reason = facts.reason,
                      .slot = facts.slot,
                      .disk = facts.disk,
                      .locality = disk.locality().index};
    if (const devices::Health* const health = disk.health(); health != nullptr) {
        for (std::size_t op = 0; op < devices::kDeviceOpCount; ++op) {
            report.errors += health->of(static_cast<devices::DeviceOp>(op)).errors.get();
        }
        if (stage == DiskStage::kServing) {
            report.state = devices::to_string(health->state());
            report.read_only = health->state() == devices::DeviceState::kReadOnly;
            report.reason = health->reason();
        }
    }
    const NodeDisk::Figures& figures = disk.figures();
    if (report.reason.empty() && figures.index_is_full.get() != 0) {
        report.reason = "there is no space left for its index, below node.data_dir";
    }
    if (report.reason.empty() && figures.log_is_full.get() != 0) {
        report.reason = "its log is full: nothing can be added before something is removed";
    }
    report.scrub = scrub_state_name(figures.scrub_state.get());
    report.scrub_total_bytes = figures.scrub_total_bytes.get();
    report.scrub_read_bytes = figures.scrub_read_bytes.get();
    report.scrub_damaged_blocks = figures.scrub_damaged_blocks.get();
    report.check_findings = figures.check_findings.get();
    if (is_open(stage)) {
        report.capacity_bytes = disk.figures().capacity_bytes.get();
        report.free_bytes = disk.figures().free_bytes.get();
    }
    return report;
}

void write_disk(JsonWriter& json, const DiskReport& disk) {
    std::optional<std::uint64_t> used;
    if (disk.capacity_bytes) used = *disk.capacity_bytes - *disk.free_bytes;
    std::optional<std::int64_t> scrubbed_at_s;
    if (disk.scrubbed_at_s != 0) scrubbed_at_s = disk.scrubbed_at_s;
    json.begin_object();
    json.field("name", std::string_view(disk.name));
    json.field("family", "disk");
    json.field("pool", std::string_view(disk.pool));
    json.field("path", std::string_view(disk.path));
    json.field("state", disk.state);
    json.field("read_only", disk.read_only);
    json.field("reason", std::string_view(disk.reason));
    json.field_or_null("capacity", disk.capacity_bytes);
    json.field_or_null("used", used);
    json.field_or_null("free", disk.free_bytes);
    json.field_or_null("slot", disk.slot);
    json.text_or_null("disk", disk.disk);
    json.field("locality", disk.locality);
    json.field("errors", disk.errors);
    json.key("scrub").begin_object();
    json.field("state", disk.scrub);
    json.field("total", disk.scrub_total_bytes);
    json.field("read", disk.scrub_read_bytes);
    json.field("damaged_blocks", disk.scrub_damaged_blocks);
    json.field_or_null("last", scrubbed_at_s);
    json.end_object();
    json.field("damaged_blocks", disk.damaged_blocks);
    std::optional<std::uint64_t> percent;
    if (disk.capacity_bytes) percent = used_percent(disk);
    json.field_or_null("used_percent", percent);
    json.field("nearly_full", percent && *percent >= kNearlyFullPercent);
    json.end_object();
}

void collect_disk(core::MetricSink& sink, const NodeDisk& disk) {
    const std::string_view name = disk.settings().name;
    const DiskStage stage = disk.stage();
    const std::array labels{core::Label{"device", name}, core::Label{"pool", disk.settings().pool}};
    const devices::Health* const health = disk.health();
    const bool serving = stage == DiskStage::kServing && health != nullptr &&
                         health->state() != devices::DeviceState::kReadOnly;
    sink.gauge("fopd_device_up", "Whether the device can be written to.", labels, serving);
    if (is_open(stage)) {
        const NodeDisk::Figures& figures = disk.figures();
        sink.gauge("fopd_device_capacity_bytes", "The capacity of the device, without its label.",
                   labels, static_cast<double>(figures.capacity_bytes.get()));
        sink.gauge("fopd_device_free_bytes", "The part of the capacity that is free.", labels,
                   static_cast<double>(figures.free_bytes.get()));
        sink.gauge("fopd_device_busy_ratio",
                   "The part of the last second or so in which the device had work.", labels,
                   static_cast<double>(figures.busy_ppm.get()) / 1e6);
        sink.gauge("fopd_recorded_replies",
                   "Replies to changes that the device remembers for clients that ask again.",
                   labels, static_cast<double>(figures.recorded_replies.get()));
        sink.gauge("fopd_recorded_replies_max",
                   "The most replies that it remembers; a principal may have as many as are left.",
                   labels, static_cast<double>(figures.recorded_replies_max.get()));
        sink.counter(
            "fopd_recorded_replies_refused",
            "Changes that were refused because the device remembered as many replies for their "
            "principal as its share allows.",
            labels, static_cast<double>(figures.refused_replies.get()));
    }
    if (health == nullptr) return;
    sink.counter("fopd_checksum_errors", "Blocks whose content does not match their checksum.",
                 labels, static_cast<double>(disk.figures().checksum_errors.get()));
    sink.counter("fopd_coalesced_bytes",
                 "Bytes of scattered objects that were brought together on the device.", labels,
                 static_cast<double>(disk.figures().coalesced_bytes.get()));
    for (std::size_t i = 0; i < devices::kDeviceOpCount; ++i) {
        const auto op = static_cast<devices::DeviceOp>(i);
        const devices::Health::Figures& figures = health->of(op);
        const std::array each{core::Label{"device", name},
                              core::Label{"op", devices::to_string(op)}};
        sink.time_histogram("fopd_io_seconds", "The time that operations of devices take.", each,
                            figures.latency, core::Buckets::kTwelve);
        sink.counter("fopd_device_io_bytes", "Bytes that operations of devices moved.", each,
                     static_cast<double>(figures.bytes.get()));
        sink.counter("fopd_device_errors", "Operations of devices that failed.", each,
                     static_cast<double>(figures.errors.get()));
        sink.counter("fopd_device_slow_operations",
                     "Operations of devices that took unusually long.", each,
                     static_cast<double>(figures.slow.get()));
    }
}

}  // namespace fopd::daemon

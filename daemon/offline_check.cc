#include "daemon/offline_check.h"

#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "core/events.h"
#include "core/offload.h"
#include "core/poll_backend.h"
#include "core/random.h"
#include "core/reactor.h"
#include "daemon/data_dir.h"
#include "daemon/durable_file.h"
#include "daemon/json_writer.h"
#include "daemon/local_disk_bay.h"
#include "daemon/node_disks.h"
#include "daemon/settings.h"
#include "daemon/status.h"
#include "devices/disk_label.h"
#include "objects/store_check.h"
#include "store/map_index.h"
#include "store/volume.h"
#include "store/volume_check.h"

namespace fopd::daemon {

namespace {

using State = objects::CheckStatus::State;

// A lost id is not created anew, as a start would do.
Started<devices::NodeId> read_node_id(const std::string& data_dir) {
    const std::string path = data_dir + "/node.id";
    const auto text = read_small_file(path);
    if (!text) return refuse_file(path, describe(text.error()));
    std::string_view digits = *text;
    if (digits.ends_with('\n')) digits.remove_suffix(1);
    const auto id = devices::parse_id(digits);
    if (!id) return refuse_file(path, "32 hexadecimal digits are expected");
    return *id;
}

class OfflineDisk {
public:
    struct World {
        core::Reactor& reactor;
        DiskBay& bay;
        devices::NodeId node{};
    };
    OfflineDisk(const World& world, const devices::DeviceSettings& settings)
        : world_(world), settings_(settings) {}

    Task<objects::CheckStatus> check();

private:
    Task<Result<void>> check_opened();
    Task<Result<void>> check_volume();
    Task<Result<void>> find_index();

    const World world_;
    const devices::DeviceSettings settings_;
    core::NullEventSink events_;
    std::unique_ptr<BayDisk> disk_;
    std::optional<devices::DiskLabel> label_;
    // Replaces a lost index.
    core::Random random_{1};
    store::MapImage image_;
    std::unique_ptr<store::Index> index_;
    std::unique_ptr<store::Volume> volume_;
    objects::CheckStatus status_;
};

Task<objects::CheckStatus> OfflineDisk::check() {
    status_.state = State::kFailed;
    devices::DeviceSettings settings = settings_;
    settings.size_bytes.reset();  // A missing file is not created.
    auto disk = co_await world_.bay.open(&world_.reactor, std::move(settings));
    if (!disk) {
        status_.problem = describe(disk.error());
        co_return std::move(status_);
    }
    disk_ = *std::move(disk);
    const auto checked = co_await check_opened();
    if (checked) {
        status_.state = State::kDone;
    } else if (status_.problem.empty()) {
        status_.problem = describe(checked.error());
    }
    index_.reset();
    co_await disk_->close();
    co_return std::move(status_);
}

Task<Result<void>> OfflineDisk::check_opened() {
    devices::Claim claim{.node = world_.node, .pool = settings_.pool};
    label_.emplace(disk_->device(), std::move(claim));
    const auto verdict = co_await label_->inspect();
    if (!verdict) co_return std::unexpected(verdict.error());
    if (*verdict != devices::Verdict::kOurs) {
        status_.problem = label_->explain();
        co_return std::unexpected(label_->refusal());
    }
    const auto found = co_await find_index();
    if (!found) co_return found;
    const devices::Label& label = label_->label();
    volume_ = std::make_unique<store::Volume>(
        store::VolumeParts{.reactor = world_.reactor,
                           .device = disk_->device(),
                           .index = *index_,
                           .events = events_,
                           .names = nullptr},
        store::VolumeOptions{.disk_id = label.disk,
                             .slot = label.slot,
                             .segment_blocks = label.segment_blocks(),
                             // The whole replay stays in memory.
                             .overlay_bytes = std::numeric_limits<std::uint64_t>::max()});
    const auto opened = co_await volume_->open(store::Volume::Mode::kReadOnly);
    Result<void> checked = opened;
    if (opened) checked = co_await check_volume();
    const auto closed = co_await volume_->close();
    volume_.reset();
    if (!checked) co_return checked;
    co_return closed;
}

Task<Result<void>> OfflineDisk::check_volume() {
    const store::VolumeCheckOptions options{.bytes_per_second =
                                                std::numeric_limits<std::uint64_t>::max()};
    store::VolumeCheck check(*volume_, options);
    const auto done = co_await check.run();
    status_.report = check.report();
    co_return done;
}

// Without an index the whole log is replayed, as at a start.
Task<Result<void>> OfflineDisk::find_index() {
    const devices::DiskId disk = label_->label().disk;
    auto found = co_await world_.bay.open_index(&world_.reactor, disk);
    if (found) {
        index_ = *std::move(found);
        co_return Result<void>{};
    }
    if (!can_rebuild(found.error())) co_return std::unexpected(found.error());
    status_.stage = "without its index";
    index_ = std::make_unique<store::MapIndex>(
        store::MapIndex::World{.reactor = world_.reactor, .random = random_}, image_);
    co_return Result<void>{};
}

}  // namespace

Started<OfflineCheck> check_offline(const config::Snapshot& settings) {
    auto data_dir = DataDir::open(settings.get<NodeSettings>().data_dir);
    if (!data_dir) return std::unexpected(data_dir.error());
    const auto node = read_node_id((*data_dir)->path());
    if (!node) return std::unexpected(node.error());
    const core::PosixClock clock;
    auto backend = core::make_poll_backend(clock);
    if (!backend) return refuse_file((*data_dir)->path(), describe(backend.error()));
    core::Reactor reactor(std::move(*backend));
    auto offload = core::make_thread_offload({.name = "fopd-disks"});
    if (!offload) return refuse_file((*data_dir)->path(), describe(offload.error()));
    core::NullEventSink events;
    LocalDiskBay bay(**offload, events, (*data_dir)->path());
    OfflineCheck all;
    JsonWriter json;
    json.begin_object().key("checks").begin_array();
    for (const auto& each : settings.get<std::vector<devices::DeviceSettings>>()) {
        OfflineDisk disk({.reactor = reactor, .bay = bay, .node = *node}, each);
        const objects::CheckStatus status = reactor.run_until_done(disk.check());
        all.is_well =
            all.is_well && status.state == State::kDone && status.report.finding_count == 0;
        write_check(json, each.name, status);
    }
    json.end_array().end_object();
    all.json = json.text();
    return all;
}

}  // namespace fopd::daemon

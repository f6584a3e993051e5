#include "daemon/node_disk.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/ensure.h"
#include "devices/aligned_bytes.h"
#include "io_sched/disk.h"
#include "objects/home_volume.h"

namespace fopd::daemon {

namespace {

constexpr std::uint64_t kSegmentBytesMin = 1UL << 20;
constexpr std::uint64_t kSegmentBytesMax = 64UL << 20;
constexpr std::uint64_t kSegmentsWanted = 65'536;

std::string after_colon(const char* what, const Error& error) {
    return std::string(what) + ": " + describe(error);
}

}  // namespace

const char* to_string(DiskStage stage) {
    switch (stage) {
        case DiskStage::kOpening: return "opening";
        case DiskStage::kServing: return "good";
        case DiskStage::kDamaged: return "read-only";
        case DiskStage::kGivenUp: return "given-up";
        case DiskStage::kClosed: return "closed";
    }
    return "unknown";
}

std::uint32_t segment_bytes_for(std::uint64_t disk_bytes) {
    const std::uint64_t wanted = (disk_bytes + kSegmentsWanted - 1) / kSegmentsWanted;
    return static_cast<std::uint32_t>(
        std::clamp(std::bit_ceil(wanted), kSegmentBytesMin, kSegmentBytesMax));
}

NodeDisk::NodeDisk(const DiskWorld& world, const HomeLocality& locality,
                   devices::DeviceSettings settings)
    : world_(world), settings_(std::move(settings)), locality_(locality) {}

NodeDisk::~NodeDisk() = default;

void NodeDisk::give_up(std::string cause, std::string advice) {
    ENSURE(stage() == DiskStage::kOpening);
    cause_ = std::move(cause);
    advice_ = std::move(advice);
    enter(DiskStage::kGivenUp);
    report(core::Level::kError, "daemon.device_given_up", reason());
}

void NodeDisk::set_recorded_slot(store::Slot slot, const devices::DiskId& disk) {
    ENSURE(was_not_opened());
    disk_id_ = disk;
    use_slot(slot);
}

void NodeDisk::note_written_off() {
    ENSURE(was_not_opened());
    cause_ = "its disk was written off";
    advice_ = "fopctl device add " + settings_.name + " takes a new one in its place";
}

void NodeDisk::report(core::Level level, std::string_view event, std::string_view reason) const {
    emit_each(world_.events, level, event,
              {{"device", std::string_view(settings_.name)},
               {"path", std::string_view(settings_.path)},
               {"reason", reason}});
}

// -- identifying the disk --

// Whether the device may be a file that is not there, or is empty. If it is something else, the
// attempt to make it finds that.
bool NodeDisk::is_to_be_made(const Error& error) const {
    const bool may_be = error.code == Errc::kNotFound || error.code == Errc::kInvalid;
    return may_be && settings_.size_bytes.has_value();
}

Task<void> NodeDisk::look() {
    devices::DeviceSettings settings = settings_;
    if (!may_make_) settings.size_bytes.reset();
    auto opened = co_await world_.bay->open(&locality_.reactor, std::move(settings));
    is_absent_ = !opened && !may_make_ && is_to_be_made(opened.error());
    if (is_absent_) {
        absence_ = describe(opened.error());
        co_return;
    }
    if (!opened) {
        give_up(describe(opened.error()));
        co_return;
    }
    bay_disk_ = *std::move(opened);
    device_.emplace(locality_.reactor, bay_disk_->device(), world_.events);
    health_.store(&device_->health(), std::memory_order_release);
    devices::Claim claim{.node = world_.node, .pool = settings_.pool};
    label_.emplace(*device_, std::move(claim));
    const auto verdict = co_await label_->inspect();
    if (!verdict) {
        give_up(after_colon("its label cannot be read", verdict.error()));
    } else if (*verdict == devices::Verdict::kOurs) {
        disk_id_ = label_->label().disk;
        use_slot(label_->label().slot);
    } else if (*verdict == devices::Verdict::kBlank || *verdict == devices::Verdict::kRetired) {
        is_new_ = true;
        world_.entropy.fill(disk_id_);
    } else {
        give_up(label_->explain());
    }
    if (stage() == DiskStage::kGivenUp) co_await let_go();
}

// -- opening its contents --

Task<void> NodeDisk::begin() {
    const Instant began_at = locality_.reactor.now();
    if (stage() == DiskStage::kOpening && is_new_) {
        const auto formatted = co_await format();
        if (!formatted) give_up(after_colon("it cannot be taken", formatted.error()));
    }
    if (stage() == DiskStage::kOpening) {
        const auto marked = co_await mark_active();
        if (!marked) give_up(after_colon("its label cannot be written", marked.error()));
    }
    if (stage() == DiskStage::kOpening) {
        const auto opened = co_await open_volume();
        if (!opened) give_up(after_colon("it cannot be opened", opened.error()));
    }
    if (stage() == DiskStage::kGivenUp) {
        co_await let_go();
        co_return;
    }
    offer();
    published_at_ = locality_.reactor.now();
    publish();
    report_opened(published_at_ - began_at);
}

// Until an empty store has been written, the label marks the disk as empty: after a crash in the
// middle, the disk is taken again.
Task<Result<void>> NodeDisk::format() {
    ENSURE(slot().has_value());
    devices::NewLabel fresh{
        .disk = disk_id_,
        .created_unix_ns = world_.clock.wall().unix_ns,
        .segment_bytes = segment_bytes_for(device_->geometry().size_bytes),
        .slot = *slot(),
        .state = devices::LabelState::kRetired,
    };
    const auto marked = co_await label_->take(fresh);
    if (!marked) co_return marked;
    auto indexed = co_await world_.bay->make_index(&locality_.reactor, disk_id_);
    if (!indexed) co_return std::unexpected(indexed.error());
    index_ = *std::move(indexed);
    make_volume();
    const auto formatted = co_await volume_->format();
    const auto closed = co_await volume_->close();
    volume_.reset();
    if (!formatted) co_return formatted;
    if (!closed) co_return closed;
    fresh.state = devices::LabelState::kActive;
    const auto taken = co_await label_->take(fresh);
    if (!taken) co_return taken;
    emit_each(world_.events, core::Level::kInfo, "daemon.device_formatted",
              {{"device", std::string_view(settings_.name)},
               {"path", std::string_view(settings_.path)},
               {"pool", std::string_view(settings_.pool)},
               {"slot", std::uint64_t{*slot()}},
               {"disk", std::string_view(devices::format_id(disk_id_))},
               {"segment_bytes", std::uint64_t{fresh.segment_bytes}}});
    co_return Result<void>{};
}

void NodeDisk::make_volume() {
    const devices::Label& label = label_->label();
    background_.emplace(objects::BackgroundDevice::Parts{.reactor = locality_.reactor,
                                                         .device = *device_,
                                                         .scheduler = home_->io,
                                                         .medium = medium()});
    volume_ = std::make_unique<store::Volume>(
        store::VolumeParts{.reactor = locality_.reactor,
                           .device = *device_,
                           .index = *index_,
                           .events = world_.events,
                           .names = &home_->names,
                           .background = &*background_},
        store::VolumeOptions{.disk_id = label.disk,
                             .slot = label.slot,
                             .segment_blocks = label.segment_blocks(),
                             .overlay_bytes = world_.store.overlay_bytes,
                             .flush_interval = world_.store.flush_interval,
                             .checkpoint_interval = world_.store.checkpoint_interval,
                             .zeros_ahead_bytes = world_.store.zeros_ahead_bytes,
                             .discard = world_.store.discard,
                             .sweep = world_.sweep});
}

// The first step: data written from now on must not be taken by another node.
Task<Result<void>> NodeDisk::mark_active() {
    if (label_->label().state != devices::LabelState::kReleased) co_return Result<void>{};
    co_return co_await label_->set_state(devices::LabelState::kActive);
}

Task<Result<void>> NodeDisk::find_index() {
    auto found = co_await world_.bay->open_index(&locality_.reactor, disk_id_);
    if (found) {
        index_ = *std::move(found);
        co_return Result<void>{};
    }
    if (!can_rebuild(found.error())) co_return std::unexpected(found.error());
    co_return co_await make_index(found.error().code == Errc::kNotFound ? "it is missing"
                                                                        : found.error().context);
}

// Opening the volume fills the index again from the log.
Task<Result<void>> NodeDisk::make_index(const char* why) {
    report(core::Level::kWarn, "daemon.index_rebuilt", why);
    index_.reset();
    auto made = co_await world_.bay->make_index(&locality_.reactor, disk_id_);
    if (!made) co_return std::unexpected(made.error());
    index_ = *std::move(made);
    co_return Result<void>{};
}

Task<Result<void>> NodeDisk::open_volume() {
    if (label_->label().segment_bytes < kSegmentBytesMin) {
        co_return std::unexpected(Error{.code = Errc::kUnsupported, .context = "segment size"});
    }
    if (index_ == nullptr) {
        const auto found = co_await find_index();
        if (!found) co_return found;
    }
    auto opened = co_await try_open(store::Volume::Mode::kServe);
    if (!opened && opened.error().code == Errc::kInvalid) {
        // The index is older than the oldest log entry left, for example an old copy put back by an
        // administrator.
        const auto made = co_await make_index(opened.error().context);
        if (!made) co_return made;
        opened = co_await try_open(store::Volume::Mode::kServe);
    }
    if (opened) {
        enter(DiskStage::kServing);
        co_return opened;
    }
    if (damage_.first_seq == 0) co_return opened;
    co_return co_await open_damaged(opened.error());
}

Task<Result<void>> NodeDisk::try_open(store::Volume::Mode mode) {
    make_volume();
    const auto opened = co_await volume_->open(mode);
    damage_ = volume_->damage();
    if (opened) co_return opened;
    // Nothing was started, so nothing can be lost.
    [[maybe_unused]] const auto closed = co_await volume_->close();
    volume_.reset();
    co_return opened;
}

// Opens a disk read-only whose log lacks entries that were flushed.
Task<Result<void>> NodeDisk::open_damaged(Error error) {
    cause_ = std::string(error.context) + " (entries " + std::to_string(damage_.first_seq) +
             " to " + std::to_string(damage_.last_seq) + ")";
    advice_ = "the disk is opened read-only";
    const auto opened = co_await try_open(store::Volume::Mode::kReadOnly);
    if (!opened) co_return opened;
    device_->mark_read_only(error.context);
    report(core::Level::kError, "daemon.device_damaged", reason());
    enter(DiskStage::kDamaged);
    co_return opened;
}

void NodeDisk::report_opened(Duration took) const {
    emit_each(world_.events, core::Level::kInfo, "daemon.device_opened",
              {{"device", std::string_view(settings_.name)},
               {"path", std::string_view(settings_.path)},
               {"pool", std::string_view(settings_.pool)},
               {"slot", std::uint64_t{*slot()}},
               {"disk", std::string_view(devices::format_id(disk_id_))},
               {"locality", std::uint64_t{locality_.index}},
               {"capacity_bytes", figures_.capacity_bytes.get()},
               {"clean", volume_->replayed().clean},
               {"seconds", in_seconds(took)}});
}

// Slots are unique, so no other device has this medium id.
void NodeDisk::offer() {
    const auto added = io_sched::add_disk(home_->io, medium(), *device_);
    ENSURE(added.has_value());
    home_->stores.add({.disk_id = disk_id_,
                       .pool = objects::pool_id(settings_.pool),
                       .volume = volume_.get(),
                       .medium = medium(),
                       .damage = this});
    offered_ = true;
}

// -- the end --

Task<void> NodeDisk::close() {
    const DiskStage before = stage();
    if (before == DiskStage::kClosed || before == DiskStage::kGivenUp) co_return;
    if (offered_) {
        offered_ = false;
        home_->stores.remove(*slot());
        const auto removed = co_await home_->io.remove_device(medium());
        ENSURE(removed.has_value());
        co_await probes_.close(locality_.reactor);
    }
    Result<void> closed{};
    if (volume_ != nullptr) closed = co_await close_volume();
    if (closed && is_released_) closed = co_await label_->set_state(devices::LabelState::kReleased);
    if (!closed) {
        report(core::Level::kWarn, "daemon.device_not_closed_well", closed.error().context);
    }
    co_await let_go();
    enter(DiskStage::kClosed);
    if (before == DiskStage::kOpening) co_return;  // It was never opened.
    emit_each(
        world_.events, core::Level::kInfo, "daemon.device_closed",
        {{"device", std::string_view(settings_.name)}, {"path", std::string_view(settings_.path)}});
}

// A disk whose volume has failed is not released: its contents are unknown.
Task<Result<void>> NodeDisk::close_volume() {
    const bool serves = volume_->serving();
    const auto closed = co_await volume_->close();
    if (!serves) is_released_ = false;
    co_return closed;
}

Task<void> NodeDisk::release() {
    is_released_ = true;
    return close();
}

Task<void> NodeDisk::let_go() {
    volume_.reset();
    index_.reset();
    if (bay_disk_ != nullptr) co_await bay_disk_->close();
}

void NodeDisk::probe_if_due() {
    if (probes_.count() > 0 || !device_->health().may_be_good(locality_.reactor.now())) return;
    locality_.reactor.spawn(probes_, probe());
}

// Reads a block of a suspect disk. A disk that is not used has no other operation that could show
// that it is well again.
Task<void> NodeDisk::probe() {
    const devices::AlignedBytes block(1);
    [[maybe_unused]] const auto read = co_await device_->read(block.buffer(), 0, {});
}

void NodeDisk::damage_changed() {
    if (!offered_) return;
    const objects::HomeVolume* const found = home_->stores.find(*slot());
    if (found != nullptr) publish_damage(*found);
}

void NodeDisk::publish_damage(const objects::HomeVolume& found) {
    const objects::ScrubProgress& scrub = found.scrub();
    figures_.checksum_errors.set(found.checksum_errors().get());
    figures_.scrub_total_bytes.set(scrub.total_blocks.get() * devices::kBlockBytes);
    figures_.scrub_read_bytes.set(scrub.read_blocks.get() * devices::kBlockBytes);
    figures_.scrub_damaged_blocks.set(scrub.damaged_blocks.get());
    figures_.scrub_done_damage.set(scrub.done_damage.get());
    figures_.scrubs_done.set(scrub.done_count.get());
    figures_.met_damage.set(found.met_damage().count());
    figures_.scrub_state.set(scrub.state.get());
}

void NodeDisk::publish(std::uint64_t check_findings) {
    if (!offered_) return;
    probe_if_due();
    figures_.check_findings.set(check_findings);
    // The volume may have failed for a reason the device did not see.
    if (stage() == DiskStage::kServing && !volume_->serving()) {
        device_->mark_read_only(volume_->failure().context);
    }
    const store::SpaceUse use = volume_->space_use();
    figures_.capacity_bytes.set(use.total_blocks * devices::kBlockBytes);
    figures_.free_bytes.set(use.room_blocks() * devices::kBlockBytes);
    figures_.index_is_full.set(volume_->index_failure() ? 1 : 0);
    figures_.log_is_full.set(volume_->is_log_full() ? 1 : 0);
    if (const objects::HomeVolume* const found = home_->stores.find(*slot()); found != nullptr) {
        figures_.coalesced_bytes.set(found->coalesced_blocks().get() * devices::kBlockBytes);
        const objects::ReplyShares& replies = found->reply_shares();
        figures_.recorded_replies.set(replies.count());
        figures_.recorded_replies_max.set(replies.max());
        figures_.refused_replies.set(replies.refused_count());
        publish_damage(*found);
    }
    const Instant now = locality_.reactor.now();
    if (now <= published_at_) return;
    const Duration busy = device_->busy_time();
    const Duration span = now - published_at_;
    figures_.busy_ppm.set(static_cast<std::uint64_t>((busy - busy_before_) * 1'000'000 / span));
    busy_before_ = busy;
    published_at_ = now;
}

}  // namespace fopd::daemon

#include "daemon/node_disks.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/ensure.h"
#include "objects/home_volume.h"

namespace fopd::daemon {

namespace {

// How long note_damage() leaves a table alone that could not be written.
constexpr Duration kWriteAgain = 60s;

}  // namespace

NodeDisks::NodeDisks(const DiskWorld& world, const std::vector<core::Reactor*>& localities,
                     const std::vector<devices::DeviceSettings>& settings)
    : world_(world),
      localities_(localities),
      began_empty_(settings.empty()),
      ended_(world.control),
      slot_file_(world.bay, world.events) {
    ENSURE(settings.empty() || world.bay != nullptr);
    for (const devices::DeviceSettings& each : settings) {
        add_at(static_cast<std::uint32_t>(disks_.size() % localities_.size()), each);
    }
}

void NodeDisks::add_at(std::uint32_t locality, devices::DeviceSettings settings) {
    const NodeDisk::HomeLocality home{.index = locality, .reactor = *localities_[locality]};
    auto disk = std::make_unique<NodeDisk>(world_, home, std::move(settings));
    orders_.push_back(
        std::make_unique<LocalityOrder>(world_.control, home.reactor, disk->duties(), ended_));
    known_.emplace_back();
    const std::lock_guard lock(shown_);
    damage_.emplace_back();
    disks_.push_back(std::move(disk));
}

NodeDisks::~NodeDisks() = default;

Task<void> NodeDisks::open() {
    if (world_.bay != nullptr) slots_ = slot_file_.read();
    if (empty()) {
        opened_ = true;
        co_return;
    }
    co_await send_all(&NodeDisk::look, kNever);
    std::vector<std::size_t> making = sort_absent();
    co_await send_to(std::move(making), &NodeDisk::look, kNever);
    sort_out();
    give_slots();
    co_await send_all(&NodeDisk::begin, kNever);
    note_open();
    note_damage();
    opened_ = true;
}

Task<bool> NodeDisks::close(Instant deadline) {
    const std::size_t silent = co_await send_all(&NodeDisk::close, deadline);
    if (silent == 0) co_return true;
    for (std::size_t i = 0; i < disks_.size(); ++i) {
        if (!orders_[i]->under_way()) continue;
        emit_each(world_.events, core::Level::kError, "daemon.device_does_not_close",
                  {{"device", std::string_view(disks_[i]->settings().name)},
                   {"path", std::string_view(disks_[i]->settings().path)}});
    }
    co_return false;
}

// Sends the task to every disk, and returns the number of disks that have not done it by the
// deadline.
Task<std::size_t> NodeDisks::send_all(DiskTask what, Instant deadline) {
    std::vector<std::size_t> all(orders_.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    co_return co_await send_to(std::move(all), what, deadline);
}

// Sends an order to some of the disks, which are given by index.
Task<std::size_t> NodeDisks::send_to(std::vector<std::size_t> which, DiskTask what,
                                     Instant deadline) {
    for (const std::size_t i : which) start(i, what);
    std::size_t silent = 0;
    for (const std::size_t i : which) {
        co_await orders_[i]->wait(deadline);
        if (orders_[i]->under_way()) {
            ++silent;
        } else {
            look_at(i);
        }
    }
    co_return silent;
}

// No deadline: a disk's task ends by itself, and a stop of the node waits for it only until its own
// deadline.
Task<void> NodeDisks::send(std::size_t index, DiskTask what) {
    start(index, what);
    co_await orders_[index]->wait(kNever);
    look_at(index);
}

void NodeDisks::start(std::size_t index, DiskTask what) {
    NodeDisk* const disk = disks_[index].get();
    orders_[index]->send([disk, what] { return (disk->*what)(); });
}

// -- one disk --

NodeDisk* NodeDisks::find(const std::string& name) const {
    const auto found = std::ranges::find_if(
        disks_, [&name](const auto& disk) { return disk->settings().name == name; });
    return found == disks_.end() ? nullptr : found->get();
}

std::size_t NodeDisks::index_of(const NodeDisk* disk) const {
    const auto found =
        std::ranges::find_if(disks_, [disk](const auto& each) { return each.get() == disk; });
    ENSURE(found != disks_.end());
    return static_cast<std::size_t>(found - disks_.begin());
}

NodeDisk& NodeDisks::add(devices::DeviceSettings settings) {
    std::vector<std::size_t> disk_counts(localities_.size());
    for (const auto& disk : disks_) ++disk_counts[disk->locality().index];
    const auto fewest = std::ranges::min_element(disk_counts) - disk_counts.begin();
    forget(settings.name);
    add_at(static_cast<std::uint32_t>(fewest), std::move(settings));
    return *disks_.back();
}

Task<void> NodeDisks::open_one(NodeDisk* disk) {
    const std::size_t index = index_of(disk);
    const auto room = world_.bay->make_room(disks_.size());
    if (!room) {
        disk->give_up("no threads can be started for the disk: " + describe(room.error()));
        look_at(index);
        co_return;
    }
    co_await send(index, &NodeDisk::look);
    std::vector<std::size_t> making = sort_absent();
    co_await send_to(std::move(making), &NodeDisk::look, kNever);
    sort_out(*disk);
    give_slots();
    look_at(index);
    co_await send(index, &NodeDisk::begin);
    note_open();
}

// The table is durable before the label says so: after that, other nodes may take the disk.
void NodeDisks::note_released(const NodeDisk& disk) {
    damage_[index_of(&disk)].release();
    slots_.set_use(*disk.slot(), SlotUse::kEmpty);
    slots_.set_damage(*disk.slot(), slots_.find(*disk.slot())->scrubbed_at_s, 0);
    // If the write fails, the disk only counts as missing.
    [[maybe_unused]] const auto written = slot_file_.write(slots_);
}

Task<void> NodeDisks::release(NodeDisk* disk) {
    const std::size_t index = index_of(disk);
    co_await send(index, &NodeDisk::release);
}

std::unique_ptr<NodeDisk> NodeDisks::take_out(NodeDisk* disk) {
    const std::size_t index = index_of(disk);
    ENSURE(disk->stage() == DiskStage::kClosed || disk->stage() == DiskStage::kGivenUp);
    ENSURE(!orders_[index]->under_way());
    const auto position = static_cast<std::ptrdiff_t>(index);
    orders_.erase(orders_.begin() + position);
    known_.erase(known_.begin() + position);
    const std::lock_guard lock(shown_);
    damage_.erase(damage_.begin() + position);
    std::unique_ptr<NodeDisk> taken = std::move(disks_[index]);
    disks_.erase(disks_.begin() + position);
    return taken;
}

void NodeDisks::remember(const NodeDisk& disk) {
    forget(disk.settings().name);
    const DiskFacts& known = known_[index_of(&disk)];
    away_.push_back({.settings = disk.settings(),
                     .known = {.reason = {}, .slot = known.slot, .disk = known.disk}});
}

std::set<store::Slot> NodeDisks::slots_of(const std::string& name) const {
    std::set<store::Slot> slots;
    for (const DiskReport& each : reports()) {
        if (each.name == name && entry_of(each) != nullptr) slots.insert(*each.slot);
    }
    for (const MissingSlot& each : missing_slots()) {
        if (each.device == name) slots.insert(each.slot);
    }
    return slots;
}

std::string NodeDisks::name_of(std::optional<store::Slot> slot) const {
    for (const DiskReport& each : reports()) {
        if (each.slot == slot && entry_of(each) != nullptr) return each.name;
    }
    return {};
}

// A foreign disk may claim a slot that belongs to another disk.
const SlotEntry* NodeDisks::entry_of(const DiskReport& report) const {
    const SlotEntry* const entry = report.slot ? slots_.find(*report.slot) : nullptr;
    const bool is_its = entry != nullptr && devices::format_id(entry->disk) == report.disk;
    return is_its ? entry : nullptr;
}

// The open disk with the entry's slot: a disk and its copies have one slot, and only one of them
// may be open.
const NodeDisk* NodeDisks::open_disk_of(const SlotEntry& entry) const {
    const auto found = std::ranges::find_if(disks_, [&entry](const auto& disk) {
        return disk->slot() == entry.slot && disk->stage() != DiskStage::kGivenUp;
    });
    return found == disks_.end() ? nullptr : found->get();
}

Result<void> NodeDisks::write_off(store::Slot slot) {
    const SlotTable before = slots_;
    slots_.set_use(slot, SlotUse::kWrittenOff);
    auto written = slot_file_.write(slots_);
    if (!written) {
        slots_ = before;
        return written;
    }
    for (std::size_t i = 0; i < disks_.size(); ++i) {
        if (!disks_[i]->was_not_opened() || disks_[i]->slot() != slot) continue;
        disks_[i]->note_written_off();
        look_at(i);
    }
    return written;
}

bool NodeDisks::forget(const std::string& name) {
    return std::erase_if(away_, [&name](const Away& each) { return each.settings.name == name; }) >
           0;
}

bool NodeDisks::remembers(const std::string& name) const {
    return std::ranges::any_of(away_,
                               [&name](const Away& each) { return each.settings.name == name; });
}

void NodeDisks::look_at(std::size_t index) {
    const NodeDisk& disk = *disks_[index];
    DiskFacts& known = known_[index];
    known.reason = disk.reason();
    known.slot = disk.slot();
    known.disk = disk.slot() ? devices::format_id(disk.disk_id()) : "";
}

// -- slots --

std::string NodeDisks::conflict_of(const NodeDisk& disk) const {
    for (const auto& other : disks_) {
        if (other.get() == &disk) break;
        if (other->stage() == DiskStage::kGivenUp || other->is_new()) continue;
        if (other->disk_id() == disk.disk_id()) {
            return "has the same id as device " + other->settings().name + ": one is a copy";
        }
    }
    const SlotEntry* const holder = slots_.find(*disk.slot());
    if (holder != nullptr && holder->disk != disk.disk_id()) {
        return "has slot " + std::to_string(*disk.slot()) + ", as disk " +
               devices::format_id(holder->disk) + " has";
    }
    const SlotEntry* const known = slots_.find(disk.disk_id());
    if (known != nullptr && known->slot != *disk.slot()) {
        return "has slot " + std::to_string(*disk.slot()) + ", and had " +
               std::to_string(known->slot);
    }
    if (known != nullptr && known->use == SlotUse::kWrittenOff) {
        return "was written off: its content does not belong to this node any more";
    }
    return {};
}

// Returns the absent disks that are to be made, by index, and gives up the others. Notes which
// slots the disks had that cannot be opened. All other disks have been looked at.
std::vector<std::size_t> NodeDisks::sort_absent() {
    std::vector<std::size_t> making;
    for (std::size_t i = 0; i < disks_.size(); ++i) {
        NodeDisk& disk = *disks_[i];
        if (disk.is_absent() && may_make(disk)) making.push_back(i);
        if (!disk.was_not_opened() || disk.slot()) continue;
        const SlotEntry* const missing = missing_slot_of(disk.settings());
        if (missing == nullptr || missing->device.empty() || disk_of(*missing) != nullptr) continue;
        disk.set_recorded_slot(missing->slot, missing->disk);
        look_at(i);
    }
    return making;
}

// Whether the absent disk may be made. A disk that existed before must be brought back: a new one
// in its place would hide that its objects cannot be read.
bool NodeDisks::may_make(NodeDisk& disk) {
    const SlotEntry* const missing = missing_slot_of(disk.settings());
    if (missing == nullptr) {
        disk.allow_making();
        return true;
    }
    disk.give_up(disk.absence(), std::string("this ") +
                                     (missing->device.empty() ? "may be" : "is") +
                                     " the missing disk of slot " + std::to_string(missing->slot) +
                                     "; bring it back, or write it off with fopctl device forget");
    return false;
}

// The missing slot that a device of these settings had, or may have had; null: there is none. Both
// the path and the name are compared, because a device may be renamed while its disk is away.
const SlotEntry* NodeDisks::missing_slot_of(const devices::DeviceSettings& settings) const {
    const SlotEntry* same_path = nullptr;
    const SlotEntry* same_name = nullptr;
    const SlotEntry* unknown = nullptr;
    for (const SlotEntry& entry : slots_.entries()) {
        // A device that only stands for the missing disk does not have it.
        const NodeDisk* const disk = disk_of(entry);
        if (entry.use != SlotUse::kInUse || (disk != nullptr && !disk->was_not_opened())) continue;
        if (entry.path == settings.path) same_path = &entry;
        if (entry.device == settings.name) same_name = &entry;
        if (entry.device.empty() && entry.pool == settings.pool) unknown = &entry;
    }
    if (same_path != nullptr) return same_path;
    return same_name != nullptr ? same_name : unknown;
}

// Gives up disks whose id or slot conflicts with an earlier disk or with the table of slots.
void NodeDisks::sort_out() {
    for (const auto& disk : disks_) sort_out(*disk);
}

void NodeDisks::sort_out(NodeDisk& disk) {
    if (disk.stage() == DiskStage::kGivenUp || disk.is_new()) return;
    if (std::string conflict = conflict_of(disk); !conflict.empty()) {
        disk.give_up(std::move(conflict));
    } else if (slots_.find(disk.disk_id()) == nullptr) {
        slots_.add({.slot = *disk.slot(), .disk = disk.disk_id(), .pool = disk.settings().pool});
    }
}

// The table is durable before a new disk's label is written.
void NodeDisks::give_slots() {
    const SlotTable before = slots_;
    std::vector<NodeDisk*> fresh;
    for (const auto& disk : disks_) {
        if (!disk->is_new()) continue;
        const auto slot = slots_.unused();
        if (!slot) {
            disk->give_up("there is no slot left for another disk");
            continue;
        }
        slots_.add({.slot = *slot,
                    .disk = disk->disk_id(),
                    .pool = disk->settings().pool,
                    .use = SlotUse::kEmpty,
                    .device = disk->settings().name,
                    .path = disk->settings().path});
        disk->use_slot(*slot);
        fresh.push_back(disk.get());
    }
    const auto written = slot_file_.write(slots_);
    if (written) return;
    for (NodeDisk* const disk : fresh) {
        disk->give_up("its slot cannot be recorded: " + describe(written.error()));
    }
    slots_ = before;
}

// Durable before any object can be on the disks: a disk whose slot is marked empty is not reported
// as missing.
void NodeDisks::note_open() {
    const SlotTable before = slots_;
    for (const auto& disk : disks_) {
        if (is_open(disk->stage())) record_open(*disk);
    }
    const auto written = slot_file_.write(slots_);
    if (!written) slots_ = before;
}

void NodeDisks::record_open(const NodeDisk& disk) {
    slots_.set_use(*disk.slot(), SlotUse::kInUse);
    slots_.set_device(*disk.slot(), disk.settings().name, disk.settings().path);
    const SlotEntry& entry = *slots_.find(*disk.slot());
    // An older version of the table has no time of the last scrub: the age of the disk counts from
    // now.
    if (entry.scrubbed_at_s == 0) slots_.set_damage(entry.slot, wall_s(), entry.damaged_blocks);
}

void NodeDisks::note_damage() {
    if (slot_file_.has_failed() && world_.control.now() < write_again_at_) return;
    for (std::size_t i = 0; i < disks_.size(); ++i) {
        const NodeDisk& disk = *disks_[i];
        DamageRecord& damage = damage_[i];
        if (!is_open(disk.stage()) || orders_[i]->under_way() || damage.is_released()) continue;
        const SlotEntry* const entry = slots_.find(*disk.slot());
        if (entry == nullptr) continue;
        // Also writes the facts that note_open() could not write.
        record_open(disk);
        const auto found = damage.next(*entry, disk.figures(), wall_s());
        slots_.set_damage(entry->slot, found.scrubbed_at_s, found.damaged_blocks);
    }
    const auto written = slot_file_.write(slots_);
    if (!written) write_again_at_ = after(world_.control.now(), kWriteAgain);
    const std::lock_guard lock(shown_);
    for (std::size_t i = 0; i < disks_.size(); ++i) {
        if (orders_[i]->under_way() || !disks_[i]->slot()) continue;
        const SlotEntry* const entry = slots_.find(*disks_[i]->slot());
        if (entry != nullptr && entry->disk == disks_[i]->disk_id()) damage_[i].show(*entry);
    }
}

std::int64_t NodeDisks::wall_s() const {
    return world_.clock.wall().unix_ns / 1'000'000'000;
}

const NodeDisk* NodeDisks::disk_of(const SlotEntry& entry) const {
    // The disk may be back under another name than the one that was given up.
    const NodeDisk* const open = open_disk_of(entry);
    if (open != nullptr && open->disk_id() == entry.disk) return open;
    const auto found = std::ranges::find_if(disks_, [&entry](const auto& disk) {
        return disk->slot() == entry.slot && disk->disk_id() == entry.disk;
    });
    return found == disks_.end() ? nullptr : found->get();
}

// -- missing disks --

namespace {

std::string name_and_cause(const NodeDisk& disk) {
    const std::string why = disk.cause().empty() ? "" : ": " + disk.cause();
    return disk.settings().name + " (" + to_string(disk.stage()) + why + ")";
}

}  // namespace

std::string NodeDisks::why_missing(const SlotEntry& entry) const {
    if (entry.use != SlotUse::kInUse) return {};
    const NodeDisk* const disk = disk_of(entry);
    if (disk != nullptr && disk->stage() == DiskStage::kServing) return {};
    if (disk != nullptr) return name_and_cause(*disk);
    const auto away =
        std::ranges::find(away_, entry.slot, [](const Away& each) { return each.known.slot; });
    if (away != away_.end()) return away->settings.name + " (removed)";
    return "disk " + devices::format_id(entry.disk);
}

std::vector<std::string> NodeDisks::lost_slots() const {
    std::vector<std::string> lost;
    if (!opened_) return lost;  // Disks may not have been identified yet.
    for (const SlotEntry& entry : slots_.entries()) {
        if (entry.use != SlotUse::kInUse || disk_of(entry) != nullptr) continue;
        lost.push_back("slot " + std::to_string(entry.slot) + " of pool " + entry.pool +
                       " is missing: " + why_missing(entry));
    }
    return lost;
}

std::vector<MissingSlot> NodeDisks::missing_slots() const {
    std::vector<MissingSlot> missing;
    if (!opened_) return missing;
    for (const SlotEntry& entry : slots_.entries()) {
        const NodeDisk* const disk = disk_of(entry);
        const bool is_there = disk != nullptr && disk->stage() != DiskStage::kGivenUp;
        if (entry.use != SlotUse::kInUse || is_there) continue;
        MissingSlot slot{.slot = entry.slot,
                         .disk = entry.disk,
                         .pool = entry.pool,
                         .device = entry.device,
                         .reason = "the disk of the slot is not attached"};
        if (disk != nullptr) {
            slot.device = disk->settings().name;
            slot.reason = disk->reason();
        }
        missing.push_back(std::move(slot));
    }
    return missing;
}

// A blank disk cannot be a missing one.
std::vector<std::string> NodeDisks::strangers_of(const std::string& pool) const {
    std::vector<std::string> strangers;
    for (const auto& disk : disks_) {
        if (disk->settings().pool != pool || disk->stage() != DiskStage::kGivenUp) continue;
        if (disk->was_blank()) continue;
        const SlotEntry* const known = slots_.find(disk->disk_id());
        if (known == nullptr || disk_of(*known) == nullptr) {
            strangers.push_back(name_and_cause(*disk));
        }
    }
    return strangers;
}

// -- reports --

std::vector<DiskReport> NodeDisks::reports() const {
    std::vector<DiskReport> reports;
    for (std::size_t i = 0; i < disks_.size(); ++i) reports.push_back(report_of(i));
    for (const Away& each : away_) {
        reports.push_back({.name = each.settings.name,
                           .pool = each.settings.pool,
                           .path = each.settings.path,
                           .state = "removed",
                           .slot = each.known.slot,
                           .disk = each.known.disk,
                           .scrub = "never"});
    }
    return reports;
}

std::vector<DiskReport> NodeDisks::reports_of_all() const {
    std::vector<DiskReport> all = reports();
    for (const MissingSlot& each : missing_slots()) {
        const std::string id = devices::format_id(each.disk);
        const auto named = std::ranges::find(all, each.device, &DiskReport::name);
        // The report of the device that should have the disk has the reason already.
        const bool is_shown = std::ranges::any_of(all, [&](const DiskReport& report) {
            return (report.slot == each.slot && report.disk == id) ||
                   (report.name == each.device && report.state == std::string_view("given-up"));
        });
        if (is_shown) continue;
        const bool is_taken = each.device.empty() || named != all.end();
        all.push_back({.name = is_taken ? "slot-" + std::to_string(each.slot) : each.device,
                       .pool = each.pool,
                       .state = "missing",
                       .reason = each.reason,
                       .slot = each.slot,
                       .disk = id,
                       .scrub = "never"});
    }
    return all;
}

DiskReport NodeDisks::report_of(std::size_t index) const {
    DiskReport report = daemon::report_of(*disks_[index], known_[index]);
    const SlotEntry* const entry = entry_of(report);
    if (entry == nullptr) return report;
    // The table is written only from time to time. An open disk also knows the damage that was
    // found since.
    const bool knows_more = is_open(disks_[index]->stage()) && !damage_[index].is_released();
    report.damaged_blocks = knows_more
                                ? damage_[index].damaged_blocks(*entry, disks_[index]->figures())
                                : entry->damaged_blocks;
    report.scrubbed_at_s = entry->scrubbed_at_s;
    return report;
}

void NodeDisks::collect(core::MetricSink& sink) const {
    const std::lock_guard lock(shown_);
    for (std::size_t i = 0; i < disks_.size(); ++i) {
        collect_disk(sink, *disks_[i]);
        damage_[i].collect(sink, disks_[i]->settings());
    }
}

}  // namespace fopd::daemon

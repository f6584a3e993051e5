// How the library finds out which cartridges it has.

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "library/doubles.h"
#include "library/drive_handling.h"
#include "library/tape_library.h"

namespace fopd::library {

namespace {

// Lists of cartridges ask the changer at most so often.
constexpr Duration kLookForLists = 10s;

}  // namespace

// The cartridges in drives, which the inventory may not name: in a drive that is down, or without a
// barcode that the changer can read there.
class TapeLibrary::InDrives {
public:
    InDrives(const Robot& robot, const std::vector<Unit>& units) {
        for (const Unit& each : units) {
            if (each.drive->cartridge()) loaded_.insert(*each.drive->cartridge());
            const devices::LibraryElement* const element =
                robot.drive_element(each.drive->drive().serial());
            if (element == nullptr || !element->full) continue;
            has_nameless_ = has_nameless_ || element->barcode.empty();
            if (each.drive->is_down()) stuck_.insert(element->barcode);
        }
    }

    bool is_stuck(const std::string& barcode) const { return stuck_.contains(barcode); }
    // Whether a cartridge may be in a drive, although no element reports its barcode.
    bool may_have(CartridgeId id) const { return has_nameless_ || loaded_.contains(id); }

private:
    std::set<std::string> stuck_;
    std::set<CartridgeId> loaded_;
    bool has_nameless_ = false;
};

// Compares the table of media with the elements that the changer reports. Returns whether there are
// new cartridges.
bool TapeLibrary::take_inventory(Inventory which) {
    const InDrives in_drives(*robot_, units_);
    std::set<std::string> present;
    std::set<std::string> added;
    for (const devices::LibraryElement& each : robot_->elements()) {
        if (!each.full) {
            nameless_.erase(each.address);
            continue;
        }
        if (!is_barcode(each.barcode)) {
            if (!nameless_.insert(each.address).second) continue;
            core::emit(parts_.events, core::Level::kWarn, "library.no_barcode",
                       {{"element", std::uint64_t{each.address}},
                        {"barcode", std::string_view(each.barcode)}});
            continue;
        }
        nameless_.erase(each.address);
        const Cartridge* known = shelf_->table().find(each.barcode);
        if (known == nullptr) {
            known = shelf_->to_change().add(each.barcode);
            if (known == nullptr) continue;  // The table is full.
            added.insert(each.barcode);
        }
        present.insert(each.barcode);
    }
    const Doubles doubles = find_doubles(robot_->elements(), shelf_->table());
    for (const std::string& barcode : present) {
        const Cartridge& known = *shelf_->table().find(barcode);
        const CartridgeId id = known.id;
        // An exported cartridge is used again only after an administrator has imported it.
        if (known.state == CartridgeState::kExported) continue;
        const bool is_found =
            known.state == CartridgeState::kMissing && !in_drives.is_stuck(barcode);
        if (const auto is_double = doubles.find(barcode); is_double != doubles.end()) {
            shelf_->set_state(id, CartridgeState::kDisabled, is_double->second);
        } else if (is_found || known.state == CartridgeState::kDisabled) {
            shelf_->set_found(id);
        } else if (which == Inventory::kFirst || added.contains(barcode)) {
            shelf_->show(id);
        }
    }
    for (const Cartridge& each : std::vector(shelf_->table().all())) {
        const bool is_known =
            each.state == CartridgeState::kMissing || each.state == CartridgeState::kExported;
        if (!is_known && robot_->count(each.barcode) == 0 && !in_drives.may_have(each.id)) {
            shelf_->set_state(each.id, CartridgeState::kMissing, "it is not in the library");
        }
    }
    return !added.empty();
}

// Makes an inventory. People bring and take cartridges, and no changer reports that by itself; so
// one is made when a cartridge is missing or an administrator names one. Concurrent callers share
// an inventory that has begun after their call.
Task<void> TapeLibrary::look_again() {
    if (!is_ready()) co_return;
    const std::uint64_t mine = ++looks_wanted_;
    while (looks_done_ < mine && !stopping_) {
        if (looks_now_) {
            // No deadline: the inventory in progress ends.
            [[maybe_unused]] const auto woken = co_await looked_.wait({});
            continue;
        }
        looks_now_ = true;
        const std::uint64_t covers = looks_wanted_;
        co_await look_now();
        looks_now_ = false;
        looks_done_ = covers;
        looked_.wake_all();
    }
}

Task<void> TapeLibrary::look_for_media() {
    if (!is_ready() || robot_->is_busy()) co_return;
    const bool is_recent = last_look_ && parts_.reactor.now() < after(*last_look_, kLookForLists);
    if (!is_recent) co_await look_again();
}

Task<void> TapeLibrary::look_now() {
    last_look_ = parts_.reactor.now();
    const auto looked = co_await robot_->look();
    if (!looked || stopping_) co_return;
    co_await take_missing_from_down();
    if (stopping_) co_return;
    const std::uint64_t before = shelf_->changes();
    const bool has_new = take_inventory(Inventory::kAgain);
    if (has_new) {
        // A new cartridge may have copies of objects, if the table of media was lost.
        [[maybe_unused]] const auto adopted = co_await adopt_recorded_media();
    }
    take_strays();
    if (!has_new && shelf_->changes() == before) co_return;
    [[maybe_unused]] const auto saved = co_await shelf_->save();
    ring();
}

// A cartridge that people have put into a drive is used there. One that the changer cannot name
// goes to a storage element, where its barcode may be readable. One that the library must not use
// stays until the drive is needed.
void TapeLibrary::take_strays() {
    if (stopping_) return;
    for (Unit& each : units_) {
        if (!has_stray(each)) continue;
        const std::string& barcode = robot_->drive_element(each.drive->drive().serial())->barcode;
        const Cartridge* const known = shelf_->table().find(barcode);
        if (known == nullptr) {
            parts_.reactor.spawn(gate_, put_stray_away(&each));
        } else if (known->state != CartridgeState::kExported &&
                   known->state != CartridgeState::kDisabled) {
            parts_.reactor.spawn(gate_, adopt_stray(&each, known->id));
        }
    }
}

bool TapeLibrary::has_stray(const Unit& unit) const {
    const DriveUnit& drive = *unit.drive;
    const bool is_free = !unit.is_handled && unit.device->is_idle() && !drive.is_down();
    return is_free && !drive.cartridge() && robot_->has_stray(drive.drive().serial());
}

Task<void> TapeLibrary::adopt_stray(Unit* unit, CartridgeId id) {
    // Meanwhile others may use the drive, or the cartridge.
    const io_sched::MediumId medium{id};
    const auto is_its = [medium](const Unit& each) {
        return each.device->medium() == medium || each.device->leaving() == medium;
    };
    const bool is_taken = unit_with(id) != nullptr || std::ranges::any_of(units_, is_its);
    if (stopping_ || is_taken || !has_stray(*unit)) co_return;
    const Handling handling(*this, *unit);
    unit->loads = id;
    // Requests for the cartridge wait for this drive.
    parts_.io.set_drive_medium(*unit->device, medium);
    co_await unit->drive->adopt(id);
    unit->loads = 0;
}

Task<void> TapeLibrary::put_stray_away(Unit* unit) {
    if (stopping_ || !has_stray(*unit)) co_return;
    const Handling handling(*this, *unit);
    const auto away = co_await unit->drive->unload();
    if (away) co_await look_again();
}

// The changer may get a cartridge now that it could not get out of a drive that is down.
Task<void> TapeLibrary::take_missing_from_down() {
    std::vector<std::string> drives;
    for (const Unit& each : units_) {
        if (!each.drive->is_down() || each.drive->cartridge()) continue;
        const std::string serial(each.drive->drive().serial());
        const devices::LibraryElement* const element = robot_->drive_element(serial);
        if (element == nullptr || !element->full) continue;
        const Cartridge* const known = shelf_->table().find(element->barcode);
        const bool is_missing = known != nullptr && known->state == CartridgeState::kMissing;
        if (is_missing) drives.push_back(serial);
    }
    for (const std::string& each : drives) {
        if (stopping_) co_return;
        // Otherwise it stays missing.
        [[maybe_unused]] const auto taken = co_await robot_->take_from_down(each);
    }
}

// Repairs the table of media after it was lost or replaced by an older one: the records of copies,
// in the logs of the disks, name the generation that a cartridge must have at least. The end of its
// data is found when it is next written.
Task<Result<void>> TapeLibrary::adopt_recorded_media() {
    RecordedMedia all;
    for (std::uint32_t locality = 0; locality < homes_->count(); ++locality) {
        auto job = [](StagingDisks& disks) { return disks.recorded_media(); };
        auto answer = co_await homes_->call_at<Result<RecordedMedia>>(locality, &job);
        if (!answer) co_return std::unexpected(answer.error());
        if (!*answer) co_return std::unexpected(answer->error());
        for (const auto& [vsn, recorded] : **answer) {
            RecordedMedium& known = all[vsn];
            if (recorded.generation > known.generation) known = recorded;
        }
    }
    for (const Cartridge& each : std::vector(shelf_->table().all())) {
        const auto recorded = all.find(each.vsn_text());
        if (recorded == all.end() || each.generation >= recorded->second.generation) continue;
        adopt(each.id, recorded->second);
    }
    co_return Result<void>{};
}

void TapeLibrary::adopt(CartridgeId id, const RecordedMedium& recorded) {
    const Pool* const pool = find_pool(recorded.pool);
    Cartridge& cartridge = shelf_->begin_generation(
        id, recorded.generation, pool == nullptr ? std::string_view() : pool->options.name);
    cartridge.number_on_tape = Cartridge::kUnknownNumber;
    const std::string barcode = cartridge.barcode;
    core::emit(parts_.events, core::Level::kWarn, "library.medium_adopted",
               {{"medium", std::string_view(barcode)},
                {"generation", std::uint64_t{recorded.generation}}});
    const bool is_there = cartridge.state == CartridgeState::kBlank ||
                          cartridge.state == CartridgeState::kForeign ||
                          is_readable(cartridge.state);
    if (is_there) shelf_->set_state(id, CartridgeState::kOk, "");
    shelf_->show(id);
}

}  // namespace fopd::library

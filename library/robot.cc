#include "library/robot.h"

#include <algorithm>
#include <utility>

namespace fopd::library {

using devices::LibraryElement;

namespace {

constexpr Error kMovedOther{.code = Errc::kIo,
                            .context = "the changer has moved another cartridge"};

}  // namespace

// The changer does one thing at a time.
class Robot::Turn {
public:
    explicit Turn(Robot& robot) : robot_(robot) {}
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn() {
        if (!has_) return;
        robot_.busy_ = false;
        robot_.free_.wake_one();
    }
    Task<void> take() {
        while (robot_.busy_) {
            // No deadline: each move ends.
            [[maybe_unused]] const auto woken = co_await robot_.free_.wait({});
        }
        robot_.busy_ = true;
        has_ = true;
    }

private:
    Robot& robot_;
    bool has_ = false;
};

Task<Result<void>> Robot::look() {
    Turn turn(*this);
    co_await turn.take();
    co_return co_await look_now();
}

Task<Result<void>> Robot::look_now() {
    auto elements = co_await parts_.changer.inventory();
    // A library has elements; without this check every cartridge would be missing.
    const bool is_nothing = elements && elements->empty();
    if (is_nothing) {
        elements =
            std::unexpected(Error{.code = Errc::kIo, .context = "the changer reports no elements"});
    }
    Result<void> looked;
    if (elements) {
        elements_ = *std::move(elements);
        std::erase_if(uses_, [this](const auto& each) {
            const LibraryElement* const drive = drive_element(each.first);
            return each.second == Use::kGivenBack && drive != nullptr && !drive->full;
        });
    } else {
        looked = std::unexpected(elements.error());
    }
    note(looked);
    co_return looked;
}

// A changer that people use, which is kBusy, has no fault.
void Robot::note(const Result<void>& looked) {
    if (!looked && looked.error().code == Errc::kBusy) return;
    const bool had_fault = !fault_.empty();
    fault_ = looked ? std::string() : describe(looked.error());
    if (looked.has_value() != had_fault) return;
    core::emit(
        parts_.events, looked ? core::Level::kInfo : core::Level::kError,
        looked ? "library.changer_works" : "library.changer_failed",
        {{"library", std::string_view(parts_.library)}, {"reason", std::string_view(fault_)}});
}

const LibraryElement* Robot::drive_element(std::string_view serial) const {
    const auto found = std::ranges::find_if(elements_, [serial](const LibraryElement& each) {
        return each.kind == LibraryElement::Kind::kDrive && each.drive_serial == serial;
    });
    return found == elements_.end() ? nullptr : &*found;
}

const LibraryElement* Robot::element(std::uint32_t address) const {
    const auto found = std::ranges::find(elements_, address, &LibraryElement::address);
    return found == elements_.end() ? nullptr : &*found;
}

const LibraryElement* Robot::cartridge(std::string_view barcode) const {
    const auto found = std::ranges::find_if(elements_, [barcode](const LibraryElement& each) {
        return each.full && each.barcode == barcode;
    });
    return found == elements_.end() ? nullptr : &*found;
}

std::size_t Robot::count(std::string_view barcode) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        elements_,
        [barcode](const LibraryElement& each) { return each.full && each.barcode == barcode; }));
}

Result<const LibraryElement*> Robot::only_cartridge(std::string_view barcode) const {
    const LibraryElement* const found = cartridge(barcode);
    if (found == nullptr) {
        return std::unexpected(
            Error{.code = Errc::kNotFound, .context = "the cartridge is not in the library"});
    }
    if (count(barcode) > 1) {
        return std::unexpected(
            Error{.code = Errc::kInvalid, .context = "several cartridges have the barcode"});
    }
    return found;
}

const LibraryElement* Robot::free_element(LibraryElement::Kind kind) const {
    const auto found = std::ranges::find_if(elements_, [kind](const LibraryElement& each) {
        return each.kind == kind && each.accessible && !each.full;
    });
    return found == elements_.end() ? nullptr : &*found;
}

std::size_t Robot::count_elements(LibraryElement::Kind kind, bool full) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(elements_, [kind, full](const LibraryElement& each) {
            return each.kind == kind && each.full == full;
        }));
}

Task<Result<void>> Robot::load(Load what) {
    Turn turn(*this);
    co_await turn.take();
    // People may have moved cartridges.
    const auto looked = co_await look_now();
    if (!looked) co_return looked;
    const auto found = only_cartridge(what.barcode);
    if (!found) co_return std::unexpected(found.error());
    const LibraryElement* const from = *found;
    const LibraryElement* const to = drive_element(what.drive_serial);
    if (to == nullptr) {
        co_return std::unexpected(
            Error{.code = Errc::kUnsupported, .context = "the library does not know the drive"});
    }
    std::uint32_t source = from->address;
    const std::uint32_t target = to->address;
    if (source == target) {
        note_used(what.drive_serial);
        co_return Result<void>{};
    }
    if (from->kind == LibraryElement::Kind::kDrive) {
        const auto out = co_await get_out(what.barcode, target);
        if (!out) co_return std::unexpected(out.error());
        source = *out;
    }
    if (source != target) {
        const auto moved = co_await move(source, target);
        if (!moved) {
            // It may be there, and is not loaded.
            uses_.insert_or_assign(what.drive_serial, Use::kGivenBack);
            co_return moved;
        }
    }
    co_return co_await check_brought(std::move(what));
}

// A drive that is not added may be in use by others, or is about to be opened.
bool Robot::is_used(std::string_view drive_serial) const {
    const auto use = uses_.find(drive_serial);
    return use == uses_.end() ? !drives_.contains(drive_serial) : use->second == Use::kUsed;
}

bool Robot::has_stray(std::string_view drive_serial) const {
    const LibraryElement* const drive = drive_element(drive_serial);
    return drive != nullptr && drive->full && !uses_.contains(drive_serial);
}

// Moves a cartridge out of a drive that does not use it: to a free storage element, since not every
// changer moves cartridges from one drive to another, or to `to` if none is free. Returns where it
// is now.
Task<Result<std::uint32_t>> Robot::get_out(std::string barcode, std::uint32_t to) {
    const LibraryElement* const from = cartridge(barcode);
    const std::string serial = from->drive_serial;
    const std::uint32_t source = from->address;
    const bool is_down = down_.contains(serial);
    if (!is_down && is_used(serial)) {
        co_return std::unexpected(
            Error{.code = Errc::kBusy, .context = "the cartridge is in another drive"});
    }
    const LibraryElement* const free = free_element(LibraryElement::Kind::kStorage);
    const std::uint32_t where = free == nullptr ? to : free->address;
    bool may_unload = !is_down;
    bool is_stuck = is_down;
    for (;;) {
        const auto moved = co_await parts_.changer.move(source, where);
        // A failed move may have moved it, so that only an inventory tells.
        const auto looked = co_await look_now();
        if (!looked) co_return std::unexpected(looked.error());
        const LibraryElement* const now = cartridge(barcode);
        if (now != nullptr && now->address == where) co_return where;
        const bool has_stayed = now != nullptr && now->address == source;
        if (has_stayed && is_stuck) {
            co_return std::unexpected(
                Error{.code = Errc::kDenied,
                      .context = "the cartridge is in a drive that does not give it back"});
        }
        if (moved) {
            co_return std::unexpected(kMovedOther);
        }
        if (!has_stayed || !may_unload) co_return std::unexpected(moved.error());
        may_unload = false;
        const auto unloaded = co_await unload(serial);
        is_stuck = !unloaded && unloaded.error().code != Errc::kBusy;
    }
}

// A drive loads a cartridge that people put into it by itself. Then the changer gets it only when
// the drive has unloaded it.
Task<Result<void>> Robot::unload(std::string drive_serial) {
    const auto found = drives_.find(drive_serial);
    if (found == drives_.end()) co_return Result<void>{};
    devices::TapeDrive* const drive = found->second;
    const auto unloaded = co_await drive->unload();
    const bool is_empty = !unloaded && unloaded.error().code == Errc::kNotFound;
    if (is_empty) co_return Result<void>{};
    co_return unloaded;
}

// Of a wrong cartridge, the label would be compared with the record of the wanted one, which would
// be called foreign. A changer that cannot read barcodes in drives is believed.
Task<Result<void>> Robot::check_brought(Load what) {
    const LibraryElement* const brought = drive_element(what.drive_serial);
    const bool is_other = brought != nullptr && brought->full && !brought->barcode.empty() &&
                          brought->barcode != what.barcode;
    if (!is_other) {
        note_used(what.drive_serial);
        co_return Result<void>{};
    }
    uses_.insert_or_assign(what.drive_serial, Use::kGivenBack);
    const LibraryElement* const free = free_element(LibraryElement::Kind::kStorage);
    if (free != nullptr) {
        // If it stays in the drive, it is put away before the next load.
        [[maybe_unused]] const auto back = co_await move(brought->address, free->address);
    }
    co_return std::unexpected(
        Error{.code = Errc::kIo, .context = "the changer has brought another cartridge"});
}

Task<Result<void>> Robot::put_away(std::string drive_serial) {
    Turn turn(*this);
    co_await turn.take();
    uses_.insert_or_assign(drive_serial, Use::kGivenBack);
    const auto looked = co_await look_now();
    if (!looked) co_return looked;
    co_return co_await clear_drive(std::move(drive_serial));
}

Task<Result<void>> Robot::take_from_down(std::string drive_serial) {
    Turn turn(*this);
    co_await turn.take();
    if (!down_.contains(drive_serial)) co_return Result<void>{};
    uses_.insert_or_assign(drive_serial, Use::kGivenBack);
    co_return co_await clear_drive(std::move(drive_serial));
}

// REQUIRES: it is the caller's turn.
Task<Result<void>> Robot::clear_drive(std::string drive_serial) {
    const LibraryElement* const from = drive_element(drive_serial);
    if (from == nullptr || !from->full) co_return Result<void>{};
    const LibraryElement* const to = free_element(LibraryElement::Kind::kStorage);
    if (to == nullptr) {
        co_return std::unexpected(
            Error{.code = Errc::kNoSpace, .context = "no storage element is free"});
    }
    co_return co_await move_exactly(from->address, to->address);
}

void Robot::add_drive(devices::TapeDrive& drive) {
    drives_.insert_or_assign(std::string(drive.serial()), &drive);
}

void Robot::remove_drive(std::string_view serial) {
    const auto found = drives_.find(serial);
    if (found != drives_.end()) drives_.erase(found);
}

void Robot::note_used(std::string_view drive_serial) {
    uses_.insert_or_assign(std::string(drive_serial), Use::kUsed);
}

void Robot::note_given_back(std::string_view drive_serial) {
    uses_.insert_or_assign(std::string(drive_serial), Use::kGivenBack);
}

void Robot::note_down(std::string_view drive_serial) {
    down_.insert(std::string(drive_serial));
}

void Robot::note_up(std::string_view drive_serial) {
    const auto found = down_.find(drive_serial);
    if (found != down_.end()) down_.erase(found);
}

std::string_view Robot::keeper(std::string_view barcode) const {
    const LibraryElement* const found = cartridge(barcode);
    if (found == nullptr || found->kind != LibraryElement::Kind::kDrive) return {};
    const auto drive = drives_.find(found->drive_serial);
    return drive == drives_.end() ? std::string_view() : drive->second->name();
}

Robot::Exchange Robot::exchange() const {
    constexpr auto kExchange = LibraryElement::Kind::kExchange;
    const std::size_t free = count_elements(kExchange, false);
    return {.count = count_elements(kExchange, true) + free, .free = free};
}

bool Robot::is_outside(std::string_view barcode) const {
    const LibraryElement* const found = cartridge(barcode);
    return found != nullptr && found->kind == LibraryElement::Kind::kExchange;
}

Task<Result<void>> Robot::take_out(std::string barcode) {
    Turn turn(*this);
    co_await turn.take();
    const auto looked = co_await look_now();
    if (!looked) co_return looked;
    const auto from = only_cartridge(barcode);
    if (!from) co_return std::unexpected(from.error());
    if ((*from)->kind == LibraryElement::Kind::kExchange) co_return Result<void>{};
    if ((*from)->kind == LibraryElement::Kind::kDrive) {
        co_return std::unexpected(
            Error{.code = Errc::kBusy, .context = "the cartridge is in a drive"});
    }
    const LibraryElement* const to = free_element(LibraryElement::Kind::kExchange);
    if (to == nullptr) {
        co_return std::unexpected(
            Error{.code = Errc::kNoSpace, .context = "no import/export element is free"});
    }
    co_return co_await move_exactly((*from)->address, to->address);
}

Task<Result<void>> Robot::bring_in(std::string barcode) {
    Turn turn(*this);
    co_await turn.take();
    const auto looked = co_await look_now();
    if (!looked) co_return looked;
    const auto from = only_cartridge(barcode);
    if (!from) co_return std::unexpected(from.error());
    if ((*from)->kind != LibraryElement::Kind::kExchange) co_return Result<void>{};
    const LibraryElement* const to = free_element(LibraryElement::Kind::kStorage);
    const std::size_t in_drives = count_elements(LibraryElement::Kind::kDrive, true);
    const bool has_room =
        to != nullptr && count_elements(LibraryElement::Kind::kStorage, false) > in_drives;
    if (!has_room) {
        co_return std::unexpected(
            Error{.code = Errc::kNoSpace, .context = "no storage element is free"});
    }
    co_return co_await move_exactly((*from)->address, to->address);
}

Task<Result<void>> Robot::move_exactly(std::uint32_t from, std::uint32_t to) {
    const auto moved = co_await move(from, to);
    if (!moved) co_return moved;
    const LibraryElement* const left = element(from);
    const LibraryElement* const reached = element(to);
    const bool has_arrived = reached != nullptr && reached->full;
    if (!has_arrived || (left != nullptr && left->full)) {
        co_return std::unexpected(kMovedOther);
    }
    co_return Result<void>{};
}

Task<Result<void>> Robot::move(std::uint32_t from, std::uint32_t to) {
    const auto moved = co_await parts_.changer.move(from, to);
    // After a failure only an inventory tells where the cartridge is.
    const auto looked = co_await look_now();
    if (!moved) co_return moved;
    co_return looked;
}

}  // namespace fopd::library

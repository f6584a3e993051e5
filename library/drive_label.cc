// How a drive compares the labels of its cartridge with the table of media.

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/ensure.h"
#include "library/drive_unit.h"
#include "store/tape/cartridge.h"

namespace fopd::library {

namespace {

// The position of the cartridge's number in a file id.
constexpr unsigned kNumberShift = 44;

// States with these reasons end when a later load finds the cartridge writable, as kDoesNotLoad.
constexpr const char* kProtected = "it is write-protected";
constexpr const char* kImageDamaged = "its image is damaged, and can only be read";

// The begin of the reason of a cartridge whose label is right, and whose serial number is not.
constexpr std::string_view kMayBeCopy = "it may be a copy: ";

constexpr const char* kLostAll = "it is blank, and had a label and data";

// The reason why a loaded cartridge cannot be written.
const char* why_only_read(const devices::LoadedTape& loaded) {
    return loaded.damaged ? kImageDamaged : kProtected;
}

// Whether the state of the cartridge ends when it is loaded and can be written.
bool ends_with_mount(const Cartridge& cartridge) {
    const bool is_bad = cartridge.state == CartridgeState::kReadOnly ||
                        cartridge.state == CartridgeState::kSuspect ||
                        cartridge.state == CartridgeState::kFailed;
    const std::string_view reason = cartridge.reason;
    return is_bad &&
           (reason == kProtected || reason == kImageDamaged || reason.starts_with(kDoesNotLoad));
}

std::string words_of_serials(const std::string& there, const std::string& known) {
    return "its serial number is " + there + " instead of " + known;
}

}  // namespace

std::uint64_t DriveUnit::file_id(const Cartridge& cartridge, std::uint64_t number) {
    const CartridgeId on_tape = cartridge.number_on_tape.value_or(cartridge.id);
    return std::uint64_t{on_tape} << kNumberShift |
           (std::uint64_t{cartridge.generation} & 0xfffU) << 32U | (number & 0xffff'ffffU);
}

Task<Result<void>> DriveUnit::check_label(CartridgeId id) {
    const Cartridge before = *parts_.shelf.find(id);
    const auto found = co_await store::inspect(&parts_.drive, identity_of(before));
    if (!found) co_return std::unexpected(found.error());
    note_generation(*found);
    using Kind = store::CartridgeKind;
    const bool is_labelled = before.generation > 0;
    const bool may_be_blank = before.state == CartridgeState::kBlank ||
                              before.state == CartridgeState::kFailed || before.is_label_pending;
    const bool may_be_labelled =
        is_labelled && (found->kind == Kind::kOurs || found->kind == Kind::kOtherGeneration ||
                        found->kind == Kind::kUnreadable);
    const std::string serial = parts_.drive.loaded()->serial;
    const bool is_other = !before.serial.empty() && !serial.empty() && before.serial != serial;
    // A cartridge whose label could not be written may get a new one by itself, its copy must not.
    const bool is_unwritten =
        before.state == CartridgeState::kBlank || before.state == CartridgeState::kFailed;
    const bool is_wrong_copy = is_other && is_unwritten && found->kind != Kind::kBlank;
    const bool fits = may_be_blank ? found->kind == Kind::kBlank || may_be_labelled
                                   : found->kind == (is_labelled ? Kind::kOurs : Kind::kBlank);
    if (fits && !is_wrong_copy) {
        label_is_right_ = true;
        // Nothing is lost if a blank cartridge was replaced by another one.
        may_be_copy_ = is_other && found->kind != Kind::kBlank;
        if (!may_be_copy_ && !serial.empty()) {
            parts_.shelf.to_change().change(id)->serial = serial;
        }
        const bool is_protected = parts_.drive.loaded()->write_protected;
        const bool was_lost =
            before.state == CartridgeState::kMissing || before.state == CartridgeState::kForeign;
        const bool has_label_now = before.is_label_pending && found->kind == Kind::kOurs;
        if (has_label_now) parts_.shelf.note_label(id);
        const bool lacks_label = before.is_label_pending && !has_label_now;
        const bool is_ok_without = lacks_label && before.state == CartridgeState::kOk;
        if (was_lost || is_ok_without) parts_.shelf.set_found(id);
        const bool is_healed = ends_with_mount(*parts_.shelf.find(id)) && !is_protected;
        if (is_healed) parts_.shelf.set_found(id);
        co_await judge_serial(id);
        const CartridgeState state = parts_.shelf.find(id)->state;
        if (is_protected && (state == CartridgeState::kOk || state == CartridgeState::kBlank)) {
            parts_.shelf.set_state(id, CartridgeState::kReadOnly,
                                   why_only_read(*parts_.drive.loaded()));
        }
        co_return Result<void>{};
    }
    const bool has_lost_all = is_labelled && found->kind == Kind::kBlank;
    const char* const what = has_lost_all ? kLostAll
                             : fits       ? "it may be a copy of the cartridge"
                                          : store::describe_kind(found->kind);
    std::string reason = what;
    if (is_other) reason += "; " + words_of_serials(serial, before.serial);
    parts_.shelf.set_state(id, CartridgeState::kForeign, reason);
    [[maybe_unused]] const auto saved = co_await parts_.shelf.save();
    co_return std::unexpected(Error{.code = Errc::kInvalid, .context = what});
}

// From now on the record is about the loaded cartridge, whatever it was about before.
void DriveUnit::take_serial(Cartridge& cartridge) {
    const auto& loaded = parts_.drive.loaded();
    cartridge.serial = loaded ? loaded->serial : std::string();
    may_be_copy_ = false;
}

// Two cartridges with the same label may have different data behind it. One that may be the copy is
// read, since all that is read is compared with checksums, and not written: otherwise objects would
// be on one cartridge or the other. The state ends when the known one is back.
Task<void> DriveUnit::judge_serial(CartridgeId id) {
    const Cartridge cartridge = *parts_.shelf.find(id);
    const std::string serial = parts_.drive.loaded()->serial;
    if (may_be_copy_) {
        const bool may_be_suspect =
            is_readable(cartridge.state) && cartridge.state != CartridgeState::kSuspect;
        if (!may_be_suspect) co_return;
        const std::string reason =
            std::string(kMayBeCopy) + words_of_serials(serial, cartridge.serial);
        parts_.shelf.set_state(id, CartridgeState::kSuspect, reason);
    } else {
        const bool is_back = cartridge.state == CartridgeState::kSuspect && !serial.empty() &&
                             cartridge.reason.starts_with(kMayBeCopy);
        if (!is_back) co_return;
        parts_.shelf.set_found(id);
    }
    [[maybe_unused]] const auto saved = co_await parts_.shelf.save();
}

Task<Result<void>> DriveUnit::learn_number(store::TapeFile file) {
    if (parts_.shelf.find(*cartridge_)->number_on_tape != Cartridge::kUnknownNumber) {
        co_return Result<void>{};
    }
    const auto got = co_await reader();
    if (!got) co_return std::unexpected(got.error());
    const auto opened = co_await (*got)->open_file(file);
    if (!opened) co_return opened;
    if (!note_number((*got)->file().file_id)) {
        co_return std::unexpected(
            Error{.code = Errc::kCorrupt, .context = "the file id in HDR1 is another one"});
    }
    co_return co_await parts_.shelf.save();
}

// False: the file was not written under this label of the cartridge.
bool DriveUnit::note_number(std::uint64_t found_id) {
    const CartridgeId id = *cartridge_;
    Cartridge as_found = *parts_.shelf.find(id);
    as_found.number_on_tape = static_cast<CartridgeId>(found_id >> kNumberShift);
    if (file_id(as_found, found_id) != found_id) return false;
    parts_.shelf.note_number(id, *as_found.number_on_tape);
    return true;
}

// Notes the generation of the label on the tape; labels of other nodes or cartridges do not count.
void DriveUnit::note_generation(const store::Inspection& found) {
    const bool is_of_it = found.kind == store::CartridgeKind::kOurs ||
                          found.kind == store::CartridgeKind::kOtherGeneration;
    generation_on_tape_ = is_of_it ? found.generation : 0;
}

// The generation for the next label of the cartridge. It is higher than the generations in the
// table (which may have been lost), in the records of copies and on the tape, so that no earlier
// label equals it.
Task<Result<std::uint32_t>> DriveUnit::next_generation(CartridgeId id) {
    const Cartridge cartridge = *parts_.shelf.find(id);
    const auto recorded = co_await parts_.catalogue.newest_generation(cartridge.vsn_text());
    if (!recorded) co_return std::unexpected(recorded.error());
    const std::uint32_t newest = std::max({cartridge.generation, *recorded, generation_on_tape_});
    if (newest >= store::kTapeGenerationMax) {
        co_return std::unexpected(
            Error{.code = Errc::kNoSpace, .context = "the cartridge has no more generations"});
    }
    co_return newest + 1;
}

void DriveUnit::note_other(const store::Inspection& found) {
    const std::vector<Cartridge>& all = parts_.shelf.table().all();
    const auto other = std::ranges::find_if(all, [&](const Cartridge& each) {
        return each.id != cartridge_ && each.generation > 0 &&
               store::Vsn::from_barcode(each.barcode) == found.label->vsn;
    });
    if (other == all.end()) return;
    const auto kind = store::kind_if_expected(found, identity_of(*other));
    if (kind == store::CartridgeKind::kOurs) other_on_tape_ = other->id;
}

Task<Result<void>> DriveUnit::can_format() {
    ENSURE(cartridge_.has_value());
    forget_positions();
    other_on_tape_.reset();
    const auto found =
        co_await store::inspect(&parts_.drive, identity_of(*parts_.shelf.find(*cartridge_)));
    if (!found) co_return std::unexpected(found.error());
    note_generation(*found);
    if (found->kind == store::CartridgeKind::kCleaning) {
        co_return std::unexpected(
            Error{.code = Errc::kInvalid, .context = store::describe_kind(found->kind)});
    }
    if (found->kind == store::CartridgeKind::kOtherBarcode) note_other(*found);
    const devices::LoadedTape& loaded = *parts_.drive.loaded();
    if (loaded.write_protected) {
        co_return std::unexpected(Error{.code = Errc::kDenied, .context = why_only_read(loaded)});
    }
    co_return Result<void>{};
}

}  // namespace fopd::library

// How cartridges leave the library and come back, at the wish of an administrator.

#include <algorithm>
#include <string>
#include <utility>

#include "library/drive_handling.h"
#include "library/pending_recall.h"
#include "library/repacking.h"
#include "library/scrubbing.h"
#include "library/tape_library.h"

namespace fopd::library {

namespace {

using Kind = MediaOutcome::Kind;
using devices::LibraryElement;

constexpr const char* kExported = "fopctl import takes it into use again";

// The names come last: a reply has room for few words.
std::string words_of_loss(const std::string& barcode, const CopiesThere& there) {
    const std::uint64_t count = there.only_here;
    std::string words =
        std::to_string(count) + (count == 1 ? " object has its" : " objects have their") +
        " only copy on cartridge " + barcode + ", and could not be read; --yes confirms that";
    for (std::size_t i = 0; i < there.names.size(); ++i) {
        words += (i == 0 ? ": " : ", ") + there.names[i];
    }
    return words;
}

}  // namespace

// An idle drive may have it: that is not in use.
bool TapeLibrary::is_in_use(CartridgeId cartridge) const {
    const io_sched::MediumId medium{cartridge};
    return std::ranges::any_of(units_, [&](const Unit& each) {
        const bool is_its = each.drive->cartridge() == cartridge || each.loads == cartridge ||
                            each.device->medium() == medium || each.device->leaving() == medium;
        return is_its && (each.is_handled || !each.device->is_idle());
    });
}

std::string TapeLibrary::why_wanted(const Cartridge& cartridge) const {
    const std::string name = "cartridge " + cartridge.barcode;
    bool is_needed = false;
    recalls_.for_each([&](const Recall& each) {
        is_needed = is_needed || (each.cartridge() == cartridge.id && !each.is_over);
    });
    if (is_needed) return name + " is needed by a recall";
    if (repacks_.is_running(cartridge.id) || cartridge.repack == Repack::kRunning) {
        return name + " is being repacked";
    }
    return scrubs_.is_running(cartridge.id) ? name + " is being scrubbed" : std::string();
}

std::string TapeLibrary::why_not_export(const Cartridge& cartridge) const {
    const std::string name = "cartridge " + cartridge.barcode;
    if (cartridge.state == CartridgeState::kMissing ||
        cartridge.state == CartridgeState::kDisabled) {
        return name + " is " + std::string(to_string(cartridge.state)) + ": " + cartridge.reason;
    }
    if (is_in_use(cartridge.id)) return name + " is in use";
    return why_wanted(cartridge);
}

Task<MediaOutcome> TapeLibrary::may_export(const ExportWish* wish, CopiesThere* there) {
    // Where it is may have changed, and whether there is room for it.
    co_await look_again();
    const Cartridge* const found = known_cartridge(wish->barcode);
    if (found == nullptr) co_return no_such_medium(wish->barcode);
    const Cartridge cartridge = *found;
    std::string refusal = why_not_export(cartridge);
    if (!refusal.empty()) co_return outcome(Kind::kRefused, std::move(refusal));
    const Robot::Exchange exchange = robot_->exchange();
    const bool has_room =
        exchange.count == 0 || exchange.free > 0 || robot_->is_outside(cartridge.barcode);
    if (!has_room)
        co_return outcome(Kind::kRefused, "no import/export element is free; empty one first");
    auto counted = co_await count_copies(&cartridge);
    if (!counted) co_return failed_outcome(counted.error());
    *there = *std::move(counted);
    const bool hides = there->only_here > 0 && cartridge.state != CartridgeState::kExported;
    if (hides && !wish->hides_objects)
        co_return outcome(Kind::kRefused, words_of_loss(cartridge.barcode, *there));
    // Others have gone on meanwhile.
    const Cartridge* const now = known_cartridge(cartridge.barcode);
    if (now == nullptr) co_return outcome(Kind::kRefused, "the library is not open");
    refusal = why_not_export(*now);
    if (!refusal.empty()) co_return outcome(Kind::kRefused, std::move(refusal));
    co_return MediaOutcome{};
}

Task<MediaOutcome> TapeLibrary::export_medium(ExportWish wish) {
    CopiesThere there;
    auto may = co_await may_export(&wish, &there);
    if (may.kind != Kind::kDone) co_return may;
    const CartridgeId id = known_cartridge(wish.barcode)->id;
    const auto exported = co_await take_out_of_use(id);
    if (!exported) co_return failed_outcome(exported.error());
    MediaOutcome done{.objects = there.objects, .only_here = there.only_here};
    if (robot_->exchange().count == 0) co_return done;
    const auto moved = co_await robot_->take_out(wish.barcode);
    done.is_in_exchange = moved.has_value();
    if (moved) co_return done;
    [[maybe_unused]] const auto undone = co_await use_again(id);
    co_return failed_outcome(moved.error());
}

// Nobody gets it for a request between its unload and its new state.
Task<Result<void>> TapeLibrary::take_out_of_use(CartridgeId id) {
    const auto in_drive = std::ranges::find_if(
        units_, [id](const Unit& each) { return each.drive->cartridge() == id; });
    if (in_drive != units_.end()) {
        // Units stay where they are while they are in use.
        Unit& unit = *in_drive;
        const Handling handling(*this, unit);
        const auto unloaded = co_await unit.drive->unload();
        if (!unloaded) co_return unloaded;
        if (!why_wanted(*shelf_->find(id)).empty()) {
            co_return std::unexpected(
                Error{.code = Errc::kBusy,
                      .context = "a recall, a repack or a scrub needs the cartridge now"});
        }
        shelf_->set_state(id, CartridgeState::kExported, kExported);
    } else {
        shelf_->set_state(id, CartridgeState::kExported, kExported);
    }
    const auto saved = co_await shelf_->save();
    if (!saved) shelf_->set_found(id);
    co_return saved;
}

Task<Result<void>> TapeLibrary::use_again(CartridgeId id) {
    if (shelf_->find(id)->state != CartridgeState::kExported) co_return Result<void>{};
    shelf_->set_found(id);
    const auto saved = co_await shelf_->save();
    ring();
    co_return saved;
}

Task<Result<void>> TapeLibrary::bring_in(std::string barcode) {
    const auto moved = co_await robot_->bring_in(barcode);
    if (!moved) co_return moved;
    const Cartridge* const found = known_cartridge(barcode);
    if (found == nullptr) co_return Result<void>{};
    const CartridgeId id = found->id;
    co_return co_await use_again(id);
}

// A cartridge without a barcode stays where it is.
std::vector<std::string> TapeLibrary::importable() const {
    std::vector<std::string> barcodes;
    for (const LibraryElement& each : robot_->elements()) {
        if (!each.full || !is_barcode(each.barcode)) continue;
        const Cartridge* const known = shelf_->table().find(each.barcode);
        const bool is_exported = known != nullptr && known->state == CartridgeState::kExported;
        if (each.kind == LibraryElement::Kind::kExchange || is_exported) {
            barcodes.push_back(each.barcode);
        }
    }
    return barcodes;
}

Task<MediaOutcome> TapeLibrary::import_media(std::string barcode) {
    co_await look_again();
    if (!is_ready()) co_return outcome(Kind::kRefused, "the library is not open");
    std::vector<std::string> wanted{barcode};
    if (barcode.empty()) {
        if (robot_->exchange().count == 0) {
            co_return outcome(Kind::kRefused,
                              "the library has no import/export elements; name the cartridge");
        }
        wanted = importable();
    } else if (known_cartridge(barcode) == nullptr) {
        co_return no_such_medium(barcode);
    } else if (robot_->count(barcode) == 0) {
        co_return outcome(Kind::kRefused, "cartridge " + barcode + " is not in the library");
    }
    MediaOutcome done;
    std::vector<std::string> brought;
    for (const std::string& each : wanted) {
        const auto came = co_await bring_in(each);
        if (!came) {
            done.kind = Kind::kFailed;
            done.words = "cartridge " + each + ": " + describe(came.error());
            break;
        }
        brought.push_back(each);
    }
    // Several may have the same barcode.
    co_await look_again();
    for (const std::string& each : brought) {
        const Cartridge* const cartridge = known_cartridge(each);
        if (cartridge != nullptr) done.imported.push_back(*cartridge);
    }
    ring();
    co_return done;
}

}  // namespace fopd::library

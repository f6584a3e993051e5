// How a drive reads a cartridge that has no records in this node.

#include "core/ensure.h"
#include "library/drive_unit.h"
#include "store/tape/cartridge.h"
#include "store/tape/recovery.h"

namespace fopd::library {

Task<Result<store::TapeIdentity>> DriveUnit::identify() {
    ENSURE(cartridge_.has_value());
    forget_positions();
    // What a mount has compared may be what the table is about to say no more.
    label_is_right_ = false;
    const auto identity = co_await store::read_identity(&parts_.drive);
    if (!identity) co_return identity;
    const auto vsn = store::Vsn::from_barcode(parts_.shelf.find(*cartridge_)->barcode);
    if (identity->vsn != vsn) {
        co_return std::unexpected(
            Error{.code = Errc::kInvalid,
                  .context = store::describe_kind(store::CartridgeKind::kOtherBarcode)});
    }
    if (identity->generation == 0 || identity->generation > store::kGenerationMax) {
        co_return std::unexpected(Error{.code = Errc::kInvalid,
                                        .context = "its label has a generation that is too large"});
    }
    co_return identity;
}

Task<Result<void>> DriveUnit::take_over(store::TapeIdentity identity) {
    const CartridgeId id = *cartridge_;
    const std::string pool = parts_.shelf.find(id)->pool;
    Cartridge& cartridge = parts_.shelf.begin_generation(id, identity.generation, pool);
    cartridge.rescue = Rescue::kRunning;
    cartridge.number_on_tape = Cartridge::kUnknownNumber;
    if (identity.node != parts_.node) cartridge.node_on_tape = identity.node;
    take_serial(cartridge);
    parts_.shelf.set_state(id, CartridgeState::kSuspect, "its objects are being rescued");
    co_return co_await parts_.shelf.save();
}

Task<Result<store::Recovered>> DriveUnit::find_copies(store::RecoverySink* sink) {
    forget_positions();
    store::TapeRecovery recovery(parts_.drive, identity_of(*parts_.shelf.find(*cartridge_)));
    co_return co_await recovery.run(store::TapeEnd(), sink);
}

bool DriveUnit::takes_file(const store::TapeFile& file) {
    const Cartridge& cartridge = *parts_.shelf.find(*cartridge_);
    if (cartridge.number_on_tape == Cartridge::kUnknownNumber) return note_number(file.file_id);
    return file_id(cartridge, file.number) == file.file_id;
}

}  // namespace fopd::library

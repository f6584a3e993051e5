// How a drive writes and reads its cartridge: sessions of writing, and where the data end.

#include <algorithm>
#include <optional>

#include "core/ensure.h"
#include "library/drive_unit.h"
#include "store/tape/cartridge.h"
#include "store/tape/recovery.h"

namespace fopd::library {

namespace {

// Copies that recovery finds in unrecorded files are dead: their objects were written again.
class Ignored final : public store::RecoverySink {
public:
    Task<Result<void>> found(store::TapeEntry entry) override {
        file_id = entry.file.file_id;
        co_return Result<void>{};
    }
    std::optional<std::uint64_t> file_id;  // The id of one of these files.

    Task<Result<void>> damaged(std::uint64_t /*file_number*/, Error /*error*/) override {
        co_return Result<void>{};
    }
};

// Whether the error shows that the data on the tape are wrong.
bool is_about_content(const Error& error) {
    return error.code == Errc::kCorrupt || error.code == Errc::kNotFound ||
           error.code == Errc::kInvalid;
}

}  // namespace

// -- sessions --

bool DriveUnit::needs_index() const {
    if (!cartridge_ || !label_is_right_ || is_down()) return false;
    const auto& loaded = parts_.drive.loaded();
    if (!loaded || loaded->write_protected) return false;
    const Cartridge& cartridge = *parts_.shelf.find(*cartridge_);
    const bool is_written =
        cartridge.state == CartridgeState::kOk || cartridge.state == CartridgeState::kFull;
    // The index file lists copies that have records. It would hide copies without an object from
    // the next rescue.
    const bool is_known = cartridge.rescue == Rescue::kNone || cartridge.rescue == Rescue::kDone;
    return is_written && is_known && cartridge.repack == Repack::kNone &&
           cartridge.files > cartridge.index_file;
}

std::optional<Instant> DriveUnit::session_at() const {
    return needs_index() ? session_at_ : std::nullopt;
}

Task<void> DriveUnit::end_session() {
    if (!needs_index()) co_return;
    const CartridgeId id = *cartridge_;
    const DriveActivity before = activity_;
    set_activity(DriveActivity::kWriting);
    parts_.drive.begin_trial();
    const auto written = co_await write_index(Index::kOfNewFiles);
    set_activity(before);
    session_at_.reset();
    if (written) co_return;
    const std::string barcode = parts_.shelf.find(id)->barcode;
    const std::string reason = describe(written.error());
    core::emit(parts_.events, core::Level::kWarn, "library.index_not_written",
               {{"medium", std::string_view(barcode)}, {"reason", std::string_view(reason)}});
    if (!parts_.drive.trial().has_failed) co_return;
    judge(id, io_sched::IoType::kWrite, {.kind = TapeOutcome::Kind::kTapeError, .result = written});
}

Task<Result<void>> DriveUnit::try_writing() {
    co_return co_await write_index(Index::kAlways);
}

Task<Result<void>> DriveUnit::write_index(Index which) {
    const CartridgeId id = *cartridge_;
    const auto opened = co_await writer();
    if (!opened) co_return std::unexpected(opened.error());
    store::TapeWriter* const writer = *opened;
    const Cartridge cartridge = *parts_.shelf.find(id);
    const std::uint64_t first = cartridge.index_file + 1;
    const bool has_new = first <= cartridge.files;
    if (!has_new && which == Index::kOfNewFiles) co_return Result<void>{};
    const auto entries = parts_.catalogue.copies_on(cartridge, first);
    const store::IndexOptions options{.first = first, .now = parts_.clock.wall()};
    const auto file = co_await store::write_index(writer, entries.get(), options);
    if (!file) co_return std::unexpected(file.error());
    const auto synced = co_await writer->sync();
    if (!synced) co_return synced;
    const store::TapeEnd& end = writer->durable_end();
    const std::uint64_t more_bytes = (end.block - cartridge.end_block) * devices::kTapeBlockMax;
    parts_.shelf.move_end(id, end, more_bytes);
    co_return co_await parts_.shelf.save();
}

// -- for jobs --

void DriveUnit::expect_blocks() {
    const Cartridge& cartridge = *parts_.shelf.find(*cartridge_);
    const std::uint64_t blocks = std::max<std::uint64_t>(cartridge.end_block, 1);
    parts_.drive.expect_blocks_of(cartridge.used_bytes / blocks);
}

Task<Result<store::TapeReader*>> DriveUnit::reader() {
    ENSURE(cartridge_.has_value());
    // Reading moves the tape away from where the writer believes it to be.
    writer_.reset();
    expect_blocks();
    if (!reader_) reader_.emplace(parts_.drive, identity_of(*parts_.shelf.find(*cartridge_)));
    co_return &*reader_;
}

Task<Result<store::TapeWriter*>> DriveUnit::writer() {
    ENSURE(cartridge_.has_value());
    if (may_be_copy_) {
        co_return std::unexpected(
            Error{.code = Errc::kInvalid,
                  .context = "the cartridge has the serial number of another cartridge"});
    }
    reader_.reset();
    if (writer_ && !writer_->failed()) co_return &*writer_;
    expect_blocks();
    const Cartridge cartridge = *parts_.shelf.find(*cartridge_);
    store::TapeEnd end{.files = cartridge.files,
                       .block = cartridge.files == 0 ? 1 : cartridge.end_block,
                       .index = {.file = cartridge.index_file, .block = cartridge.index_block}};
    writer_.emplace(parts_.drive, identity_of(cartridge), store::TapeSite());
    auto opened = co_await writer_->open(end);
    if (!opened && opened.error().code == Errc::kCorrupt) {
        const auto recovered = co_await recover(end, &end);
        if (!recovered) co_return std::unexpected(recovered.error());
        opened = co_await writer_->open(end);
    }
    if (!opened) {
        writer_.reset();
        co_return std::unexpected(opened.error());
    }
    // The cartridge has no tape file, so the number is free to choose.
    const bool is_open_number =
        parts_.shelf.find(*cartridge_)->number_on_tape == Cartridge::kUnknownNumber;
    if (is_open_number) parts_.shelf.note_number(*cartridge_, *cartridge_);
    co_return &*writer_;
}

// Finds the end of the data when it is not where the table says. Complete files that were not
// recorded stay on the tape.
Task<Result<void>> DriveUnit::recover(store::TapeEnd known, store::TapeEnd* end) {
    const CartridgeId id = *cartridge_;
    store::TapeRecovery recovery(parts_.drive, identity_of(*parts_.shelf.find(id)));
    Ignored ignored;
    const auto found = co_await recovery.run(known, &ignored);
    if (!found && !is_about_content(found.error())) co_return std::unexpected(found.error());
    if (!found || found->shorter) {
        constexpr const char* kShorter = "the tape has less than was recorded";
        const char* const why = found ? kShorter : found.error().context;
        parts_.shelf.set_state(id, CartridgeState::kSuspect, why);
        [[maybe_unused]] const auto saved = co_await parts_.shelf.save();
        co_return std::unexpected(Error{.code = Errc::kCorrupt, .context = why});
    }
    *end = found->end;
    const std::uint64_t more_bytes =
        (found->end.block - std::min(known.block, found->end.block)) * devices::kTapeBlockMax;
    parts_.shelf.move_end(id, found->end, more_bytes);
    const bool has_number = parts_.shelf.find(id)->number_on_tape != Cartridge::kUnknownNumber;
    if (!has_number && ignored.file_id) note_number(*ignored.file_id);
    const std::string barcode = parts_.shelf.find(id)->barcode;
    core::emit(parts_.events, core::Level::kInfo, "library.end_found",
               {{"medium", std::string_view(barcode)},
                {"files", found->end.files},
                {"recorded_files", known.files}});
    co_return co_await parts_.shelf.save();
}

}  // namespace fopd::library

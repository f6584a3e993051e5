#include "devices/tape/virtual_drive.h"

#include <algorithm>
#include <utility>

#include "core/ensure.h"
#include "devices/tape/in_flight.h"
#include "devices/tape/library_directory.h"
#include "devices/tape/tape_error.h"

namespace fopd::devices {

struct VirtualDrive::Opened {
    LoadedTape tape;
    std::optional<TapeFile> file;  // Nothing for a cleaning cartridge.
};

VirtualDrive::VirtualDrive(core::Reactor& reactor, core::Offload& offload,
                           VirtualDriveOptions options)
    : reactor_(reactor),
      offload_(offload),
      options_(std::move(options)),
      timing_(options_.technology) {}

Instant VirtualDrive::now() const {
    return options_.timing == TapeTiming::kReal ? reactor_.now() : clock_;
}

Task<void> VirtualDrive::spend_until(Instant end) {
    if (options_.timing == TapeTiming::kNone) co_return;
    if (options_.timing == TapeTiming::kCalculate) {
        clock_ = std::max(clock_, end);
        co_return;
    }
    const Instant began = reactor_.now();
    if (end <= began) co_return;
    clock_ += end - began;
    const auto slept = co_await reactor_.sleep_until(end);
    ENSURE(slept.has_value());
}

void VirtualDrive::put(std::optional<Cartridge> cartridge) {
    ENSURE(!busy());
    cartridge_ = std::move(cartridge);
}

// Blocks.
Result<VirtualDrive::Opened> VirtualDrive::open_cartridge() const {
    const auto info = read_cartridge_text(cartridge_->text_path);
    if (!info) return std::unexpected(info.error());
    auto tape = TapeDeck::examine(options_.technology, *info, options_.capacity_bytes);
    if (!tape) return std::unexpected(tape.error());
    if (tape->cleaning) return Opened{.tape = std::move(*tape), .file = std::nullopt};
    auto file = TapeFile::open({.path = cartridge_->image_path,
                                .boot_id = cartridge_->boot_id,
                                .read_only = tape->write_protected});
    if (!file) return std::unexpected(file.error());
    tape->write_protected = file->read_only();
    tape->damaged = file->damaged();
    return Opened{.tape = std::move(*tape), .file = std::move(*file)};
}

Task<Result<LoadedTape>> VirtualDrive::load() {
    const InFlight in_flight(in_flight_);
    if (!cartridge_) co_return tape_refused(Errc::kNotFound, "drive has no cartridge");
    if (deck_.loaded()) co_return tape_refused(Errc::kInvalid, "a tape is loaded already");
    const auto call = [this] { return open_cartridge(); };
    auto called = co_await offload_.run(reactor_, call);
    auto opened = flat(std::move(called));
    if (!opened) co_return std::unexpected(opened.error());

    file_ = std::move(opened->file);
    deck_.load(std::move(opened->tape), file_ ? file_->take_records() : RecordMap());
    const Instant end = timing_.load(now(), deck_.model());
    co_await spend_until(end);
    co_return *deck_.loaded();
}

Task<Result<void>> VirtualDrive::unload() {
    const InFlight in_flight(in_flight_);
    if (!cartridge_) co_return tape_refused(Errc::kNotFound, "drive has no cartridge");
    if (!deck_.loaded()) co_return Result<void>{};
    const Result<void> closed = co_await close_tape();
    if (deck_.loaded()) co_return closed;
    const Instant end = timing_.unload(now());
    co_await spend_until(end);
    co_return closed;
}

Task<Result<void>> VirtualDrive::close() {
    const InFlight in_flight(in_flight_);
    if (!deck_.loaded()) co_return Result<void>{};
    co_return co_await close_tape();
}

Task<Result<void>> VirtualDrive::close_tape() {
    Result<void> closed;
    if (file_) {
        const std::uint64_t end = deck_.records().end_offset();
        const auto call = [this, end] { return file_->close(end); };
        auto called = co_await offload_.run(reactor_, call);
        // Without a thread for it, the tape stays loaded.
        if (!called) co_return tape_refused(Errc::kBusy, called.error().context);
        closed = *called;
    }
    file_.reset();
    deck_.unload();
    co_return closed;
}

Task<Result<TapePosition>> VirtualDrive::position() {
    if (!deck_.loaded()) co_return tape_refused(Errc::kInvalid, "no tape is loaded");
    co_return deck_.position();
}

Task<Result<TapeRead>> VirtualDrive::read(core::Buffer into) {
    const InFlight in_flight(in_flight_);
    const auto next = deck_.next();
    if (!next) co_return std::unexpected(next.error());
    if (!*next) co_return TapeRead{.met = TapeMark::kEndOfData};
    const TapeRecord record = **next;
    deck_.pass();
    const Instant end = timing_.read(now(), image_bytes(record.size_bytes));
    co_await spend_until(end);
    const auto read = TapeDeck::read_result(record, into.size_bytes);
    if (!read || read->met == TapeMark::kFilemark) co_return read;
    const core::Buffer exact{.data = into.data, .size_bytes = read->size_bytes};
    const auto call = [this, exact, &record] { return file_->read(record.offset, exact); };
    auto called = co_await offload_.run(reactor_, call);
    const auto done = flat(std::move(called));
    if (!done) co_return std::unexpected(done.error());
    co_return read;
}

// Writes at the position with `change`, after which the data end behind it; nothing, if no records
// are wanted.
template <typename Change>
Task<Result<TapeRoom>> VirtualDrive::append(RoomWanted wanted, Change change) {
    const auto room = deck_.may_write(wanted);
    if (!room) co_return std::unexpected(room.error());
    if (*room == TapeRoom::kFull || wanted.count == 0) co_return *room;
    const std::uint64_t offset = deck_.offset();
    const auto call = [&change, offset] { return change(offset); };
    auto called = co_await offload_.run(reactor_, call);
    const auto done = flat(std::move(called));
    if (done || file_->size_bytes() == offset) deck_.cut();
    if (!done) co_return std::unexpected(done.error());
    deck_.wrote(wanted);
    const Instant end = timing_.write(now(), deck_.offset() - offset);
    co_await spend_until(end);
    co_return std::max(*room, *done);
}

Task<Result<TapeRoom>> VirtualDrive::write(core::Buffer from) {
    const InFlight in_flight(in_flight_);
    if (from.size_bytes == 0 || from.size_bytes > kTapeBlockMax) {
        co_return tape_refused(Errc::kInvalid, "block size is not between 1 B and 256 KiB");
    }
    const RoomWanted wanted{.size_bytes = static_cast<std::uint32_t>(from.size_bytes)};
    const auto change = [this, from](std::uint64_t offset) { return file_->write(offset, from); };
    auto task = append(wanted, change);
    co_return co_await std::move(task);
}

Task<Result<TapeRoom>> VirtualDrive::write_filemarks(std::uint32_t count, Marks marks) {
    const InFlight in_flight(in_flight_);
    const RoomWanted wanted{.size_bytes = 0, .count = count};
    const auto change = [this, count](std::uint64_t offset) {
        return file_->write_filemarks(offset, count);
    };
    auto task = append(wanted, change);
    const auto room = co_await std::move(task);
    if (!room || marks == Marks::kImmediate || !file_) co_return room;
    // A sync is made where nothing more can be written, too.
    if (*room == TapeRoom::kFull && count > 0) co_return room;
    const std::uint64_t end = deck_.records().end_offset();
    const auto call = [this, end] { return file_->sync(end); };
    auto called = co_await offload_.run(reactor_, call);
    const auto synced = flat(std::move(called));
    if (!synced) co_return std::unexpected(synced.error());
    const Instant flushed = timing_.flush(now());
    co_await spend_until(flushed);
    co_return room;
}

// Moves the tape as `move_deck` moves the deck.
template <typename MoveDeck>
Task<Result<void>> VirtualDrive::move(MoveDeck move_deck) {
    const InFlight in_flight(in_flight_);
    const auto moved = move_deck();
    if (!moved && moved.error().code != Errc::kNotFound) co_return moved;
    const Instant end = timing_.locate(now(), deck_.offset());
    co_await spend_until(end);
    co_return moved;
}

Task<Result<void>> VirtualDrive::locate(std::uint64_t block) {
    return move([this, block] { return deck_.move_to_block(block); });
}

Task<Result<void>> VirtualDrive::skip_filemarks(std::uint32_t count) {
    return move([this, count] { return deck_.move_behind_filemarks(count); });
}

Task<Result<void>> VirtualDrive::to_end_of_data() {
    return move([this] { return deck_.move_to_end_of_data(); });
}

}  // namespace fopd::devices

#include "devices/tape/memory_tape.h"

#include <algorithm>
#include <utility>

#include "core/ensure.h"
#include "devices/tape/element_address.h"
#include "devices/tape/in_flight.h"
#include "devices/tape/tape_error.h"

namespace fopd::devices {

MemoryTape::MemoryTape(core::Reactor& reactor, TapeLibraryImage& image, MemoryTapeOptions options)
    : reactor_(reactor),
      image_(image),
      options_(std::move(options)),
      random_(options_.seed),
      timing_(options_.technology) {}

CartridgeImage* MemoryTape::cartridge() const {
    return image_.at(kDriveAddress + options_.index);
}

bool MemoryTape::strikes(TapeFault fault, std::uint32_t ppm) {
    std::uint32_t& ahead = injected_[static_cast<std::size_t>(fault)];
    if (ahead > 0 && --ahead == 0) return true;
    return ppm > 0 && random_.chance_ppm(ppm);
}

// Of every operation.
Result<void> MemoryTape::begin() {
    TapeLibraryImage::Drive& state = image_.drive(options_.index);
    if (strikes(TapeFault::kDeath, options_.faults.death_ppm)) state.dead = true;
    if (state.dead) return tape_refused(Errc::kIo, "drive is dead");
    if (strikes(TapeFault::kSilent, options_.faults.silent_ppm)) {
        return tape_refused(Errc::kTimedOut, "drive does not answer");
    }
    return {};
}

// Of every operation but immediate writes. The position is where the data end now.
Result<void> MemoryTape::report_late_error() {
    if (!std::exchange(late_error_, false)) return {};
    lose_suffix();
    return tape_refused(Errc::kIo, "the drive reports a late error of an earlier write");
}

void MemoryTape::lose_suffix() {
    CartridgeImage& image = *cartridge();
    image.lose_suffix(random_);
    deck_.move_to(image.count());
    deck_.cut();
}

Task<void> MemoryTape::spend_until(Instant end) {
    constexpr Duration kJitter = 100us;
    end = std::max(end, reactor_.now()) + Duration{random_.between(1, kJitter.count())};
    if (strikes(TapeFault::kSlow, options_.faults.slow_ppm)) end += options_.faults.slow_delay;
    const auto slept = co_await reactor_.sleep_until(end);
    ENSURE(slept.has_value());
    co_await NeedsPower(options_.power);
}

Task<Result<LoadedTape>> MemoryTape::load() {
    const InFlight in_flight(in_flight_);
    if (const auto begun = begin(); !begun) co_return std::unexpected(begun.error());
    if (cartridge() == nullptr) co_return tape_refused(Errc::kNotFound, "drive has no cartridge");
    if (deck_.loaded()) co_return tape_refused(Errc::kInvalid, "a tape is loaded already");
    auto tape = TapeDeck::examine(options_.technology, cartridge()->info(), 0);
    if (!tape) co_return std::unexpected(tape.error());
    const bool strikes_now = strikes(TapeFault::kLoad, options_.faults.load_ppm);
    const bool fails = strikes_now || !cartridge()->loads();
    co_await power_step(options_.power);
    if (!fails) {
        image_.drive(options_.index).threaded = true;
        deck_.load(std::move(*tape), cartridge()->map());
        deck_.limit(cartridge()->limit_bytes());
    }
    co_await power_step(options_.power);
    const Instant end = fails ? reactor_.now() : timing_.load(reactor_.now(), deck_.model());
    co_await spend_until(end);
    if (fails) co_return tape_refused(Errc::kIo, "load the tape");
    co_return *deck_.loaded();
}

Task<Result<void>> MemoryTape::unload() {
    const InFlight in_flight(in_flight_);
    if (const auto begun = begin(); !begun) co_return begun;
    if (cartridge() == nullptr) co_return tape_refused(Errc::kNotFound, "drive has no cartridge");
    TapeLibraryImage::Drive& state = image_.drive(options_.index);
    if (!state.threaded) co_return Result<void>{};
    const auto late = report_late_error();
    co_await power_step(options_.power);
    if (late) cartridge()->make_durable();
    const bool is_stuck = strikes(TapeFault::kStuck, options_.faults.stuck_ppm);
    if (is_stuck) {
        if (deck_.loaded()) deck_.move_to(0);
    } else {
        deck_.unload();
        state.threaded = false;
    }
    co_await power_step(options_.power);
    const Instant end = timing_.unload(reactor_.now());
    co_await spend_until(end);
    if (is_stuck) co_return tape_refused(Errc::kIo, "unload the tape");
    co_return late;
}

Task<Result<TapePosition>> MemoryTape::position() {
    if (!deck_.loaded()) co_return tape_refused(Errc::kInvalid, "no tape is loaded");
    co_return deck_.position();
}

Task<Result<TapeRead>> MemoryTape::read(core::Buffer into) {
    const InFlight in_flight(in_flight_);
    if (const auto begun = begin(); !begun) co_return std::unexpected(begun.error());
    const auto late = report_late_error();
    if (!late) co_return std::unexpected(late.error());
    const auto next = deck_.next();
    if (!next) co_return std::unexpected(next.error());
    if (!*next) co_return TapeRead{.met = TapeMark::kEndOfData};
    const TapeRecord record = **next;
    deck_.pass();
    const Instant end = timing_.read(reactor_.now(), image_bytes(record.size_bytes));
    co_await spend_until(end);
    if (strikes(TapeFault::kRead, options_.faults.read_ppm)) {
        co_return tape_refused(Errc::kIo, "read a block");
    }
    const auto read = TapeDeck::read_result(record, into.size_bytes);
    if (!read || read->met == TapeMark::kFilemark) co_return read;
    cartridge()->read(record.number, into.span().first(read->size_bytes));
    co_return read;
}

// The effect of a write.
Result<TapeRoom> MemoryTape::put(core::Buffer from, RoomWanted wanted, TapeRoom room) {
    const TapeFaults& faults = options_.faults;
    if (!late_error_ && strikes(TapeFault::kWrite, faults.write_ppm)) {
        lose_suffix();
        return tape_refused(Errc::kIo, "write a block");
    }
    CartridgeImage& image = *cartridge();
    if (!late_error_) {
        late_error_ = strikes(TapeFault::kLateWrite, faults.late_write_ppm);
        image.cut(deck_.position().block);
    }
    deck_.cut();
    if (strikes(TapeFault::kEarlyEnd, faults.early_end_ppm)) {
        // The early warning is before the end of this write.
        const std::uint64_t end = deck_.offset() + wanted.count * image_bytes(wanted.size_bytes) +
                                  early_warning_bytes(deck_.loaded()->capacity_bytes) - 1;
        image.end_at(end);
        deck_.limit(end);
        room = TapeRoom::kEarlyWarning;
    }
    deck_.wrote(wanted);
    if (late_error_) return room;
    if (wanted.size_bytes > 0) image.append(from.span());
    if (wanted.size_bytes == 0) {
        for (std::uint64_t i = 0; i < wanted.count; ++i) image.append_filemark();
    }
    return room;
}

Task<Result<TapeRoom>> MemoryTape::append(core::Buffer from, RoomWanted wanted) {
    const auto room = deck_.may_write(wanted);
    if (!room) co_return std::unexpected(room.error());
    if (*room == TapeRoom::kFull || wanted.count == 0) co_return *room;
    co_await power_step(options_.power);
    const auto done = put(from, wanted, *room);
    co_await power_step(options_.power);
    const Instant end =
        timing_.write(reactor_.now(), wanted.count * image_bytes(wanted.size_bytes));
    co_await spend_until(end);
    co_return done;
}

Task<Result<TapeRoom>> MemoryTape::write(core::Buffer from) {
    const InFlight in_flight(in_flight_);
    if (const auto begun = begin(); !begun) co_return std::unexpected(begun.error());
    if (from.size_bytes == 0 || from.size_bytes > kTapeBlockMax) {
        co_return tape_refused(Errc::kInvalid, "block size is not between 1 B and 256 KiB");
    }
    const RoomWanted wanted{.size_bytes = static_cast<std::uint32_t>(from.size_bytes)};
    co_return co_await append(from, wanted);
}

Task<Result<TapeRoom>> MemoryTape::write_filemarks(std::uint32_t count, Marks marks) {
    const InFlight in_flight(in_flight_);
    if (const auto begun = begin(); !begun) co_return std::unexpected(begun.error());
    const core::Buffer nothing;
    const RoomWanted wanted{.size_bytes = 0, .count = count};
    const auto room = co_await append(nothing, wanted);
    if (!room || marks == Marks::kImmediate) co_return room;
    // Marks that did not fit leave nothing durable that was not before.
    if (*room == TapeRoom::kFull) co_return room;
    co_await power_step(options_.power);
    const auto late = report_late_error();
    if (late) cartridge()->make_durable();
    co_await power_step(options_.power);
    const Instant end = timing_.flush(reactor_.now());
    co_await spend_until(end);
    if (!late) co_return std::unexpected(late.error());
    co_return room;
}

// Moves the tape as `move_deck` moves the deck.
template <typename MoveDeck>
Task<Result<void>> MemoryTape::move(MoveDeck move_deck) {
    const InFlight in_flight(in_flight_);
    if (const auto begun = begin(); !begun) co_return begun;
    if (const auto late = report_late_error(); !late) co_return late;
    const auto moved = move_deck();
    if (!moved && moved.error().code != Errc::kNotFound) co_return moved;
    const Instant end = timing_.locate(reactor_.now(), deck_.offset());
    co_await spend_until(end);
    co_return moved;
}

Task<Result<void>> MemoryTape::locate(std::uint64_t block) {
    return move([this, block] { return deck_.move_to_block(block); });
}

Task<Result<void>> MemoryTape::skip_filemarks(std::uint32_t count) {
    return move([this, count] { return deck_.move_behind_filemarks(count); });
}

Task<Result<void>> MemoryTape::to_end_of_data() {
    return move([this] { return deck_.move_to_end_of_data(); });
}

}  // namespace fopd::devices

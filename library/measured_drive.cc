#include "library/measured_drive.h"

namespace fopd::library {

namespace {

std::uint64_t nanoseconds(Duration span) {
    return static_cast<std::uint64_t>(span.count());
}

}  // namespace

Task<Result<devices::LoadedTape>> MeasuredDrive::load() {
    block_bytes_ = 0;
    model_.reset();
    auto loaded = co_await drive_.load();
    note(loaded);
    if (!loaded) co_return loaded;
    figures_.mounts.add(1);
    const devices::DriveModel* const model = devices::find_drive_model(loaded->technology);
    if (model != nullptr) {
        model_ = loaded->capacity_bytes == 0
                     ? *model
                     : devices::with_capacity(*model, loaded->capacity_bytes);
    }
    co_return loaded;
}

Task<Result<void>> MeasuredDrive::unload() {
    const bool was_loaded = drive_.loaded().has_value();
    const auto unloaded = co_await drive_.unload();
    note(unloaded);
    // A drive that fails to write its buffer may unload the cartridge all the same.
    if (was_loaded && !drive_.loaded()) figures_.unmounts.add(1);
    co_return unloaded;
}

Task<Result<devices::TapeRead>> MeasuredDrive::read(core::Buffer into) {
    const auto read = co_await drive_.read(into);
    note(read);
    trial_.has_read = trial_.has_read || read.has_value();
    if (read && read->met == devices::TapeMark::kBlock) figures_.read_bytes.add(read->size_bytes);
    co_return read;
}

Task<Result<devices::TapeRoom>> MeasuredDrive::write(core::Buffer from) {
    const auto room = co_await drive_.write(from);
    note(room);
    if (room && *room != devices::TapeRoom::kFull) figures_.written_bytes.add(from.size_bytes);
    co_return room;
}

Task<Result<devices::TapeRoom>> MeasuredDrive::write_filemarks(std::uint32_t count, Marks marks) {
    const auto room = co_await drive_.write_filemarks(count, marks);
    note(room);
    const bool is_durable = room && *room != devices::TapeRoom::kFull && marks == Marks::kDurable;
    trial_.has_synced = trial_.has_synced || is_durable;
    co_return room;
}

Task<Result<devices::TapePosition>> MeasuredDrive::position() {
    const auto position = co_await drive_.position();
    note(position);
    co_return position;
}

Task<Result<void>> MeasuredDrive::skip_filemarks(std::uint32_t count) {
    const auto skipped = co_await drive_.skip_filemarks(count);
    note(skipped);
    co_return skipped;
}

Task<Result<void>> MeasuredDrive::to_end_of_data() {
    const auto moved = co_await drive_.to_end_of_data();
    note(moved);
    co_return moved;
}

Duration MeasuredDrive::predicted(std::uint64_t from_block, std::uint64_t to_block) const {
    if (!model_) return Duration{0};
    const std::uint64_t block_bytes = block_bytes_ == 0 ? devices::kTapeBlockMax : block_bytes_;
    return devices::locate_time(*model_,
                                devices::position_of_byte(*model_, from_block * block_bytes),
                                devices::position_of_byte(*model_, to_block * block_bytes));
}

Task<Result<void>> MeasuredDrive::locate(std::uint64_t block) {
    const auto from = co_await drive_.position();
    const Instant began_at = reactor_.now();
    const auto located = co_await drive_.locate(block);
    note(located);
    if (!located || !from || from->block == block) co_return located;
    figures_.locates.add(1);
    figures_.locate_predicted_ns.add(nanoseconds(predicted(from->block, block)));
    figures_.locate_ns.add(nanoseconds(reactor_.now() - began_at));
    co_return located;
}

}  // namespace fopd::library

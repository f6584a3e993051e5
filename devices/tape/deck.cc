#include "devices/tape/deck.h"

#include <algorithm>

#include "core/ensure.h"
#include "devices/tape/tape_error.h"

namespace fopd::devices {

Result<LoadedTape> TapeDeck::examine(std::string_view drive_technology, const CartridgeInfo& info,
                                     std::uint64_t default_capacity_bytes) {
    const DriveModel* const model = find_drive_model(info.technology);
    if (model == nullptr || !can_read(drive_technology, info.technology)) {
        return tape_refused(Errc::kUnsupported, "drive cannot read this kind of cartridge");
    }
    std::uint64_t capacity_bytes = info.capacity_bytes;
    if (capacity_bytes == 0) capacity_bytes = default_capacity_bytes;
    if (capacity_bytes == 0) capacity_bytes = model->capacity_bytes;
    return LoadedTape{
        .technology = info.technology,
        .capacity_bytes = info.cleaning ? 0 : capacity_bytes,
        .write_protected = info.write_protected || !can_write(drive_technology, info.technology),
        .cleaning = info.cleaning,
        .serial = info.serial};
}

void TapeDeck::load(LoadedTape tape, RecordMap records) {
    ENSURE(!tape_.has_value());
    tape_ = std::move(tape);
    records_ = std::move(records);
    number_ = 0;
}

RecordMap TapeDeck::unload() {
    tape_.reset();
    number_ = 0;
    limit_bytes_ = std::numeric_limits<std::uint64_t>::max();
    return std::exchange(records_, {});
}

DriveModel TapeDeck::model() const {
    ENSURE(tape_.has_value());
    const DriveModel* const model = find_drive_model(tape_->technology);
    ENSURE(model != nullptr);
    return tape_->capacity_bytes == 0 ? *model : with_capacity(*model, tape_->capacity_bytes);
}

Result<void> TapeDeck::check() const {
    if (!tape_) return tape_refused(Errc::kInvalid, "no tape is loaded");
    if (tape_->cleaning) return tape_refused(Errc::kUnsupported, "cleaning cartridge has no data");
    return {};
}

Result<std::optional<TapeRecord>> TapeDeck::next() const {
    if (const auto checked = check(); !checked) return std::unexpected(checked.error());
    if (at_end_of_data()) return std::nullopt;
    return records_.find(number_);
}

Result<TapeRead> TapeDeck::read_result(const TapeRecord& record, std::size_t room_bytes) {
    if (record.is_filemark()) return TapeRead{.met = TapeMark::kFilemark};
    if (!record.readable) return tape_refused(Errc::kCorrupt, "block cannot be read");
    if (record.size_bytes > room_bytes) {
        return tape_refused(Errc::kInvalid, "block is larger than the memory for it");
    }
    return TapeRead{.met = TapeMark::kBlock, .size_bytes = record.size_bytes};
}

Result<TapeRoom> TapeDeck::may_write(RoomWanted wanted) const {
    if (const auto checked = check(); !checked) return std::unexpected(checked.error());
    if (wanted.size_bytes > kTapeBlockMax)
        return tape_refused(Errc::kInvalid, "block is too large");
    if (tape_->write_protected && wanted.count > 0) {
        return tape_refused(Errc::kDenied, "cartridge is write-protected");
    }
    const std::uint64_t size_bytes = wanted.count * image_bytes(wanted.size_bytes);
    const std::uint64_t used_bytes = offset() + size_bytes;
    const std::uint64_t capacity_bytes = std::min(tape_->capacity_bytes, limit_bytes_);
    if (used_bytes > capacity_bytes) return TapeRoom::kFull;
    const bool is_early = used_bytes + early_warning_bytes(tape_->capacity_bytes) > capacity_bytes;
    return is_early ? TapeRoom::kEarlyWarning : TapeRoom::kPlenty;
}

void TapeDeck::wrote(RoomWanted written) {
    ENSURE(at_end_of_data());
    records_.add(written.size_bytes, written.count);
    number_ += written.count;
}

Result<void> TapeDeck::move_to_block(std::uint64_t block) {
    if (const auto checked = check(); !checked) return checked;
    number_ = std::min(block, records_.count());
    if (number_ < block) return tape_refused(Errc::kNotFound, "data end before the block");
    return {};
}

Result<void> TapeDeck::move_behind_filemarks(std::uint32_t count) {
    if (const auto checked = check(); !checked) return checked;
    if (count == 0) return {};
    const auto found = records_.behind_filemark(records_.filemarks_before(number_) + count);
    number_ = found.value_or(records_.count());
    if (!found) return tape_refused(Errc::kNotFound, "data end before the filemark");
    return {};
}

Result<void> TapeDeck::move_to_end_of_data() {
    if (const auto checked = check(); !checked) return checked;
    number_ = records_.count();
    return {};
}

}  // namespace fopd::devices

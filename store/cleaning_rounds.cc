#include "store/cleaning_rounds.h"

#include "devices/device.h"

namespace fopd::store {

void CleaningRounds::note_commit(std::uint32_t blocks) {
    changed_blocks_ += blocks;
    exhausted_ = exhausted_ && space_.capacity() + space_.worth_cleaning() >= exhausted_capacity_;
}

void CleaningRounds::note_refusal() {
    if (exhausted_) full_ = !has_space_to_add();
}

void CleaningRounds::set_live_bytes(std::uint64_t bytes) {
    live_bytes_ = bytes;
    const std::uint64_t worth = space_.worth_cleaning() * devices::kBlockBytes;
    if (live_bytes_ + worth <= exhausted_live_bytes_) exhausted_ = false;
}

void CleaningRounds::begin(std::uint64_t last_seq) {
    if (in_round_) return;
    in_round_ = true;
    round_changed_blocks_ = changed_blocks_;
    round_live_bytes_ = live_bytes_;
    round_last_seq_ = last_seq;
    exhausted_ = false;
}

void CleaningRounds::segment_cleaned() {
    if (space_.segments().front().first_seq <= round_last_seq_) return;
    in_round_ = false;
    // Each changed block may be dead by now, and so may the blocks that the changes replaced.
    const std::uint64_t worth = space_.worth_cleaning();
    const bool is_another_worth_it =
        changed_blocks_ - round_changed_blocks_ >= worth ||
        live_bytes_ + worth * devices::kBlockBytes <= round_live_bytes_;
    if (!is_another_worth_it) end_in_vain();
}

void CleaningRounds::end_in_vain() {
    in_round_ = false;
    round_changed_blocks_ = changed_blocks_;
    exhausted_ = true;
    exhausted_capacity_ = space_.capacity();
    exhausted_live_bytes_ = live_bytes_;
    full_ = !has_space_to_add();
}

}  // namespace fopd::store

#pragma once

#include <cstdint>

#include "store/log_space.h"

namespace fopd::store {

// Decides whether another round of cleaning is worth its cost. A round cleans every segment that
// the log had when the round began. A round that freed little exhausts the log: cleaning pauses
// until enough records have changed, or the live records have become fewer. Pure.
class CleaningRounds {
public:
    // The space outlives it.
    explicit CleaningRounds(const LogSpace& space) : space_(space) {}

    // The last round gained little and nothing has changed that would make another one worth it.
    bool is_exhausted() const { return exhausted_; }
    // Something has changed since the round began or, if it gained nothing, since it ended.
    bool has_changed() const { return changed_blocks_ != round_changed_blocks_; }
    // The log has no room for commits that add, and the last round has not made any.
    bool is_full() const { return full_ && !has_space_to_add(); }

    // A commit other than those of cleaning was begun; its records take so many blocks.
    void note_commit(std::uint32_t blocks);
    // A reservation was refused because nothing will make room.
    void note_refusal();
    // How many bytes the live records take.
    void set_live_bytes(std::uint64_t bytes);

    // Begins a round, unless one is in progress, that covers the entries up to `last_seq`.
    void begin(std::uint64_t last_seq);
    // The oldest segment was cleaned. Ends the round if that was the last one it covers.
    void segment_cleaned();
    // Ends a round that gained nothing.
    void end_in_vain();
    // Ends is_full() if the log has room again.
    void note_room() {
        if (has_space_to_add()) full_ = false;
    }

private:
    bool has_space_to_add() const {
        return space_.fits(1, space_.cleaning_reserve() + space_.freeing_reserve());
    }

    const LogSpace& space_;
    std::uint64_t changed_blocks_ = 0;  // Blocks changed by all commits except those of cleaning.
    // The values of the first two when the round began or, if it gained nothing, when it ended.
    std::uint64_t round_changed_blocks_ = 0;
    std::uint64_t round_live_bytes_ = 0;
    std::uint64_t round_last_seq_ = 0;
    std::uint64_t live_bytes_ = 0;
    // At the end of the last round that gained nothing.
    std::uint64_t exhausted_capacity_ = 0;
    std::uint64_t exhausted_live_bytes_ = 0;
    bool in_round_ = false;
    bool exhausted_ = false;
    bool full_ = false;
};

}  // namespace fopd::store

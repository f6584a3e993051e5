#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "core/task.h"
#include "library/drive_unit.h"
#include "library/home_doors.h"
#include "library/staging_disks.h"
#include "store/copy.h"

namespace fopd::library {

// Brings an object back from tape: reads its pieces in order, each from any cartridge that has a
// copy of the piece, and passes them to the object's home. The home ends the recall after the last
// piece.
class RecallJob final : public TapeJob {
public:
    // All outlive it.
    struct Parts {
        HomeDoors& homes;
        MediaShelf& shelf;
        const bool& stopping;
    };
    RecallJob(const Parts& parts, std::uint32_t locality, RecallNote note)
        : parts_(parts), locality_(locality), note_(std::move(note)) {}

    Task<Result<void>> run(DriveUnit* drive, CartridgeId cartridge) override;

    // The copies of the next piece, at most one on each readable cartridge of the table; empty:
    // there is none.
    struct PieceCopy {
        CartridgeId cartridge = 0;
        store::Copy copy{};
    };
    std::vector<PieceCopy> next_copies() const {
        return copies_at(parts_.shelf, note_, next_offset_);
    }
    static std::vector<PieceCopy> copies_at(const MediaShelf& shelf, const RecallNote& note,
                                            std::uint64_t offset);
    // Whether a cartridge with a copy of the next piece is missing; an inventory may find it.
    bool may_be_back() const;
    // Why next_copies() is empty, for people.
    std::string why_unreadable() const;

    // The state of the recall after a run. kPieces: further pieces are needed. kAgain: the object's
    // home has failed, and may succeed later. kImpossible: the home can never take the object.
    enum class State : std::uint8_t { kPieces, kDone, kAgain, kImpossible };
    State state() const { return state_; }
    std::string why_impossible() const { return home_error_->context; }
    // The error of the object's home in the last run; nothing: it had none.
    const std::optional<Error>& home_error() const { return home_error_; }
    void try_again() {
        state_ = State::kPieces;
        home_error_.reset();
    }
    // Makes room on the object's disk, without reserving it for this job. kNoSpace: there is not
    // enough room yet.
    Task<Result<void>> make_room();
    // Frees the parts that were written so far. Called unless state() is kDone.
    Task<void> abandon();

    // This job has brought all bytes to the disk.
    bool is_complete() const { return is_complete_; }
    bool is_reading() const { return is_reading_; }
    const RecallNote& note() const { return note_; }
    std::uint32_t locality() const { return locality_; }

private:
    Task<Result<void>> read_pieces(DriveUnit* drive, CartridgeId cartridge);
    Task<Result<void>> read_piece(DriveUnit* drive, const store::Copy* copy);
    Task<Result<void>> read_bytes(store::TapeReader* reader, const store::Copy* copy);
    Task<bool> begin();
    Task<void> finish();
    void note_home_error(const Error& error);

    const Parts parts_;
    const std::uint32_t locality_;
    const RecallNote note_;
    State state_ = State::kPieces;
    std::optional<Error> home_error_{};
    bool begun_ = false;
    bool is_reading_ = false;
    bool is_complete_ = false;
    std::uint64_t next_offset_ = 0;
};

}  // namespace fopd::library

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.h"
#include "core/events.h"
#include "core/gate.h"
#include "core/reactor.h"
#include "core/result.h"
#include "core/task.h"
#include "library/copy_join.h"
#include "library/drive_unit.h"
#include "library/home_doors.h"
#include "library/staged_objects.h"
#include "store/aligned_memory.h"
#include "store/copy.h"
#include "store/tape/tape_writer.h"

namespace fopd::library {

// Writes objects to a cartridge, as members of tape files of limited size. One sync makes all files
// durable; then the copies are recorded at the homes of the objects, together with the copies that
// other batches have written to other cartridges. If an error leaves objects unrecorded, a later
// batch writes them again.
class CopyBatch {
public:
    // All outlive it.
    struct Parts {
        core::Reactor& reactor;
        core::Gate& gate;  // The gate of the library.
        const core::Clock& clock;
        core::EventSink& events;
        HomeDoors& homes;
        const bool&
            stopping;  // If set, begins no further object, and makes complete files durable.
        CopyJoin& join;
    };
    struct Limits {
        std::uint64_t file_bytes = 1ULL << 30;
        std::size_t file_members = 1000;
        std::uint64_t piece_bytes = 0;  // As in TapePoolOptions.
    };
    struct Item {
        std::uint32_t locality = 0;
        StagedObjects::Object object{};
    };
    struct Wish {
        std::string pool = {};
        std::uint32_t copies = 1;  // How many copies each object should have.
    };
    CopyBatch(const Parts& parts, const Limits& limits, Wish wish, std::vector<Item> items);

    // Called once. If each object gets only one copy, may be called again after an error, for the
    // unrecorded objects.
    Task<Result<void>> run(DriveUnit* drive, CartridgeId cartridge);
    // Writes only an index file, to find out whether the drive and the cartridge work. Called after
    // a failure of another batch, when copies would be useless.
    Task<Result<void>> try_out(DriveUnit* drive, CartridgeId cartridge);

    // The largest object, or piece of one, that is written to a cartridge with so many free bytes.
    static std::uint64_t largest_object(std::uint64_t free_bytes);

    // All objects of the batch.
    const std::vector<Item>& all() const { return all_; }
    std::uint64_t bytes() const { return bytes_; }
    struct Outcome {
        std::uint64_t not_copied = 0;  // Objects that cannot be copied as they are.
        bool tape_ended = false;       // The cartridge had no room for all objects.
        // A single object did not fit on a cartridge that had nothing else.
        std::optional<store::Fid> too_large{};
    };
    const Outcome& outcome() const { return outcome_; }

private:
    class Source;
    // A member that was written.
    struct Written {
        Item item{};
        store::TapeEntry entry{};
    };
    enum class Step : std::uint8_t { kWritten, kSkipped, kTapeEnds, kFailed };

    Task<Result<void>> write(DriveUnit* drive, CartridgeId cartridge);
    Task<Result<void>> write_items(DriveUnit* drive);
    Task<Result<Step>> write_item(DriveUnit* drive, const Item* item);
    Task<Result<Step>> write_piece(DriveUnit* drive, const Item* item, OutgoingCopy* copy);
    Task<Result<OutgoingCopy>> open_piece(const Item* item, std::uint64_t from);
    Task<void> close_piece(std::uint32_t locality, std::uint64_t number);
    Task<Step> note_error(const Item* item, Error error);
    Task<Result<void>> begin_file(DriveUnit* drive);
    Task<Result<void>> end_file();
    Task<Result<void>> commit(DriveUnit* drive);
    CopyJoin::Copies take_copies(const Cartridge& cartridge);
    Task<Result<void>> end_run(Result<void> result);
    Result<Step> note_end(const Error& error);
    void take_back_file();
    void take_back_all();
    bool fits(const Cartridge& cartridge, const store::Member& member) const;

    const Parts parts_;
    const Limits limits_;
    const Wish wish_;
    const std::vector<Item> all_;
    std::uint64_t bytes_ = 0;
    std::deque<Item> rest_;
    CartridgeId cartridge_ = 0;
    store::VsnText vsn_{};
    CopyJoin::Copies durable_;
    store::TapeWriter* writer_ = nullptr;  // Set while run() runs.
    std::vector<Written> in_file_;         // Members of the open file.
    std::vector<Written> complete_;        // Members of files that are complete, but not durable.
    std::uint64_t file_bytes_ = 0;
    std::uint64_t new_bytes_ = 0;  // Written behind the recorded end of the cartridge.
    bool is_full_ = false;         // No further batch should be tried on the cartridge.
    store::AlignedMemory ahead_;
    Outcome outcome_;
};

// Batches that write the same objects to several cartridges at the same time.
class CopyBatches final : public TapeJob {
public:
    // One batch for each copy. The join and all that the batches use outlive this.
    CopyBatches(CopyJoin& join, std::vector<std::unique_ptr<CopyBatch>> batches)
        : join_(join), batches_(std::move(batches)) {}

    Task<Result<void>> run(DriveUnit* drive, CartridgeId cartridge) override;
    void could_not_run() override { join_.fail(); }

    const std::vector<std::unique_ptr<CopyBatch>>& all() const { return batches_; }

private:
    CopyJoin& join_;
    const std::vector<std::unique_ptr<CopyBatch>> batches_;
    std::size_t begun_ = 0;
};

}  // namespace fopd::library

#pragma once

#include <cstdint>
#include <vector>

#include "core/cancel.h"
#include "core/result.h"
#include "core/task.h"
#include "core/time.h"
#include "store/allocator.h"
#include "store/block_owners.h"
#include "store/check_report.h"
#include "store/claim_check.h"
#include "store/copy_check.h"
#include "store/log_visitor.h"
#include "store/name_sink.h"
#include "store/object.h"
#include "store/shared_blocks.h"
#include "store/volume.h"
#include "store/volume_view.h"

namespace fopd::store {

// Observes the objects that a check of a volume finds. An interface, because a folder above this
// one counts them.
class ObjectWatch {
public:
    virtual ~ObjectWatch() = default;
    // Called for each object, by ascending fid, in the turn in which it is seen. Null: its record
    // cannot be read.
    virtual void seen(Fid fid, const Object* object) = 0;
    // Called in the turn in which it is seen that no object follows.
    virtual void all_seen() = 0;
};

struct VolumeCheckOptions {
    // How fast the log is read. Index and memory are looked at in short turns.
    std::uint64_t bytes_per_second = 50ULL << 20;
    // If blocks seem to have no owner, how long the check waits for changes that were given blocks
    // and have no record yet. Blocks of slower changes are reported.
    Duration patience = 120s;
    core::CancelSource* cancel = nullptr;
    // Checks the bytes of a recorded reply; null: they are not checked.
    Result<void> (*check_reply)(Bytes reply) = nullptr;
    ObjectWatch* objects = nullptr;  // Null: no observer.
};

// Checks that a volume's index, space, log and names, which are kept elsewhere, agree. The volume
// continues meanwhile, so each entry is judged in one turn, in which everything must agree. A
// difference that cannot be seen in one turn is a finding only when no change meanwhile could
// explain it:
//
// - Blocks with two owners: a first walk through all extents notes the blocks, a second walk the
//   extents that have them, and whether both still have them is looked up in one turn. See
//   SharedBlocks.
// - Blocks without an owner: the second walk sees every extent that exists all the time, and the
//   allocator reports every block that is allocated or freed meanwhile. A block that is in use
//   after the walk, was neither seen nor reported, and does not wait to become free, has no owner;
//   unless it was allocated before the walk and is not recorded yet. The number of such blocks is
//   known, and the check waits until it is zero. See BlockOwners.
// - Names: see ClaimCheck.
//
// Lives on the volume's reactor. One check of a volume at a time.
class VolumeCheck final : SpaceWatch, LogVisitor {
public:
    // The volume is open, and outlives it.
    VolumeCheck(Volume& volume, const VolumeCheckOptions& options);
    ~VolumeCheck() override;
    VolumeCheck(const VolumeCheck&) = delete;
    VolumeCheck& operator=(const VolumeCheck&) = delete;

    // Once. An error says why it was not finished: kCancelled, or the volume's end.
    Task<Result<void>> run();
    const CheckReport& report() const { return report_; }
    // Adds a finding of the caller's own.
    void find(CheckFinding finding);
    // The part that the check is looking at, in a word or two.
    const char* stage() const { return stage_; }

private:
    // Where a walk continues.
    struct Position {
        std::vector<std::byte> from;
        std::vector<std::byte> to;
    };
    enum class Pass : std::uint8_t { kFirst, kSecond };
    // The object or upload that the extents of a fid belong to, in this turn.
    struct Owner {
        enum class Kind : std::uint8_t { kNone, kObject, kUpload } kind = Kind::kNone;
        std::uint64_t end_block = 0;  // Behind its last.
    };

    void touched(DiskRange range) override { owners_.set_owned(range); }
    void settled(DiskRange range) override;
    Task<Result<void>> entry(LogEntry entry, std::uint64_t block) override;
    void fault(const LogFault& fault) override;

    Task<Result<void>> walk(Position position, Pass pass);
    Result<bool> walk_some(Position& position, Pass pass);
    Result<void> see(const IndexEntry& entry);
    Result<void> see_extent(const IndexEntry& entry);
    Result<void> see_object(const IndexEntry& entry);
    Result<void> see_reply(const IndexEntry& entry);
    void see_unreadable(const IndexEntry& entry, const Error& error);
    Result<void> judge(Pass pass);
    Result<void> judge_extents();
    Result<void> judge_extent(const SeenExtent& extent, const Owner& owner);
    Result<bool> is_cleared(const SeenExtent& extent, std::uint64_t from);
    Result<void> judge_cleared(const Cleared& cleared);
    Result<bool> overlaps(const SeenExtent& before, const SeenExtent& extent);
    Result<void> judge_object(Fid fid);
    Result<Owner> owner_of(Fid fid);
    void count_owned(const SeenExtent& extent);

    Task<Result<void>> judge_shared();
    Task<Result<void>> walk_again();
    Task<Result<void>> forget_owned();
    Task<Result<void>> judge_unowned();

    Task<Result<void>> judge_claims_of_objects();
    Task<Result<void>> judge_known_claims();
    Task<Result<void>> check_counts();
    void find_claims(const std::vector<NameClaim>& claims, const char* reason);

    Result<void> check_wanted() const;
    Task<Result<void>> pause();

    const VolumeView volume_;
    const VolumeCheckOptions options_;
    CheckReport report_;
    const char* stage_ = "log";
    const bool served_;       // The volume served when the check began.
    bool walked_all_ = true;  // The walks have seen all extents.
    bool objects_seen_ = false;

    BlockOwners owners_;
    SharedBlocks shared_;
    ClaimCheck claim_check_;
    CopyCheck copy_check_;
    // How many blocks were allocated before the second walk, and have no record yet. Which blocks
    // these are is not known.
    std::uint64_t promised_before_ = 0;

    // Seen in this turn.
    std::vector<SeenExtent> seen_;
    std::vector<Fid> seen_objects_;
    std::vector<Cleared> seen_cleared_;
    std::vector<NameClaim> claims_;
    SeenExtent last_{};  // The extent before those.
    std::uint64_t paid_bytes_ = 0;
};

}  // namespace fopd::store

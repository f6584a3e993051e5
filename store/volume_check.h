#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/cancel.h"
#include "core/result.h"
#include "core/task.h"
#include "core/time.h"
#include "store/allocator.h"
#include "store/check_report.h"
#include "store/log.h"
#include "store/name_sink.h"
#include "store/object.h"
#include "store/volume.h"

namespace fopd::store {

// Observes the objects that a check of a volume finds, and those that come and go meanwhile.
class ObjectWatch {
public:
    virtual ~ObjectWatch() = default;
    // In their order; each in the turn in which it is seen.
    virtual void seen(Fid fid) = 0;
    // There is none behind the last. In the turn in which that is seen.
    virtual void all_seen() = 0;
};

struct VolumeCheckOptions {
    // Of the log; what is in memory or in the index is looked at in short turns.
    std::uint64_t bytes_per_second = 50ULL << 20;
    // How long it is waited for those who have blocks of which no record speaks yet, if some seem
    // to be nobody's. Whoever needs longer is told of.
    Duration patience = 120s;
    core::CancelSource* cancel = nullptr;
    // Whether the bytes of a recorded reply are one; null: nobody knows.
    Result<void> (*check_reply)(Bytes reply) = nullptr;
    ObjectWatch* objects = nullptr;  // Null: nobody counts.
};

// Holds what a volume says of its disk together: index, space, log, and the names that are kept
// elsewhere. The volume goes on meanwhile, so each thing is looked at in one turn, in which all of
// it fits together; and what cannot be seen in one turn is a finding only when nothing that happens
// meanwhile could explain it:
//
// - Blocks with two owners are noted on a first walk through all extents, who has them on a second,
//   and whether both still have them is asked in one turn.
// - Blocks without an owner: the second walk sees every extent that is there all the time, the
//   allocator tells of all blocks that anybody touches meanwhile. What is in use after it, was not
//   seen, was not touched and does not wait is nobody's; unless it was given to somebody before the
//   walk who has not used it yet. How much of that is left is counted, and waited for.
// - A claim to a name is unique, and once ended it is never made again. So an object that claims a
//   name before all names were told, and does so after the names were asked in vain, did all the
//   time. The other way round it takes two looks: the claim may have been made between them.
//
// Lives on the volume's reactor. One of a volume at a time.
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
    // For what others find out with it.
    void find(CheckFinding finding);
    // What it is looking at, in a word or two.
    const char* stage() const { return stage_; }

private:
    struct SeenExtent {
        Fid fid{};
        std::uint64_t first = 0;
        std::uint64_t block = 0;
        std::uint32_t count = 0;

        std::uint64_t end() const { return first + count; }
        Place place() const { return {.block = block, .count = count}; }
    };
    // A key, where a walk goes on.
    struct Position {
        std::vector<std::byte> from;
        std::vector<std::byte> to;
    };
    enum class Pass : std::uint8_t { kFirst, kSecond };
    // What the extents of a fid belong to, in this turn.
    struct Owner {
        enum class Kind : std::uint8_t { kNobody, kObject, kUpload } kind = Kind::kNobody;
        std::uint64_t end_block = 0;  // Behind its last.
    };

    void touched(Place place) override { set_owned(place); }
    void settled(Place place) override;
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
    void note_holder(const SeenExtent& extent);

    void join_shared();
    Task<Result<void>> judge_shared();
    Result<void> judge_shared_place(Place place);
    Result<bool> still_has(const SeenExtent& extent, std::uint64_t block);
    Task<Result<void>> walk_again();
    Task<Result<void>> forget_owned();
    Task<Result<void>> judge_unowned();
    void look_for_unowned(std::size_t word);
    bool is_unowned(Place place) const;

    enum class Claimed : std::uint8_t { kByObject, kByNobody };
    Task<Result<void>> judge_claims_of_objects();
    Task<Result<void>> judge_known_claims();
    Task<Result<void>> judge_unclaimed(std::vector<NameClaim> claims);
    Result<void> keep_only(std::vector<NameClaim>& claims, Claimed claimed);
    Result<bool> is_made(const NameClaim& claim);
    Task<Result<void>> check_counts();
    void find_claim(const NameClaim& claim, const char* reason);

    bool owned(std::uint64_t block) const;
    void set_owned(Place place);
    Result<void> check_wanted() const;
    Task<Result<void>> pause();

    Volume& volume_;
    const VolumeCheckOptions options_;
    CheckReport report_;
    const char* stage_ = "log";
    const bool served_;       // When it began.
    bool walked_all_ = true;  // The walks have seen all extents there are.
    bool objects_seen_ = false;

    std::vector<std::uint64_t> owned_;  // A bit for each block, as the allocator has.
    std::vector<Place> shared_;         // Blocks that more than one extent claims.
    std::vector<SeenExtent> holders_;   // The extents that claim blocks in shared_.
    std::vector<Place> unowned_;
    std::uint64_t promised_before_ = 0;  // Blocks, before the second walk; still.

    // Of one turn.
    std::vector<SeenExtent> seen_;
    std::vector<Fid> seen_objects_;
    std::vector<Cleared> seen_cleared_;
    std::vector<NameClaim> claims_;
    SeenExtent last_{};  // The extent before those.
    std::uint64_t paid_bytes_ = 0;
};

}  // namespace fopd::store

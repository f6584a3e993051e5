#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "objects/block_set.h"
#include "objects/disk_use.h"
#include "store/fid.h"
#include "store/object.h"

namespace fopd::objects {

// The blocks that writes in flight will add to the objects of a disk: holes that they fill, and
// what they append. These blocks count for the quota as if they were there, from before the bytes
// of a write are pulled until its change has begun or the write has ended without a change. So the
// writes of an owner that are in flight at a time do not exceed its quota together.
//
// A hole that several writes fill counts once, for one of them. If that one fails, the hole counts
// for another of them. So a write that is sent again while it is in flight counts once; an append,
// whose place in the object is not known before it has the lock, is recognised by its request
// number. A write without holes counts nothing, and is never refused.
//
// Blocks of owners without a limit are not counted, as nothing depends on them. Lives on the
// reactor of the disk.
class WritesInFlight {
public:
    // `use` must outlive this object.
    explicit WritesInFlight(DiskUse& use) : use_(use) {}
    WritesInFlight(const WritesInFlight&) = delete;
    WritesInFlight& operator=(const WritesInFlight&) = delete;

    // Whether begin() of a write of this owner would count anything.
    bool counts(const DiskUse::Owner& owner) const { return use_.has_limit(owner); }

    // A write, from begin() or begin_append() to done() or end().
    class Write {
    public:
        Write() = default;
        Write(const Write&) = delete;
        Write& operator=(const Write&) = delete;

        bool is_counted() const { return all_ != nullptr; }
        struct Of {
            DiskUse::Owner* owner = nullptr;
            store::Fid fid{};
        };
        struct Counted {
            DiskUse::Verdict verdict = DiskUse::Verdict::kTaken;
            std::uint64_t blocks = 0;  // Those that no other write counts.
        };
        // Counts the holes that no other write in flight counts, all or none. `wanted` are all
        // blocks of the write, `holes` those that are holes now. If the verdict is not kTaken, the
        // write has not begun. REQUIRES: !is_counted(). `all` and the owner outlive the write.
        Counted begin(WritesInFlight& all, const Of& of, BlockSet wanted, BlockSet holes);
        // Likewise for the blocks of an append, unless a write of the same request counts them.
        Counted begin_append(WritesInFlight& all, const Of& of, const store::ReplyKey& request,
                             std::uint64_t blocks);
        // The write's change will fill these holes; the caller holds the lock of their blocks.
        // Returns how many of them count already. These are the caller's from now on: the caller
        // puts them back if its change does not begin, unless unfill() is called. Counts nothing,
        // and ends the write, if the object has another owner now.
        std::uint64_t fill(const DiskUse::Owner& owner, const BlockSet& holes);
        // Undoes all fill(), and returns the sum of what they have returned.
        std::uint64_t unfill();
        // The change has begun: what fill() has returned stays counted, the rest does not. Does
        // nothing if the write is not counted.
        void done();
        // The write ends without a change. Does nothing if the write is not counted.
        void end();

    private:
        friend class WritesInFlight;
        bool is_same_append_as(const Write& other) const {
            return append_.has_value() && append_ == other.append_;
        }

        WritesInFlight* all_ = nullptr;  // Null: nothing is counted.
        Of of_;
        BlockSet wanted_;
        BlockSet own_;     // A part of wanted_: the holes that count for this write.
        BlockSet filled_;  // Returned by fill().
        std::optional<store::ReplyKey> append_{};  // The request, if it is an append.
        std::uint64_t appended_blocks_ = 0;        // Counted for this append.
        std::uint64_t filled_by_append_ = 0;       // Of these, returned by fill().
    };

private:
    void join(Write& write, const Write::Of& of);
    // What counts for one write counts for another one from now on: those of the blocks, and those
    // that the same append adds.
    static void move_counts(Write& from, Write& to, const BlockSet& blocks);
    // Makes holes that are counted for others be counted for this write.
    void take_over(Write& write, const BlockSet& holes);
    // Lets other writes count what was counted for this one, as far as they write it, too. Returns
    // the number of other blocks.
    std::uint64_t hand_over(Write& write);

    DiskUse& use_;
    std::map<store::Fid, std::vector<Write*>> of_objects_;  // In the order of begin().
};

}  // namespace fopd::objects

#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>

#include "fop/range.h"
#include "store/fid.h"
#include "store/object.h"

namespace fopd::objects {

// Records which bytes of a disk's objects were changed since the disk's log was opened, and by
// which client. Used when a client resends a buffered write that an earlier incarnation of the log
// has lost: the write is refused if another client may have changed its bytes since.
//
// A log that ends in a crash keeps a prefix of its changes. All contents that existed when the
// write was lost are therefore older than the write; only changes of later incarnations are newer.
// For the present incarnation, this class knows the changed bytes. For earlier ones, the object's
// own record says in which incarnation another client last changed the object, but not which bytes.
//
// Memory is bounded. If an object has too many ranges, only the fact that it was changed is kept;
// of the objects unchanged for longest, nothing is kept, and only the object's record decides.
// Pure, apart from this memory.
class ChangedRanges {
public:
    struct Limits {
        std::size_t of_object = 16U << 10;  // Ranges of one object.
        std::size_t in_all = 64U << 10;     // Ranges and objects together.
    };
    struct Life {
        std::uint64_t incarnation = 0;
        // The earliest incarnation whose end in the log is known. For a change in an earlier one,
        // it is unknown whether it was lost, or kept and then overwritten in the same incarnation.
        std::uint64_t first_known = 0;
    };
    // REQUIRES: of_object is less than in_all.
    explicit ChangedRanges(const Life& life) : ChangedRanges(life, Limits{}) {}
    ChangedRanges(const Life& life, const Limits& limits);

    // A client of a principal: fabric::Caller::owner.
    using Writer = store::ClientId;
    struct Change {
        store::Fid fid{};
        fop::Range range{};
        Writer writer{};
        store::LastWriter before{};  // From the object's record, before the change.
    };

    // Whether another client may have changed part of the range after the end of incarnation
    // `lost_in`. Called under the lock of the blocks, in the reactor turn in which the change
    // begins.
    bool may_be_newer(const Change& change, std::uint64_t lost_in) const;
    // Called in the reactor turn in which the change begins. A change of the size is given as a
    // range up to fop::kOffsetMax.
    void add(const Change& change);
    // The value for the object's record after a change by the writer.
    store::LastWriter last_writer(const store::LastWriter& before, const Writer& writer) const;
    // The object was removed.
    void forget(store::Fid fid);

    std::size_t size() const { return size_; }

private:
    struct Part {
        std::uint64_t end = 0;
        Writer writer{};
    };
    using Parts = std::map<std::uint64_t, Part>;  // By offset; ranges do not overlap.
    struct Object {
        store::LastWriter before;  // From its record, before the first of its parts.
        Parts parts;
        std::list<store::Fid>::iterator by_age;
    };
    using Objects = std::map<store::Fid, Object>;

    // Sets the writer of the parts of the range without a writer; parts that another client has
    // changed get kSeveral as their writer.
    static void mark(Parts& parts, const fop::Range& range, const Writer& writer);
    static void split(Parts& parts, std::uint64_t at);
    static Parts::iterator join(Parts& parts, Parts::iterator part);
    // The last incarnation in which another client changed the object; 0: none.
    std::uint32_t last_by_others(const store::LastWriter& record, const Writer& writer) const;

    const Life life_;
    const Limits limits_;
    Objects objects_;
    std::list<store::Fid> by_age_;  // The most recently changed one is last.
    std::size_t size_ = 0;          // Objects and their parts.
};

}  // namespace fopd::objects

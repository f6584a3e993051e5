#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>

#include "fop/range.h"
#include "store/fid.h"
#include "store/object.h"

namespace fopd::objects {

// Which bytes of which objects of a disk were changed since its log was opened, and by whom: so
// that a buffered write which an earlier incarnation of the log has lost, and which its client
// sends again, does not land on bytes that somebody else has changed since.
//
// A log that ends in a crash keeps a prefix of its changes. Whatever was there when the write was
// lost is therefore older than it, and only changes of later incarnations are newer: of those of
// the present one this class knows which bytes they are of, and of all of them the object's own
// record says when the last one by somebody else was, whichever bytes that has changed.
//
// The memory is bounded. Of an object of too many ranges it is only known that it was changed, and
// of the objects that were not changed for longest nothing at all: then the record has to do.
// Pure, but for what it remembers.
class ChangedRanges {
public:
    struct Limits {
        std::size_t of_object = 16U << 10;  // Ranges of one object.
        std::size_t in_all = 64U << 10;     // Ranges and objects together.
    };
    struct Life {
        std::uint64_t incarnation = 0;
        // The earliest incarnation of which the log knows where it ended. Of a change in an earlier
        // one it is not known whether it was lost, or kept and then overwritten in the same one.
        std::uint64_t first_known = 0;
    };
    // Requires: of_object is less than in_all.
    explicit ChangedRanges(const Life& life) : ChangedRanges(life, Limits{}) {}
    ChangedRanges(const Life& life, const Limits& limits);

    // A client of a principal: fabric::Caller::owner.
    using Writer = store::ClientId;
    struct Change {
        store::Fid fid{};
        fop::Range range{};
        Writer writer{};
        store::LastWriter before{};  // As the object's record says before the change.
    };

    // Whether somebody else than the writer may have changed something of the range after
    // incarnation `lost_in` had ended. Called under the lock of the blocks, in the turn in which
    // the change begins.
    bool may_be_newer(const Change& change, std::uint64_t lost_in) const;
    // In the turn in which the change begins. What is cut off, or comes behind the end, is a range
    // up to fop::kOffsetMax.
    void add(const Change& change);
    // What the object's record says after a change by the writer.
    store::LastWriter last_writer(const store::LastWriter& before, const Writer& writer) const;
    // The object is gone: nobody changes it any more.
    void forget(store::Fid fid);

    std::size_t size() const { return size_; }

private:
    struct Part {
        std::uint64_t end = 0;
        Writer writer{};
    };
    using Parts = std::map<std::uint64_t, Part>;  // By offset; apart from each other.
    struct Object {
        store::LastWriter before;  // What its record said before the first of its parts.
        Parts parts;
        std::list<store::Fid>::iterator place;
    };
    using Objects = std::map<store::Fid, Object>;

    // What of the range nobody has changed is the writer's, and what another has, nobody's alone.
    static void mark(Parts& parts, const fop::Range& range, const Writer& writer);
    static void split(Parts& parts, std::uint64_t at);
    static Parts::iterator join(Parts& parts, Parts::iterator part);
    // The last incarnation in which anybody but this one has changed the object; 0: none.
    std::uint32_t last_by_others(const store::LastWriter& record, const Writer& writer) const;

    const Life life_;
    const Limits limits_;
    Objects objects_;
    std::list<store::Fid> by_age_;  // The one that was changed last is the last.
    std::size_t size_ = 0;          // Objects and their parts.
};

}  // namespace fopd::objects

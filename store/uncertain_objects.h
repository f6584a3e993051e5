#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>

#include "store/fid.h"
#include "store/record.h"

namespace fopd::store {

// Remembers which objects were changed by commits that may not be durable yet. When the log has
// failed, the state of these objects in the map may be lost at the next start.
class UncertainObjects {
public:
    // A record that is about to be applied changes its object.
    void note(const Record& record);
    // How many changes are noted; for begun() and forget().
    std::size_t count() const { return changed_.size(); }
    // The changes noted after the first `count` are in this entry of the log. Changes that are
    // never begun stay uncertain.
    void begun(std::size_t count, std::uint64_t seq);
    // The changes noted after the first `count` have not happened.
    void forget(std::size_t count) { changed_.resize(count); }
    void note_durable(std::uint64_t seq);
    // REQUIRES: the log has failed; no change is noted any more.
    bool contains(Fid fid, std::uint64_t durable_seq);

private:
    struct Changed {
        Fid fid{};
        std::uint64_t seq = 0;
    };
    std::deque<Changed> changed_;            // In the order of the changes.
    std::map<Fid, std::uint64_t> last_seq_;  // The same, by object, once the log has failed.
};

}  // namespace fopd::store

#pragma once

#include <cstddef>
#include <deque>
#include <map>

#include "core/time.h"
#include "store/fid.h"

namespace fopd::objects {

// How long the uploads of a disk have been idle. Fids increase, so the newest fid, noted from time
// to time, dates all older uploads. Only uploads that were written to since the daemon started have
// an entry of their own.
class UploadTimes {
public:
    // Notes that all uploads up to `newest` had begun by `now`. Of the notes older than `enough`,
    // only the newest is kept, so there are few.
    void mark(store::Fid newest, Instant now, Duration enough) {
        marks_.push_back({.newest = newest, .at = now});
        while (marks_.size() > 1 && after(marks_[1].at, enough) <= now) marks_.pop_front();
    }
    // REQUIRES: the upload exists.
    void written(store::Fid fid, Instant now) { written_[fid] = now; }
    // The upload was committed or removed.
    void gone(store::Fid fid) { written_.erase(fid); }

    // Whether the upload is known to have begun, and to have been written to last, at `then` or
    // earlier.
    bool is_idle_since(store::Fid fid, Instant then) const {
        if (marks_.empty() || marks_.front().at > then || marks_.front().newest < fid) return false;
        const auto last = written_.find(fid);
        return last == written_.end() || last->second <= then;
    }

private:
    struct Mark {
        store::Fid newest{};
        Instant at{};
    };
    std::deque<Mark> marks_;
    std::map<store::Fid, Instant> written_;
};

}  // namespace fopd::objects

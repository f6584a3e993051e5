#pragma once

#include <cstddef>
#include <deque>
#include <map>

#include "core/time.h"
#include "store/fid.h"

namespace fopd::objects {

// For how long nobody has written to an upload of a disk. When one was begun is not kept of each:
// fids rise, so it is enough to know from time to time which one was the newest. Only an upload
// that was written to since the start has an entry of its own.
class UploadTimes {
public:
    // Everything up to `newest` had begun by `now`. Marks that are `enough` old are dropped but for
    // the last of them, so there are as many as calls within that time.
    void mark(store::Fid newest, Instant now, Duration enough) {
        marks_.push_back({.newest = newest, .at = now});
        while (marks_.size() > 1 && after(marks_[1].at, enough) <= now) marks_.pop_front();
    }
    // Requires: the upload is there.
    void written(store::Fid fid, Instant now) { written_[fid] = now; }
    // It is an object now, or nothing any more.
    void gone(store::Fid fid) { written_.erase(fid); }

    // Whether it was begun, and last written to, at `then` or before, as far as it is known.
    bool is_idle_since(store::Fid fid, Instant then) const {
        if (marks_.empty() || marks_.front().at > then || marks_.front().newest < fid) return false;
        const auto last = written_.find(fid);
        return last == written_.end() || last->second <= then;
    }
    // Uploads that were written to.
    std::size_t written_count() const { return written_.size(); }

private:
    struct Mark {
        store::Fid newest{};
        Instant at{};
    };
    std::deque<Mark> marks_;
    std::map<store::Fid, Instant> written_;
};

}  // namespace fopd::objects

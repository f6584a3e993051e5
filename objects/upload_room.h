#pragma once

#include <algorithm>
#include <cstdint>
#include <map>

#include "core/time.h"
#include "store/fid.h"

namespace fopd::objects {

// The room that uploads still need on their disk, before the tapes. What an upload has written
// cannot leave the disk until the upload is committed, so uploads that together need more than
// there is would wait for each other. Therefore an upload begins, and is written to, only if the
// uploads that have begun before it can end: the oldest of them always goes on. An upload of
// unknown size has only 1/kUnknownPart of the disk kept for it: if it needs more, it may have to
// wait for younger ones. Lives on the reactor of the disk.
class UploadRoom {
public:
    // An upload that was not written to for so long keeps no room from others.
    static constexpr Duration kIdle = 1min;
    // The part of the disk that is left to older uploads of unknown size, to all of them together.
    static constexpr std::uint64_t kUnknownPart = 8;

    // Whether room is reserved for the upload. It is not if the upload was idle for long, or began
    // before the start of the daemon.
    bool contains(store::Fid fid) const { return uploads_.contains(fid); }
    // Reserves room for an upload. `blocks`: how many are expected to be written from now on; 0:
    // unknown. REQUIRES: !contains(fid).
    void begin(store::Fid fid, std::uint64_t blocks, Instant now) {
        uploads_[fid] = {.left_blocks = blocks, .is_unknown = blocks == 0, .tried_at = now};
    }
    // Called when a client writes to the upload, or tries to. Has no effect if no room is reserved
    // for it.
    void tries(store::Fid fid, Instant now) {
        const auto found = uploads_.find(fid);
        if (found != uploads_.end()) found->second.tried_at = now;
    }
    // Called when blocks of the upload were written. An upload that exceeds its expected size
    // continues as one of unknown size.
    void written(store::Fid fid, std::uint64_t blocks) {
        const auto found = uploads_.find(fid);
        if (found == uploads_.end()) return;
        Upload& upload = found->second;
        upload.is_unknown = upload.is_unknown || blocks > upload.left_blocks;
        upload.left_blocks -= std::min(upload.left_blocks, blocks);
    }
    // The upload was committed or removed.
    void gone(store::Fid fid) { uploads_.erase(fid); }

    // What uploads that are older than `fid` need on a disk with so many blocks for data.
    std::uint64_t needed_before(store::Fid fid, std::uint64_t data_blocks, Instant now) {
        std::erase_if(uploads_, [now](const auto& each) {
            return after(each.second.tried_at, kIdle) <= now;
        });
        std::uint64_t blocks = 0;
        bool has_unknown = false;
        // Fids increase, so older uploads come first.
        for (const auto& [other, upload] : uploads_) {
            if (other >= fid) break;
            blocks += upload.left_blocks;
            has_unknown = has_unknown || upload.is_unknown;
        }
        return has_unknown ? blocks + data_blocks / kUnknownPart : blocks;
    }

private:
    struct Upload {
        std::uint64_t left_blocks = 0;
        bool is_unknown = false;
        Instant tried_at{};
    };
    std::map<store::Fid, Upload> uploads_;
};

}  // namespace fopd::objects

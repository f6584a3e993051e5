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
// uploads that have begun before it can end: the oldest of them always goes on. Lives on the
// reactor of the disk.
class UploadRoom {
public:
    // An upload that was not written to for so long keeps no room from others.
    static constexpr Duration kIdle = 1min;
    // The part of the disk that is left to the oldest upload of unknown size.
    static constexpr std::uint64_t kUnknownPart = 8;

    // `blocks`: the expected size; 0: unknown. REQUIRES: the fid is new.
    void begin(store::Fid fid, std::uint64_t blocks, Instant now) {
        uploads_[fid] = {.left_blocks = blocks, .is_unknown = blocks == 0, .tried_at = now};
    }
    // Somebody writes to it, or tries to. Uploads that were idle for long, and those from before
    // the start of the daemon, go on as ones of unknown size.
    void tries(store::Fid fid, Instant now) {
        uploads_.try_emplace(fid, Upload{.is_unknown = true}).first->second.tried_at = now;
    }
    void written(store::Fid fid, std::uint64_t blocks) {
        const auto found = uploads_.find(fid);
        if (found == uploads_.end()) return;
        found->second.left_blocks -= std::min(found->second.left_blocks, blocks);
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

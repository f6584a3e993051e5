#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/result.h"
#include "store/copy.h"
#include "store/fid.h"
#include "store/record.h"

namespace fopd::store {

class ObjectMap;

// Checks whether a change of released objects, or of their copies, is allowed. Called before the
// change is applied to the map. A replay does not call it, because the records in a log were
// checked before they were written.
class ReleasedRules {
public:
    // The purpose of a change; set by the operation of the volume that makes the change.
    struct Grant {
        enum class Purpose : std::uint8_t {
            kNone,
            kParts,  // Blocks of a released object are written or freed, while its bytes come back.
            kEnd,    // All bytes are back on the disk: the object is not released any more.
            // Makes an object that is known from cartridges only, or gives a released object newer
            // content. The volume has checked that its copies have all its bytes.
            kFromTape,
        } purpose = Purpose::kNone;
        Fid fid{};  // The object. Not used with kNone.
        std::uint64_t content_version = 0;
        bool accepts_loss = false;  // The change may remove copies that a released object needs.
    };

    // The map outlives it.
    explicit ReleasedRules(ObjectMap& map) : map_(map) {}

    // kBusy: the change has to wait until the bytes of an object are back; kInvalid: it releases an
    // object whose copies do not have all bytes.
    Result<void> check(Bytes records, const Grant& grant);

private:
    struct Changed {
        Fid fid{};
        bool extents = false;        // Blocks are written.
        bool holes = false;          // Blocks become a hole.
        std::optional<Object> to{};  // The new record of the object, without its texts.
    };

    Changed& changed(Fid fid);
    Result<void> note(const Record& record);
    Result<void> check(const Changed& changed, const Grant& grant);
    Result<void> check_dropped();

    ObjectMap& map_;
    std::vector<Changed> changed_;
    std::vector<CopyKey> dropped_;
};

}  // namespace fopd::store

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

// The changes of released objects, and of their copies, that are allowed. This is checked before a
// change is applied to the map, and not in a replay, because the records in a log were checked.
class ReleasedRules {
public:
    // The purpose of a change; set by the operation of the volume that makes the change.
    struct Grant {
        enum class Purpose : std::uint8_t {
            kNone,
            kParts,  // Parts of a released object come or go.
            kEnd,    // The bytes are back.
            // An object whose bytes are on cartridges, as cartridges alone tell. Its copies have
            // been compared with it.
            kFromTape,
        } purpose = Purpose::kNone;
        Fid fid{};  // Unless it is kNone.
        std::uint64_t content_version = 0;
        bool accepts_loss = false;  // Copies may go that a released object needs.
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
        std::optional<Object> to{};  // Without texts.
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

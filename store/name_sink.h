#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "core/task.h"
#include "devices/label.h"
#include "store/fid.h"

namespace fopd::store {

// The name in an object's record. If several objects of a pool claim the same name, the object with
// the highest version has it; the others were replaced, and will be removed.
struct NameClaim {
    std::uint32_t pool = 0;
    std::string name{};
    std::uint64_t version = 0;
    Fid fid{};

    friend bool operator==(const NameClaim&, const NameClaim&) = default;
};

struct NameChange {
    enum class Kind : std::uint8_t { kMade, kEnded } kind = Kind::kMade;
    NameClaim claim{};
};
using NameChanges = std::vector<NameChange>;

// Receives the claims of the objects of a node's volumes. It receives only claims that are durable
// in a log, so it may store them at once. Lives on the volume's reactor; its implementation may
// send the claims to other reactors.
class NameSink {
public:
    virtual ~NameSink() = default;

    // The `seq` of the last keep() for the disk that the sink still has; zero: the disk is not
    // known.
    virtual Task<Result<std::uint64_t>> known(devices::DiskId disk) = 0;
    // Drops all claims of a disk's objects; the caller tells all of them again. The disk is not
    // known until keep(), so that after a crash a part of the claims is not taken for all.
    struct Origin {
        devices::DiskId disk;
        Slot slot;
    };
    virtual Task<Result<void>> forget(Origin origin) = 0;
    // Receives changes of one disk's objects; `changes` is valid until it ends. Changes of one
    // object come in their order. A change may be told more than once.
    virtual Task<Result<void>> tell(const NameChanges* changes) = 0;
    // Returns when the sink has made durable all changes that it received from the disk, up to
    // entry `seq` of the disk's log.
    struct Kept {
        devices::DiskId disk;
        std::uint64_t seq;
    };
    virtual Task<Result<void>> keep(Kept kept) = 0;

    // -- for checks --

    // A position in a walk over the known claims.
    struct ClaimCursor {
        std::uint32_t part = 0;
        std::optional<NameClaim> behind{};
    };
    struct ClaimPage {
        std::vector<NameClaim> claims{};  // Claims of objects of the slot.
        ClaimCursor next{};
        bool end = false;  // No further claims follow.
    };
    // Returns some of the known claims of a slot's objects. A page may be empty before the end.
    virtual Task<Result<ClaimPage>> claims(Slot slot, ClaimCursor from) = 0;
    // Removes the known claims from `claims`, so that those that are unknown here are left.
    // `claims` outlives the call.
    virtual Task<Result<void>> remove_known(std::vector<NameClaim>* claims) = 0;
};

}  // namespace fopd::store

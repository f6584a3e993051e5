#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "core/task.h"
#include "devices/label.h"
#include "store/fid.h"

namespace fopd::store {

// What an object's record says of its name. Of all objects of a pool that claim the same name the
// one with the highest version has it; the others were replaced, and go.
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

// Where the volumes of a node tell which names their objects claim. It only ever hears of what is
// durable in a log, so it may keep at once whatever it hears. Lives on the volume's reactor;
// whatever is behind it may live elsewhere.
class NameSink {
public:
    virtual ~NameSink() = default;

    // What keep() was told of a disk when all it was told was last known to be kept; zero for a
    // disk that is not known.
    virtual Task<Result<std::uint64_t>> known(devices::DiskId disk) = 0;
    // Drops all claims of a disk's objects, which will be told again. The disk is not known until
    // they are kept: a crash leaves no half of them behind that would pass for the whole.
    struct Origin {
        devices::DiskId disk;
        Slot slot;
    };
    virtual Task<Result<void>> forget(Origin origin) = 0;
    // Changes of one disk's objects, which are the caller's until it ends. Those of one object come
    // in their order; what has been told may be told again.
    virtual Task<Result<void>> tell(const NameChanges* changes) = 0;
    // All that was told of the disk, up to this record of its log, is durable when it ends.
    struct Kept {
        devices::DiskId disk;
        std::uint64_t seq;
    };
    virtual Task<Result<void>> keep(Kept kept) = 0;

    // -- to be looked at by those who doubt it --

    // Where among the claims that are known a look has come to.
    struct ClaimPlace {
        std::uint32_t part = 0;
        std::optional<NameClaim> behind{};
    };
    struct ClaimPage {
        std::vector<NameClaim> claims{};  // Of objects of the slot.
        ClaimPlace next{};
        bool end = false;  // Nothing comes behind them.
    };
    // Some of what is known of a slot's objects, which may be nothing on the way to the end.
    virtual Task<Result<ClaimPage>> claims(Slot slot, ClaimPlace from) = 0;
    // Leaves of the claims, which are the caller's until it ends, those that are not known.
    virtual Task<Result<void>> leave_unknown(std::vector<NameClaim>* claims) = 0;
};

}  // namespace fopd::store

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/result.h"
#include "core/task.h"
#include "objects/home_volume.h"
#include "objects/object_name.h"
#include "objects/stores.h"
#include "store/copy.h"
#include "store/fid.h"
#include "store/tape/member.h"
#include "store/volume.h"

namespace fopd::library {

// Makes objects of this node from objects that only cartridges know, such as the objects of a lost
// node. Their bytes are on tape only. Lives on the reactor of the stores.
class RescuedObjects {
public:
    // The stores outlive it.
    explicit RescuedObjects(objects::Stores& stores) : stores_(stores) {}
    RescuedObjects(const RescuedObjects&) = delete;
    RescuedObjects& operator=(const RescuedObjects&) = delete;

    // The disks of all localities that take objects of the pool, by ascending slot.
    struct Home {
        store::Slot slot = 0;
        std::uint32_t locality = 0;
    };
    std::vector<Home> homes(objects::PoolId pool) const;
    // Finds an object on the disks of this locality by the id with which it was first made, and
    // returns its present id. kBusy: a disk is missing.
    Result<std::optional<store::Fid>> find(store::Fid made) const;
    // Whether another rescued object may take the name of this object. It may if this object was
    // rescued as well and is on tape only.
    bool gives_way(store::Fid fid) const;
    // Whether the object was made on a disk of this locality, and so was not rescued.
    bool has_made(store::Fid fid) const;

    struct Wish {
        store::Member member{};  // The member of any of the object's pieces, as read from tape.
        store::Fid fid{};        // The object's id here.
        objects::PoolId pool = 0;
        std::vector<store::Copy> copies{};    // The copies of the object; their fid is `fid`.
        std::optional<store::Fid> over = {};  // An object whose name this one may take.
    };
    enum class How : std::uint8_t {
        kMade,    // The object was made, or it got newer content.
        kCopied,  // The object existed with this content; the copies were added.
        kOlder,   // The object exists with newer content, or another object has got its name since.
        // The object exists and was not rescued, or its bytes are on a disk: nothing was changed.
        kExists,
        kTaken,  // The object `by` has its name.
    };
    struct Answer {
        How how = How::kMade;
        store::Fid by{};
    };
    // Makes the object, or adds the copies to it. Durable on return. kNoSpace: the disk or its log
    // is full. The wish must live until the call has ended.
    Task<Result<Answer>> put(const Wish* wish);

private:
    struct Attempt;

    Task<Result<void>> hold_names(Attempt* attempt);
    Task<Result<Answer>> put_held(Attempt* attempt);
    Task<Result<Answer>> add_copies(Attempt* attempt);
    Task<Result<Answer>> make(Attempt* attempt);

    objects::Stores& stores_;
};

}  // namespace fopd::library

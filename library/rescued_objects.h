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

// Objects that are known from cartridges alone, as of a node that was lost: they become objects of
// this node with bytes on tape only. Lives on the reactor of the stores.
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
    // Finds the disk here that has the object with the id that it was made with; returns its id
    // here. kBusy: a disk is not here.
    Result<std::optional<store::Fid>> find(store::Fid made) const;
    // Whether another object that is rescued may take the name of this one: it was rescued itself,
    // and is on tape only.
    bool gives_way(store::Fid fid) const;
    // Whether a disk here has made the object, so that it was not rescued.
    bool has_made(store::Fid fid) const;

    struct Wish {
        store::Member member{};  // As it is on tape, of any of the pieces.
        store::Fid fid{};        // The object's id here.
        objects::PoolId pool = 0;
        std::vector<store::Copy> copies{};    // Of that id.
        std::optional<store::Fid> over = {};  // An object that may lose its name to this one.
    };
    enum class How : std::uint8_t {
        kMade,    // It was not here, or had older content.
        kCopied,  // It was here; it has the copies now.
        kOlder,   // It is here with newer content, or another object has its name since.
        kExists,  // It is here, and was not rescued, or its bytes are on a disk: it stays as it is.
        kTaken,   // `by` has its name.
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

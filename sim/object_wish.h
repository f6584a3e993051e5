#pragma once

#include <cstdint>
#include <string>

#include "fop/bodies.h"

namespace fopd::sim {

// An operation that a client of objects is about to make.
struct ObjectWish {
    enum class Kind : std::uint8_t {
        kCreate,
        kPut,
        kRename,
        kRemove,
        kWrite,
        kAppend,
        kTruncate,
        kPunch,
        kSetMode,
        kLookup,
        kStat,
        kList,
        kRead,
        kSync,
        // These are for objects of a tape pool.
        kStage,
        kRelease,
        kCancelRecall,
        kSyncTape,
    };
    Kind kind = Kind::kStat;
    fop::Fid fid{};
    std::string from{};  // The only name that the object may have.
    std::string name{};
    fop::Range range{};
    std::uint16_t mode = 0;
    bool no_replace = false;
    fop::Durability durability = fop::Durability::kDurable;
};
std::string describe(const ObjectWish& wish);
const char* to_string(ObjectWish::Kind kind);
std::string text(fop::Fid fid);

bool makes_object(ObjectWish::Kind kind);
bool changes_bytes(ObjectWish::Kind kind);
// The server executes the operation once, however often the client sends it.
bool is_done_once(ObjectWish::Kind kind);

}  // namespace fopd::sim

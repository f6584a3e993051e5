#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/fid.h"
#include "store/names.h"

namespace fopd::objects {

// The id of a pool, derived from its name and so the same after every start. The check of the
// configuration refuses two pools with the same id.
using PoolId = std::uint32_t;
PoolId pool_id(std::string_view pool_name);

// A name in a pool. The text is borrowed, and outlives the task that it is passed to.
struct ObjectName {
    PoolId pool = 0;
    std::string_view name{};
};

struct NamedObject {
    store::Fid fid{};
    std::uint64_t version = 0;  // Increases with each new owner of the name.
};

// A hold on a name: while it lasts, only its holder may change the name's owner.
struct NameHold {
    store::PoolName name;
    std::optional<NamedObject> owner{};  // Empty: the name is free.
    std::uint64_t version = 0;           // For the next owner. No other hold has the same.
};

struct NameListRequest {
    PoolId pool = 0;
    std::string_view prefix{};  // Borrowed, as in ObjectName.
    std::string_view cursor{};  // Names after this one; empty: from the first.
    std::uint32_t count_max = 0;
};
struct ListedName {
    std::string name;
    store::Fid fid{};
};
struct NameList {
    std::vector<ListedName> entries;
    bool end = false;  // The list has no further names.
};

}  // namespace fopd::objects

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/fid.h"

namespace fopd::objects {

// A pool, where things are counted and kept: made of its name, and so the same after every start.
// Two pools of one id are refused by whoever reads the configuration.
using PoolId = std::uint32_t;
PoolId pool_id(std::string_view pool_name);

// A name in a pool. Borrowed, as long as the task lives that it was handed to.
struct ObjectName {
    PoolId pool = 0;
    std::string_view name{};
};

struct NamedObject {
    store::Fid fid{};
    std::uint64_t version = 0;  // Of the name: who had it later has a higher one.
};

// A hold on a name: while it lasts, only its holder may change the name's owner.
struct NameHold {
    std::optional<NamedObject> owner{};  // Empty: nobody has it.
    std::uint64_t version = 0;           // For whoever gets it.
    std::uint64_t key = 0;               // The keeper's own.
};

struct NameListRequest {
    PoolId pool = 0;
    std::string_view prefix{};  // Borrowed, as in ObjectName.
    std::string_view cursor{};  // Names behind this one; empty: from the first.
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

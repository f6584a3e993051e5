#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/reactor.h"
#include "core/result.h"
#include "core/task.h"
#include "store/fid.h"

namespace fopd::reqh {

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

// The names of the objects of a node, as one of its localities reaches them: what is kept elsewhere
// is asked for there. Who changes which object has a name holds the name, writes the change down
// where the object is, and lets go when that is durable: the disks tell what their objects are
// called. Who holds several takes them in the order of before().
class Names {
public:
    virtual ~Names() = default;

    virtual Task<Result<std::optional<NamedObject>>> find(ObjectName name) = 0;
    // In the order of the bytes.
    virtual Task<Result<NameList>> list(NameListRequest request) = 0;

    // Waits until nobody else holds it, first come, first served. kTimedOut, kCancelled; kClosed
    // when the node stops.
    virtual Task<Result<NameHold>> hold(ObjectName name, core::WaitOptions wait) = 0;
    // Like hold(), in order to take the name from its owner; kNotFound if it has no owner.
    virtual Task<Result<NameHold>> hold_to_leave(ObjectName name, core::WaitOptions wait) = 0;
    // Ends a hold. Every hold must end with this call. Never fails.
    virtual Task<void> let_go(NameHold hold) = 0;
    // Whether `one` is to be held before `other`.
    virtual bool before(const ObjectName& one, const ObjectName& other) const = 0;
};

}  // namespace fopd::reqh

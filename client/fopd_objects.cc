// SPDX-License-Identifier: BSD-2-Clause
// The calls of fopd.h about objects.
#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/c_call.h"
#include "client/fopd.h"
#include "client/object_client.h"
#include "fop/name.h"
#include "fop/range.h"

namespace fopd::client {

namespace {

using Done = Outcome<std::uint64_t>;  // The number of bytes that were read.

fop::Fid fid_of(const fopd_fid& fid) {
    return {.high = fid.high, .low = fid.low};
}

std::span<const std::byte> bytes_of(const void* data, std::size_t bytes) {
    return {static_cast<const std::byte*>(data), bytes};
}

void copy_text(std::span<char> to, std::string_view from) {
    const std::size_t length = std::min(from.size(), to.size() - 1);
    std::ranges::copy_n(from.begin(), static_cast<std::ptrdiff_t>(length), to.begin());
    to[length] = '\0';
}

// Copies the members that the program knows.
template <typename Struct>
void give(Struct* to, Struct from) {
    if (to == nullptr) return;
    from.size = to->size;
    std::memcpy(to, &from, std::min(to->size, sizeof(Struct)));
}

void give_info(fopd_object* to, const ObjectInfo& info) {
    fopd_object object{};
    object.fid = {.high = info.fid.high, .low = info.fid.low};
    object.size_bytes = info.size_bytes;
    object.allocated_bytes = info.allocated_bytes;
    object.version = info.version;
    object.created_ns = info.created_ns;
    object.changed_ns = info.changed_ns;
    object.mode = info.mode;
    copy_text(object.owner, info.owner);
    copy_text(object.group, info.group);
    copy_text(object.name, info.name);
    copy_text(object.collection, info.collection);
    give(to, object);
}

void give_page(fopd_listing* listing, const ObjectPage& page) {
    for (const auto& each : page.entries) {
        const fopd_entry entry{.fid = {.high = each.fid.high, .low = each.fid.low},
                               .size_bytes = each.size_bytes,
                               .changed_ns = each.changed_ns,
                               .name = each.name.c_str()};
        listing->each(&entry, listing->context);
    }
    listing->end = page.end ? 1 : 0;
    copy_text(listing->cursor, page.cursor);
}

void give_use(fopd_each_quota each, void* context, const QuotaUse& given) {
    const fopd_quota_use use{.pool = given.pool.c_str(),
                             .owner = given.owner ? given.owner->c_str() : nullptr,
                             .used_bytes = given.used_bytes,
                             .limit_bytes = given.limit_bytes,
                             .used_objects = given.used_objects,
                             .limit_objects = given.limit_objects};
    each(&use, context);
}

struct InPool {
    std::string pool{};
    std::string name{};
};

// The tasks of the calls. They run on the library's thread, and own their arguments; memory that is
// named by a pointer or a span is the caller's.

// Awaits a call, and passes its result to `take`.
template <typename T, typename Take>
Task<Done> then(Task<Outcome<T>> task, Take take) {
    auto outcome = co_await std::move(task);
    if (!outcome) co_return std::unexpected(std::move(outcome.error()));
    take(*outcome);
    co_return std::uint64_t{0};
}

// Awaits a call that returns nothing.
Task<Done> nothing_back(Task<Outcome<void>> task) {
    auto done = co_await std::move(task);
    if (!done) co_return std::unexpected(std::move(done.error()));
    co_return std::uint64_t{0};
}

// Awaits a lookup, and makes the call that `call` makes of the object.
template <typename Call>
Task<Done> on_found(Task<Outcome<ObjectInfo>> lookup, Call call) {
    auto found = co_await std::move(lookup);
    if (!found) co_return std::unexpected(std::move(found.error()));
    co_return co_await call(*found);
}

Task<Done> statfs(ObjectClient* client, std::optional<std::string> pool, fopd_space* space,
                  Wait wait) {
    auto pools = co_await client->statfs(wait);
    if (!pools) co_return std::unexpected(std::move(pools.error()));
    fopd_space sum{};
    bool is_there = !pool.has_value();
    for (const PoolSpace& each : *pools) {
        if (pool && each.pool != *pool) continue;
        is_there = true;
        sum.total_bytes += each.total_bytes;
        sum.used_bytes += each.used_bytes;
        sum.free_bytes += each.free_bytes;
        sum.objects += each.objects;
    }
    if (!is_there) {
        co_return std::unexpected(
            Problem{.status = fop::Status::kNotFound, .words = "there is no such pool"});
    }
    give(space, sum);
    co_return std::uint64_t{0};
}

// -- arguments --

Asked wrong(std::string fault) {
    Asked asked;
    asked.fault = std::move(fault);
    return asked;
}

template <typename Work>
Asked work_of(Work work) {
    Asked asked;
    asked.work = std::move(work);
    return asked;
}

constexpr const char* kNoFid = "no object is named";
constexpr const char* kNoMemory = "no memory was given";

bool lacks_memory(const void* memory, std::size_t bytes) {
    return memory == nullptr && bytes > 0;
}
std::string fault_of_object_name(const char* name) {
    const auto good = fop::check_object_name(c_text(name));
    return good ? std::string() : std::string(good.error().context);
}

Asked put_of(const fopd_new_object* given, const void* data, std::size_t bytes, fopd_fid* fid) {
    if (!is_set_up(given)) return wrong("fopd_new_object_init() was not called");
    const fopd_new_object known = known_part(*given, &fopd_new_object_init);
    if (auto fault = fault_of_object_name(known.name); !fault.empty())
        return wrong(std::move(fault));
    if (known.mode > fop::kModeMax) return wrong("a mode is nine bits");
    if (lacks_memory(data, bytes)) return wrong(kNoMemory);
    NewObject object{.name = c_text(known.name),
                     .pool = c_text(known.pool),
                     .group = c_text(known.group),
                     .mode = static_cast<std::uint16_t>(known.mode),
                     .no_replace = known.no_replace != 0,
                     .collection = c_text(known.collection)};
    return work_of([object = std::move(object), from = bytes_of(data, bytes), fid](
                       ObjectClient& client, Wait wait) {
        return then(client.put(object, from, wait), [fid](const fop::Fid& made) {
            if (fid != nullptr) *fid = {.high = made.high, .low = made.low};
        });
    });
}

Asked get_of(const char* pool, const char* name, void* into, std::size_t bytes,
             fopd_object* object) {
    if (auto fault = fault_of_object_name(name); !fault.empty()) return wrong(std::move(fault));
    if (lacks_memory(into, bytes)) return wrong(kNoMemory);
    if (object != nullptr && !is_set_up(object)) return wrong("fopd_object_init() was not called");
    return work_of([which = InPool{c_text(pool), c_text(name)},
                    to = std::span(static_cast<std::byte*>(into), bytes),
                    object](ObjectClient& client, Wait wait) {
        return on_found(client.lookup(which.pool, which.name, wait),
                        [&client, to, object, wait](const ObjectInfo& info) {
                            give_info(object, info);
                            const auto size = std::min<std::uint64_t>(to.size(), info.size_bytes);
                            return client.read(info.fid, 0, to.first(size), wait);
                        });
    });
}

Asked lookup_of(const char* pool, const char* name, fopd_object* object) {
    if (auto fault = fault_of_object_name(name); !fault.empty()) return wrong(std::move(fault));
    if (!is_set_up(object)) return wrong("fopd_object_init() was not called");
    return work_of(
        [which = InPool{c_text(pool), c_text(name)}, object](ObjectClient& client, Wait wait) {
            return then(client.lookup(which.pool, which.name, wait),
                        [object](const ObjectInfo& info) { give_info(object, info); });
        });
}

Asked stat_of(const fopd_fid* fid, fopd_object* object) {
    if (fid == nullptr) return wrong(kNoFid);
    if (!is_set_up(object)) return wrong("fopd_object_init() was not called");
    return work_of([which = fid_of(*fid), object](ObjectClient& client, Wait wait) {
        return then(client.stat(which, wait),
                    [object](const ObjectInfo& info) { give_info(object, info); });
    });
}

Asked read_of(const fopd_fid* fid, std::uint64_t offset, void* into, std::size_t bytes) {
    if (fid == nullptr) return wrong(kNoFid);
    if (lacks_memory(into, bytes)) return wrong(kNoMemory);
    return work_of(
        [which = fid_of(*fid), offset, to = std::span(static_cast<std::byte*>(into), bytes)](
            ObjectClient& client, Wait wait) { return client.read(which, offset, to, wait); });
}

Asked write_of(const fopd_fid* fid, std::uint64_t offset, const void* data, std::size_t bytes,
               int durability) {
    if (fid == nullptr) return wrong(kNoFid);
    if (lacks_memory(data, bytes)) return wrong(kNoMemory);
    if (durability != FOPD_DURABLE && durability != FOPD_BUFFERED)
        return wrong("the durability is unknown");
    const ObjectClient::WriteWish wish{.fid = fid_of(*fid),
                                       .offset = offset,
                                       .from = bytes_of(data, bytes),
                                       .durability = durability == FOPD_DURABLE
                                                         ? fop::Durability::kDurable
                                                         : fop::Durability::kBuffered};
    return work_of(
        [wish](ObjectClient& client, Wait wait) { return nothing_back(client.write(wish, wait)); });
}

Asked append_of(const fopd_fid* fid, const void* data, std::size_t bytes, std::uint64_t* offset) {
    if (fid == nullptr) return wrong(kNoFid);
    if (lacks_memory(data, bytes)) return wrong(kNoMemory);
    return work_of([which = fid_of(*fid), from = bytes_of(data, bytes), offset](
                       ObjectClient& client, Wait wait) {
        return then(client.append(which, from, wait), [offset](std::uint64_t at) {
            if (offset != nullptr) *offset = at;
        });
    });
}

Asked truncate_of(const fopd_fid* fid, std::uint64_t size_bytes) {
    if (fid == nullptr) return wrong(kNoFid);
    if (size_bytes > fop::kOffsetMax) return wrong("an object ends at 2^60 at the latest");
    return work_of([which = fid_of(*fid), size_bytes](ObjectClient& client, Wait wait) {
        return nothing_back(client.truncate(which, size_bytes, wait));
    });
}

Asked punch_of(const fopd_fid* fid, std::uint64_t offset, std::uint64_t bytes) {
    if (fid == nullptr) return wrong(kNoFid);
    const fop::Range range{.offset = offset, .length = bytes};
    if (const auto good = fop::check_range(range); !good) return wrong(good.error().context);
    return work_of([which = fid_of(*fid), range](ObjectClient& client, Wait wait) {
        return nothing_back(client.punch(which, range, wait));
    });
}

Asked set_attributes_of(const fopd_fid* fid, const fopd_attributes* given) {
    if (fid == nullptr) return wrong(kNoFid);
    if (!is_set_up(given)) return wrong("fopd_attributes_init() was not called");
    const fopd_attributes known = known_part(*given, &fopd_attributes_init);
    ObjectClient::AttributeWish wish;
    if (known.owner != nullptr) wish.owner = known.owner;
    if (known.group != nullptr) wish.group = known.group;
    const bool has_mode = known.mode != FOPD_MODE_KEPT;
    if (has_mode && known.mode > fop::kModeMax) return wrong("a mode is nine bits");
    if (has_mode) wish.mode = static_cast<std::uint16_t>(known.mode);
    return work_of([which = fid_of(*fid), wish = std::move(wish)](ObjectClient& client, Wait wait) {
        return nothing_back(client.set_attributes(which, wish, wait));
    });
}

Asked rename_of(const char* pool, const char* name, const char* new_name, int no_replace) {
    if (auto fault = fault_of_object_name(name); !fault.empty()) return wrong(std::move(fault));
    if (auto fault = fault_of_object_name(new_name); !fault.empty()) return wrong(std::move(fault));
    return work_of([which = InPool{c_text(pool), c_text(name)}, to = c_text(new_name), no_replace](
                       ObjectClient& client, Wait wait) {
        ObjectClient::RenameWish wish{
            .pool = which.pool, .from = which.name, .name = to, .no_replace = no_replace != 0};
        return on_found(client.lookup(which.pool, which.name, wait),
                        [&client, wish, wait](const ObjectInfo& info) mutable {
                            wish.fid = info.fid;
                            return nothing_back(client.rename(wish, wait));
                        });
    });
}

Asked remove_of(const char* pool, const char* name) {
    if (auto fault = fault_of_object_name(name); !fault.empty()) return wrong(std::move(fault));
    return work_of([which = InPool{c_text(pool), c_text(name)}](ObjectClient& client, Wait wait) {
        return on_found(client.lookup(which.pool, which.name, wait),
                        [&client, from = which.name, wait](const ObjectInfo& info) {
                            return nothing_back(client.remove(info.fid, from, wait));
                        });
    });
}

Asked sync_of() {
    return work_of([](ObjectClient& client, Wait wait) { return nothing_back(client.sync(wait)); });
}

Asked list_of(fopd_listing* listing) {
    if (listing == nullptr || listing->size < sizeof(fopd_listing)) {
        return wrong("fopd_listing_init() was not called");
    }
    if (listing->each == nullptr) return wrong("there is no function to call with the names");
    ObjectClient::ListWish wish{.pool = c_text(listing->pool),
                                .prefix = c_text(listing->prefix),
                                .cursor = listing->cursor};
    return work_of([wish = std::move(wish), listing](ObjectClient& client, Wait wait) {
        return then(client.list(wish, wait),
                    [listing](const ObjectPage& page) { give_page(listing, page); });
    });
}

Asked statfs_of(const char* pool, fopd_space* space) {
    if (!is_set_up(space)) return wrong("fopd_space_init() was not called");
    std::optional<std::string> wanted;
    if (pool != nullptr) wanted = pool;
    return work_of([wanted = std::move(wanted), space](ObjectClient& client, Wait wait) {
        return statfs(&client, wanted, space, wait);
    });
}

Asked quota_of(const char* pool, fopd_each_quota each, void* context) {
    if (each == nullptr) return wrong("there is no function to call with the quotas");
    return work_of([which = c_text(pool), each, context](ObjectClient& client, Wait wait) {
        return then(client.quota(which, wait), [each, context](const std::vector<QuotaUse>& uses) {
            for (const QuotaUse& use : uses) give_use(each, context, use);
        });
    });
}

}  // namespace

}  // namespace fopd::client

void fopd_object_init(fopd_object* object) {
    *object = {};
    object->size = sizeof(fopd_object);
}

void fopd_new_object_init(fopd_new_object* object) {
    *object = {};
    object->size = sizeof(fopd_new_object);
    object->mode = fopd::client::NewObject{}.mode;
}

void fopd_attributes_init(fopd_attributes* attributes) {
    *attributes = {};
    attributes->size = sizeof(fopd_attributes);
    attributes->mode = FOPD_MODE_KEPT;
}

void fopd_listing_init(fopd_listing* listing) {
    *listing = {};
    listing->size = sizeof(fopd_listing);
}

void fopd_space_init(fopd_space* space) {
    *space = {};
    space->size = sizeof(fopd_space);
}

FOPD_CALL(put, put_of(object, data, bytes, fid), const fopd_new_object* object, const void* data,
          size_t bytes, fopd_fid* fid)
FOPD_CALL(get, get_of(pool, name, into, bytes, object), const char* pool, const char* name,
          void* into, size_t bytes, fopd_object* object)
FOPD_CALL(lookup, lookup_of(pool, name, object), const char* pool, const char* name,
          fopd_object* object)
FOPD_CALL(stat, stat_of(fid, object), const fopd_fid* fid, fopd_object* object)
FOPD_CALL(read, read_of(fid, offset, into, bytes), const fopd_fid* fid, uint64_t offset, void* into,
          size_t bytes)
FOPD_CALL(write, write_of(fid, offset, data, bytes, durability), const fopd_fid* fid,
          uint64_t offset, const void* data, size_t bytes, int durability)
FOPD_CALL(append, append_of(fid, data, bytes, offset), const fopd_fid* fid, const void* data,
          size_t bytes, uint64_t* offset)
FOPD_CALL(truncate, truncate_of(fid, size_bytes), const fopd_fid* fid, uint64_t size_bytes)
FOPD_CALL(punch, punch_of(fid, offset, bytes), const fopd_fid* fid, uint64_t offset, uint64_t bytes)
FOPD_CALL(set_attributes, set_attributes_of(fid, attributes), const fopd_fid* fid,
          const fopd_attributes* attributes)
FOPD_CALL(rename, rename_of(pool, name, new_name, no_replace), const char* pool, const char* name,
          const char* new_name, int no_replace)
FOPD_CALL(remove, remove_of(pool, name), const char* pool, const char* name)
FOPD_CALL(sync, sync_of())
FOPD_CALL(list, list_of(listing), fopd_listing* listing)
FOPD_CALL(statfs, statfs_of(pool, space), const char* pool, fopd_space* space)

// One context serves both callbacks.
void fopd_quota(fopd_client* client, const fopd_call* call, const char* pool, fopd_each_quota each,
                fopd_done done, void* context) {
    const auto make = [&] { return fopd::client::quota_of(pool, each, context); };
    fopd::client::begin_call(client, call, done, context, std::ref(make));
}
int fopd_quota_wait(fopd_client* client, const fopd_call* call, const char* pool,
                    fopd_each_quota each, void* context, fopd_result* result) {
    const auto make = [&] { return fopd::client::quota_of(pool, each, context); };
    return fopd::client::wait_for_call(client, call, result, std::ref(make));
}

// SPDX-License-Identifier: BSD-2-Clause
#include "client/fopd.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <expected>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/endpoint.h"
#include "client/request_fault.h"
#include "client/session_thread.h"
#include "core/printable.h"
#include "fop/fop_type.h"
#include "fop/name.h"
#include "fop/principal.h"

using fopd::Duration;
using fopd::client::Ended;
using fopd::client::Operation;
using fopd::client::SessionThread;

// NOLINTNEXTLINE(readability-identifier-naming): C.
struct fopd_client {
    std::shared_ptr<SessionThread> thread;
    std::string job;
    Duration timeout;
};

namespace {

namespace fop = fopd::fop;

constexpr std::uint64_t kTimeoutDefaultUs = 30'000'000;

struct StatusName {
    fopd_status status;
    const char* name;
};
constexpr std::array kNames{
    StatusName{FOPD_OK, "ok"},
    StatusName{FOPD_INVALID, "invalid"},
    StatusName{FOPD_UNREACHABLE, "unreachable"},
    StatusName{FOPD_DENIED, "denied"},
    StatusName{FOPD_TRY_AGAIN, "try_again"},
    StatusName{FOPD_TIMED_OUT, "timed_out"},
    StatusName{FOPD_CLOSED, "closed"},
    StatusName{FOPD_CANCELLED, "cancelled"},
    StatusName{FOPD_CORRUPT, "corrupt"},
    StatusName{FOPD_NO_SPACE, "no_space"},
    StatusName{FOPD_NOT_FOUND, "not_found"},
    StatusName{FOPD_OUTCOME_UNKNOWN, "outcome_unknown"},
    StatusName{FOPD_UNSUPPORTED, "unsupported"},
    StatusName{FOPD_FAILED, "failed"},
    StatusName{FOPD_EXISTS, "exists"},
    StatusName{FOPD_QUOTA, "quota"},
    StatusName{FOPD_READ_ONLY, "read_only"},
    StatusName{FOPD_MEDIUM_MISSING, "medium_missing"},
    StatusName{FOPD_LOST, "lost"},
};

fopd_status status_of(const Ended& ended) {
    if (ended.kind == Ended::Kind::kUnreachable) return FOPD_UNREACHABLE;
    if (ended.kind == Ended::Kind::kClosed) return FOPD_CLOSED;
    switch (ended.status) {
        case fop::Status::kDone: return FOPD_OK;
        case fop::Status::kUnknownFop:
        case fop::Status::kVersion: return FOPD_UNSUPPORTED;
        case fop::Status::kMalformed:
        case fop::Status::kWrongPool:
        case fop::Status::kTooLarge: return FOPD_INVALID;
        case fop::Status::kDenied: return FOPD_DENIED;
        case fop::Status::kTryAgain:
        case fop::Status::kBusy: return FOPD_TRY_AGAIN;
        case fop::Status::kTimedOut: return FOPD_TIMED_OUT;
        case fop::Status::kCancelled: return FOPD_CANCELLED;
        case fop::Status::kCorrupt: return FOPD_CORRUPT;
        case fop::Status::kNoSpace: return FOPD_NO_SPACE;
        case fop::Status::kNotFound: return FOPD_NOT_FOUND;
        case fop::Status::kOutcomeUnknown: return FOPD_OUTCOME_UNKNOWN;
        case fop::Status::kInternal: return FOPD_FAILED;
        case fop::Status::kExists: return FOPD_EXISTS;
        case fop::Status::kQuota: return FOPD_QUOTA;
        case fop::Status::kReadOnly: return FOPD_READ_ONLY;
        case fop::Status::kMediumMissing: return FOPD_MEDIUM_MISSING;
        case fop::Status::kLost: return FOPD_LOST;
    }
    return FOPD_FAILED;  // A status that a newer server has added.
}

int fill(fopd_result* result, fopd_status status, std::string_view words, std::size_t bytes = 0) {
    if (result == nullptr) return status;
    result->status = status;
    result->bytes = bytes;
    const std::size_t length = std::min(words.size(), std::size_t{FOPD_WORDS_MAX - 1});
    std::ranges::copy_n(words.begin(), static_cast<std::ptrdiff_t>(length), result->words);
    result->words[length] = '\0';
    return status;
}

int fill(fopd_result* result, const Ended& ended) {
    const bool silent = ended.words.empty() && ended.status != fop::Status::kDone;
    return fill(result, status_of(ended),
                silent ? fop::status_row(ended.status).summary : std::string_view(ended.words),
                ended.bytes);
}

// -- operations --

class WithCallback final : public Operation {
public:
    WithCallback(fopd_done then, void* context) : then_(then), context_(context) {}

    void done(Ended ended) noexcept override {
        fopd_result result;
        fill(&result, ended);
        const fopd_done then = then_;
        void* const context = context_;
        delete this;
        then(&result, context);
    }

private:
    const fopd_done then_;
    void* const context_;
};

class Awaited final : public Operation {
public:
    // Notified under the lock: the waiting thread destroys this as soon as it can.
    void done(Ended ended) noexcept override {
        const std::lock_guard lock(mutex_);
        ended_ = std::move(ended);
        changed_.notify_one();
    }
    Ended wait() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return ended_.has_value(); });
        return std::move(*ended_);
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::optional<Ended> ended_;
};

Duration duration_of(std::uint64_t microseconds) {
    constexpr auto kMax = static_cast<std::uint64_t>(Duration::max().count() / 1000);
    if (microseconds > kMax) return Duration::max();
    return std::chrono::microseconds(microseconds);
}

// What a program built against an older header does not know stays as it is by default.
template <typename Struct>
Struct known_part(const Struct& given, const Struct& defaults) {
    Struct known = defaults;
    std::memcpy(&known, &given, std::min(given.size, sizeof(Struct)));
    return known;
}

// What is asked, and its memory.
struct Asked {
    fop::RequestBody body{};  // monostate: work, or with none, that there is a session.
    const void* data = nullptr;
    void* into = nullptr;
    std::size_t bytes = 0;
    Operation::Work work{};
    std::string fault{};  // Why it cannot be asked.
};

const fop::FopType* type_of(const fop::RequestBody& body) {
    return body.index() == 0 ? nullptr : &fop::kFopTypes[body.index() - 1];
}

// Why it cannot be asked; empty when it can.
std::string fault_of(const fopd_client* client, const fopd_call* call, const Asked& asked) {
    if (client == nullptr) return "no client was given";
    if (call != nullptr && call->size < sizeof(std::size_t)) {
        return "fopd_call_init() was not called";
    }
    if (!asked.fault.empty()) return asked.fault;
    const fop::FopType* const type = type_of(asked.body);
    if (type == nullptr || type->payload == fop::Payload::kNone) return {};
    if (type->payload == fop::Payload::kBulk && asked.bytes == 0) return "there are no bytes";
    if (asked.bytes > 0 && (asked.data == nullptr || asked.into == nullptr)) {
        return "no memory was given";
    }
    return {};
}

// Likewise.
std::string set_up(Operation& operation, const fopd_client* client, const fopd_call* given,
                   const Asked& asked) {
    if (auto fault = fault_of(client, given, asked); !fault.empty()) return fault;
    fopd_call call;
    fopd_call_init(&call);
    if (given != nullptr) call = known_part(*given, call);
    operation.timeout =
        call.timeout_us == FOPD_TIMEOUT_DEFAULT ? client->timeout : duration_of(call.timeout_us);
    operation.job = call.job != nullptr ? call.job : client->job;
    if (auto fault = fopd::client::fault_of_name("job", operation.job); !fault.empty()) {
        return fault;
    }
    operation.work = asked.work;
    operation.body = asked.body;
    operation.type = type_of(asked.body);
    if (operation.type == nullptr) return {};
    // The server only reads what is opened to it for reading.
    const std::span data(static_cast<std::byte*>(const_cast<void*>(asked.data)), asked.bytes);
    const std::span into(static_cast<std::byte*>(asked.into), asked.bytes);
    if (operation.type->payload == fop::Payload::kInline) {
        operation.payload = data;
        operation.reply_into = into;
    } else if (operation.type->payload == fop::Payload::kBulk) {
        operation.source = data;
        operation.target = into;
    }
    return {};
}

void begin(fopd_client* client, const fopd_call* call, const Asked& asked, fopd_done done,
           void* context) noexcept {
    fopd_result failed;
    try {
        auto operation = std::make_unique<WithCallback>(done, context);
        const std::string fault = set_up(*operation, client, call, asked);
        // From here on the operation owns itself.
        if (fault.empty()) return client->thread->submit(*operation.release());
        fill(&failed, FOPD_INVALID, fault);
    } catch (const std::exception& problem) {
        fill(&failed, FOPD_NO_SPACE, problem.what());
    }
    done(&failed, context);
}

int wait(fopd_client* client, const fopd_call* call, const Asked& asked,
         fopd_result* result) noexcept try {
    Awaited operation;
    if (const auto fault = set_up(operation, client, call, asked); !fault.empty()) {
        return fill(result, FOPD_INVALID, fault);
    }
    if (client->thread->is_this_thread()) {
        return fill(result, FOPD_INVALID, "the library's thread must not wait");
    }
    client->thread->submit(operation);
    return fill(result, operation.wait());
} catch (const std::exception& problem) {
    return fill(result, FOPD_NO_SPACE, problem.what());
}

Asked echo_of(const void* data, void* into, std::size_t bytes) {
    return {.body = fop::Echo{}, .data = data, .into = into, .bytes = bytes};
}

Asked bulk_echo_of(const void* data, void* into, std::size_t bytes) {
    return {.body = fop::BulkEcho{.source = {}, .target = {}, .bytes = bytes},
            .data = data,
            .into = into,
            .bytes = bytes};
}

// -- objects --

using fopd::Task;
using fopd::client::NewObject;
using fopd::client::ObjectClient;
using fopd::client::ObjectInfo;
using fopd::client::Outcome;
using fopd::client::PoolSpace;
using fopd::client::Problem;
using fopd::client::QuotaUse;
using Wait = ObjectClient::Wait;
using Done = Outcome<std::uint64_t>;  // How many bytes came back.

std::string text_of(const char* given) {
    return given == nullptr ? std::string() : std::string(given);
}

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

// As much of it as the program knows.
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
    give(to, object);
}

// Tasks of the library's thread. What they are given by value they own; memory is the caller's.

struct InPool {
    std::string pool{};
    std::string name{};
};

Task<Done> put(ObjectClient* client, NewObject object, std::span<const std::byte> from,
               fopd_fid* fid, Wait wait) {
    auto put = co_await client->put(std::move(object), from, wait);
    if (!put) co_return std::unexpected(std::move(put.error()));
    if (fid != nullptr) *fid = {.high = put->high, .low = put->low};
    co_return std::uint64_t{0};
}

Task<Done> lookup(ObjectClient* client, InPool which, fopd_object* object, Wait wait) {
    auto found = co_await client->lookup(std::move(which.pool), std::move(which.name), wait);
    if (!found) co_return std::unexpected(std::move(found.error()));
    give_info(object, *found);
    co_return std::uint64_t{0};
}

Task<Done> stat(ObjectClient* client, fop::Fid fid, fopd_object* object, Wait wait) {
    auto found = co_await client->stat(fid, wait);
    if (!found) co_return std::unexpected(std::move(found.error()));
    give_info(object, *found);
    co_return std::uint64_t{0};
}

Task<Done> get(ObjectClient* client, InPool which, std::span<std::byte> into, fopd_object* object,
               Wait wait) {
    auto found = co_await client->lookup(std::move(which.pool), std::move(which.name), wait);
    if (!found) co_return std::unexpected(std::move(found.error()));
    give_info(object, *found);
    const auto size = std::min<std::uint64_t>(into.size(), found->size_bytes);
    co_return co_await client->read(found->fid, 0, into.first(size), wait);
}

Task<Done> nothing_back(Task<Outcome<void>> task) {
    auto done = co_await std::move(task);
    if (!done) co_return std::unexpected(std::move(done.error()));
    co_return std::uint64_t{0};
}

Task<Done> append(ObjectClient* client, fop::Fid fid, std::span<const std::byte> from,
                  std::uint64_t* offset, Wait wait) {
    auto at = co_await client->append(fid, from, wait);
    if (!at) co_return std::unexpected(std::move(at.error()));
    if (offset != nullptr) *offset = *at;
    co_return std::uint64_t{0};
}

Task<Done> rename(ObjectClient* client, InPool which, ObjectClient::RenameWish wish, Wait wait) {
    auto found = co_await client->lookup(std::move(which.pool), std::move(which.name), wait);
    if (!found) co_return std::unexpected(std::move(found.error()));
    wish.fid = found->fid;
    co_return co_await nothing_back(client->rename(std::move(wish), wait));
}

Task<Done> remove(ObjectClient* client, InPool which, Wait wait) {
    std::string from = which.name;
    auto found = co_await client->lookup(std::move(which.pool), std::move(which.name), wait);
    if (!found) co_return std::unexpected(std::move(found.error()));
    co_return co_await nothing_back(client->remove(found->fid, std::move(from), wait));
}

Task<Done> list(ObjectClient* client, ObjectClient::ListWish wish, fopd_listing* listing,
                Wait wait) {
    auto page = co_await client->list(std::move(wish), wait);
    if (!page) co_return std::unexpected(std::move(page.error()));
    for (const auto& each : page->entries) {
        const fopd_entry entry{.fid = {.high = each.fid.high, .low = each.fid.low},
                               .size_bytes = each.size_bytes,
                               .changed_ns = each.changed_ns,
                               .name = each.name.c_str()};
        listing->each(&entry, listing->context);
    }
    listing->end = page->end ? 1 : 0;
    copy_text(listing->cursor, page->cursor);
    co_return std::uint64_t{0};
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

Task<Done> quota(ObjectClient* client, std::string pool, fopd_each_quota each, void* context,
                 Wait wait) {
    auto uses = co_await client->quota(std::move(pool), wait);
    if (!uses) co_return std::unexpected(std::move(uses.error()));
    for (const QuotaUse& each_use : *uses) {
        const fopd_quota_use use{.pool = each_use.pool.c_str(),
                                 .owner = each_use.owner ? each_use.owner->c_str() : nullptr,
                                 .used_bytes = each_use.used_bytes,
                                 .limit_bytes = each_use.limit_bytes,
                                 .used_objects = each_use.used_objects,
                                 .limit_objects = each_use.limit_objects};
        each(&use, context);
    }
    co_return std::uint64_t{0};
}

// -- what is asked about objects --

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
// What its init function sets, and what we write into all the same.
template <typename Struct>
bool is_set_up(const Struct* given) {
    return given != nullptr && given->size >= sizeof(std::size_t);
}

std::string fault_of_name(const char* name) {
    const auto good = fop::check_object_name(text_of(name));
    return good ? std::string() : std::string(good.error().context);
}

Asked put_of(const fopd_new_object* given, const void* data, std::size_t bytes, fopd_fid* fid) {
    if (!is_set_up(given)) return wrong("fopd_new_object_init() was not called");
    fopd_new_object known;
    fopd_new_object_init(&known);
    known = known_part(*given, known);
    if (auto fault = fault_of_name(known.name); !fault.empty()) return wrong(std::move(fault));
    if (known.mode > fop::kModeMax) return wrong("a mode is nine bits");
    if (lacks_memory(data, bytes)) return wrong(kNoMemory);
    NewObject object{.name = text_of(known.name),
                     .pool = text_of(known.pool),
                     .group = text_of(known.group),
                     .mode = static_cast<std::uint16_t>(known.mode),
                     .no_replace = known.no_replace != 0};
    return work_of(
        [object = std::move(object), from = bytes_of(data, bytes), fid](
            ObjectClient& client, Wait wait) { return put(&client, object, from, fid, wait); });
}

Asked get_of(const char* pool, const char* name, void* into, std::size_t bytes,
             fopd_object* object) {
    if (auto fault = fault_of_name(name); !fault.empty()) return wrong(std::move(fault));
    if (lacks_memory(into, bytes)) return wrong(kNoMemory);
    if (object != nullptr && !is_set_up(object)) return wrong("fopd_object_init() was not called");
    return work_of([which = InPool{text_of(pool), text_of(name)},
                    to = std::span(static_cast<std::byte*>(into), bytes),
                    object](ObjectClient& client, Wait wait) {
        return get(&client, which, to, object, wait);
    });
}

Asked lookup_of(const char* pool, const char* name, fopd_object* object) {
    if (auto fault = fault_of_name(name); !fault.empty()) return wrong(std::move(fault));
    if (!is_set_up(object)) return wrong("fopd_object_init() was not called");
    return work_of(
        [which = InPool{text_of(pool), text_of(name)}, object](ObjectClient& client, Wait wait) {
            return lookup(&client, which, object, wait);
        });
}

Asked stat_of(const fopd_fid* fid, fopd_object* object) {
    if (fid == nullptr) return wrong(kNoFid);
    if (!is_set_up(object)) return wrong("fopd_object_init() was not called");
    return work_of([which = fid_of(*fid), object](ObjectClient& client, Wait wait) {
        return stat(&client, which, object, wait);
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
    if (durability != FOPD_DURABLE && durability != FOPD_BUFFERED) return wrong("what durability?");
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
        return append(&client, which, from, offset, wait);
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
    fopd_attributes known;
    fopd_attributes_init(&known);
    known = known_part(*given, known);
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
    if (auto fault = fault_of_name(name); !fault.empty()) return wrong(std::move(fault));
    if (auto fault = fault_of_name(new_name); !fault.empty()) return wrong(std::move(fault));
    return work_of([which = InPool{text_of(pool), text_of(name)}, to = text_of(new_name),
                    no_replace](ObjectClient& client, Wait wait) {
        ObjectClient::RenameWish wish{
            .pool = which.pool, .from = which.name, .name = to, .no_replace = no_replace != 0};
        return rename(&client, which, std::move(wish), wait);
    });
}

Asked remove_of(const char* pool, const char* name) {
    if (auto fault = fault_of_name(name); !fault.empty()) return wrong(std::move(fault));
    return work_of([which = InPool{text_of(pool), text_of(name)}](ObjectClient& client, Wait wait) {
        return remove(&client, which, wait);
    });
}

Asked sync_of() {
    return work_of([](ObjectClient& client, Wait wait) { return nothing_back(client.sync(wait)); });
}

Asked list_of(fopd_listing* listing) {
    if (listing == nullptr || listing->size < sizeof(fopd_listing)) {
        return wrong("fopd_listing_init() was not called");
    }
    if (listing->each == nullptr) return wrong("nobody is to be told of the names");
    ObjectClient::ListWish wish{.pool = text_of(listing->pool),
                                .prefix = text_of(listing->prefix),
                                .cursor = listing->cursor};
    return work_of([wish = std::move(wish), listing](ObjectClient& client, Wait wait) {
        return list(&client, wish, listing, wait);
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
    if (each == nullptr) return wrong("nobody is to be told of the quotas");
    return work_of([which = text_of(pool), each, context](ObjectClient& client, Wait wait) {
        return quota(&client, which, each, context, wait);
    });
}

// What is asked is put together under the same roof as the call, for want of memory.
template <typename MakeAsked>
void begin_work(fopd_client* client, const fopd_call* call, fopd_done done, void* context,
                MakeAsked make) noexcept {
    std::optional<Asked> asked;
    fopd_result failed;
    try {
        asked = make();
    } catch (const std::exception& problem) {
        fill(&failed, FOPD_NO_SPACE, problem.what());
        return done(&failed, context);
    }
    begin(client, call, *asked, done, context);
}

template <typename MakeAsked>
int wait_for_work(fopd_client* client, const fopd_call* call, fopd_result* result,
                  MakeAsked make) noexcept try {
    return wait(client, call, make(), result);
} catch (const std::exception& problem) {
    return fill(result, FOPD_NO_SPACE, problem.what());
}

// -- how a client is made --

struct Refusal {
    fopd_status status;
    std::string words;
};

std::unexpected<Refusal> refused(fopd_status status, std::string_view words) {
    std::string safe;
    fopd::core::append_printable(safe, words);
    return std::unexpected(Refusal{.status = status, .words = std::move(safe)});
}

std::expected<SessionThread::Options, Refusal> read_options(const fopd_options& options) {
    if (options.server == nullptr) return refused(FOPD_INVALID, "no server is named");
    const auto text = [](const char* given) { return std::string(given == nullptr ? "" : given); };
    auto read = fopd::client::read_endpoint({.server = options.server,
                                             .key_file = text(options.key_file),
                                             .user = text(options.user),
                                             .token = text(options.token)});
    if (!read) return refused(FOPD_INVALID, read.error());
    if (auto fault = fopd::client::fault_of_name("job", text(options.job)); !fault.empty()) {
        return refused(FOPD_INVALID, fault);
    }
    return std::move(*read);
}

SessionThread::World world_for(const fopd::fabric::Address& server) {
    SessionThread::World world;
    if (!fopd::client::is_numeric(server.host)) world.resolve = &fopd::client::resolve_host;
    world.make_transport = [scheme = server.scheme](fopd::core::EventSink& events,
                                                    fopd::core::Entropy& entropy) {
        return fopd::client::make_transport(scheme, events, entropy);
    };
    return world;
}

}  // namespace

const char* fopd_status_name(int status) {
    const auto* const row = std::ranges::find(kNames, status, &StatusName::status);
    return row == kNames.end() ? "unknown" : row->name;
}

void fopd_options_init(fopd_options* options) {
    *options = {};
    options->size = sizeof(fopd_options);
    options->timeout_us = kTimeoutDefaultUs;
}

void fopd_call_init(fopd_call* call) {
    *call = {};
    call->size = sizeof(fopd_call);
}

int fopd_open(const fopd_options* options, fopd_client** client, fopd_result* why) try {
    *client = nullptr;
    if (options == nullptr || options->size < sizeof(std::size_t)) {
        return fill(why, FOPD_INVALID, "fopd_options_init() was not called");
    }
    fopd_options known;
    fopd_options_init(&known);
    known = known_part(*options, known);
    const auto read = read_options(known);
    if (!read) return fill(why, read.error().status, read.error().words);
    auto made = std::make_unique<fopd_client>();
    made->timeout = duration_of(known.timeout_us == FOPD_TIMEOUT_DEFAULT ? kTimeoutDefaultUs
                                                                         : known.timeout_us);
    if (known.job != nullptr) made->job = known.job;
    auto thread = SessionThread::start(*read, world_for(read->server));
    if (!thread) return fill(why, FOPD_NO_SPACE, fopd::describe(thread.error()));
    made->thread = std::move(*thread);
    *client = made.release();
    return fill(why, FOPD_OK, {});
} catch (const std::exception& problem) {
    return fill(why, FOPD_NO_SPACE, problem.what());
}

void fopd_close(fopd_client* client) {
    const std::unique_ptr<fopd_client> owned(client);
    if (owned != nullptr) SessionThread::stop(owned->thread);
}

void fopd_connected(fopd_client* client, const fopd_call* call, fopd_done done, void* context) {
    begin(client, call, {}, done, context);
}
int fopd_connected_wait(fopd_client* client, const fopd_call* call, fopd_result* result) {
    return wait(client, call, {}, result);
}

void fopd_ping(fopd_client* client, const fopd_call* call, fopd_done done, void* context) {
    begin(client, call, {.body = fop::Ping{}}, done, context);
}
int fopd_ping_wait(fopd_client* client, const fopd_call* call, fopd_result* result) {
    return wait(client, call, {.body = fop::Ping{}}, result);
}

void fopd_echo(fopd_client* client, const fopd_call* call, const void* data, void* into,
               size_t bytes, fopd_done done, void* context) {
    begin(client, call, echo_of(data, into, bytes), done, context);
}
int fopd_echo_wait(fopd_client* client, const fopd_call* call, const void* data, void* into,
                   size_t bytes, fopd_result* result) {
    return wait(client, call, echo_of(data, into, bytes), result);
}

void fopd_bulk_echo(fopd_client* client, const fopd_call* call, const void* data, void* into,
                    size_t bytes, fopd_done done, void* context) {
    begin(client, call, bulk_echo_of(data, into, bytes), done, context);
}
int fopd_bulk_echo_wait(fopd_client* client, const fopd_call* call, const void* data, void* into,
                        size_t bytes, fopd_result* result) {
    return wait(client, call, bulk_echo_of(data, into, bytes), result);
}

// -- objects --

void fopd_object_init(fopd_object* object) {
    *object = {};
    object->size = sizeof(fopd_object);
}

void fopd_new_object_init(fopd_new_object* object) {
    *object = {};
    object->size = sizeof(fopd_new_object);
    object->mode = NewObject{}.mode;
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

void fopd_put(fopd_client* client, const fopd_call* call, const fopd_new_object* object,
              const void* data, size_t bytes, fopd_fid* fid, fopd_done done, void* context) {
    begin_work(client, call, done, context, [&] { return put_of(object, data, bytes, fid); });
}
int fopd_put_wait(fopd_client* client, const fopd_call* call, const fopd_new_object* object,
                  const void* data, size_t bytes, fopd_fid* fid, fopd_result* result) {
    return wait_for_work(client, call, result, [&] { return put_of(object, data, bytes, fid); });
}

void fopd_get(fopd_client* client, const fopd_call* call, const char* pool, const char* name,
              void* into, size_t bytes, fopd_object* object, fopd_done done, void* context) {
    begin_work(client, call, done, context,
               [&] { return get_of(pool, name, into, bytes, object); });
}
int fopd_get_wait(fopd_client* client, const fopd_call* call, const char* pool, const char* name,
                  void* into, size_t bytes, fopd_object* object, fopd_result* result) {
    return wait_for_work(client, call, result,
                         [&] { return get_of(pool, name, into, bytes, object); });
}

void fopd_lookup(fopd_client* client, const fopd_call* call, const char* pool, const char* name,
                 fopd_object* object, fopd_done done, void* context) {
    begin_work(client, call, done, context, [&] { return lookup_of(pool, name, object); });
}
int fopd_lookup_wait(fopd_client* client, const fopd_call* call, const char* pool, const char* name,
                     fopd_object* object, fopd_result* result) {
    return wait_for_work(client, call, result, [&] { return lookup_of(pool, name, object); });
}

void fopd_stat(fopd_client* client, const fopd_call* call, const fopd_fid* fid, fopd_object* object,
               fopd_done done, void* context) {
    begin_work(client, call, done, context, [&] { return stat_of(fid, object); });
}
int fopd_stat_wait(fopd_client* client, const fopd_call* call, const fopd_fid* fid,
                   fopd_object* object, fopd_result* result) {
    return wait_for_work(client, call, result, [&] { return stat_of(fid, object); });
}

void fopd_read(fopd_client* client, const fopd_call* call, const fopd_fid* fid, uint64_t offset,
               void* into, size_t bytes, fopd_done done, void* context) {
    begin_work(client, call, done, context, [&] { return read_of(fid, offset, into, bytes); });
}
int fopd_read_wait(fopd_client* client, const fopd_call* call, const fopd_fid* fid, uint64_t offset,
                   void* into, size_t bytes, fopd_result* result) {
    return wait_for_work(client, call, result, [&] { return read_of(fid, offset, into, bytes); });
}

void fopd_write(fopd_client* client, const fopd_call* call, const fopd_fid* fid, uint64_t offset,
                const void* data, size_t bytes, int durability, fopd_done done, void* context) {
    begin_work(client, call, done, context,
               [&] { return write_of(fid, offset, data, bytes, durability); });
}
int fopd_write_wait(fopd_client* client, const fopd_call* call, const fopd_fid* fid,
                    uint64_t offset, const void* data, size_t bytes, int durability,
                    fopd_result* result) {
    return wait_for_work(client, call, result,
                         [&] { return write_of(fid, offset, data, bytes, durability); });
}

void fopd_append(fopd_client* client, const fopd_call* call, const fopd_fid* fid, const void* data,
                 size_t bytes, uint64_t* offset, fopd_done done, void* context) {
    begin_work(client, call, done, context, [&] { return append_of(fid, data, bytes, offset); });
}
int fopd_append_wait(fopd_client* client, const fopd_call* call, const fopd_fid* fid,
                     const void* data, size_t bytes, uint64_t* offset, fopd_result* result) {
    return wait_for_work(client, call, result, [&] { return append_of(fid, data, bytes, offset); });
}

void fopd_truncate(fopd_client* client, const fopd_call* call, const fopd_fid* fid,
                   uint64_t size_bytes, fopd_done done, void* context) {
    begin_work(client, call, done, context, [&] { return truncate_of(fid, size_bytes); });
}
int fopd_truncate_wait(fopd_client* client, const fopd_call* call, const fopd_fid* fid,
                       uint64_t size_bytes, fopd_result* result) {
    return wait_for_work(client, call, result, [&] { return truncate_of(fid, size_bytes); });
}

void fopd_punch(fopd_client* client, const fopd_call* call, const fopd_fid* fid, uint64_t offset,
                uint64_t bytes, fopd_done done, void* context) {
    begin_work(client, call, done, context, [&] { return punch_of(fid, offset, bytes); });
}
int fopd_punch_wait(fopd_client* client, const fopd_call* call, const fopd_fid* fid,
                    uint64_t offset, uint64_t bytes, fopd_result* result) {
    return wait_for_work(client, call, result, [&] { return punch_of(fid, offset, bytes); });
}

void fopd_set_attributes(fopd_client* client, const fopd_call* call, const fopd_fid* fid,
                         const fopd_attributes* attributes, fopd_done done, void* context) {
    begin_work(client, call, done, context, [&] { return set_attributes_of(fid, attributes); });
}
int fopd_set_attributes_wait(fopd_client* client, const fopd_call* call, const fopd_fid* fid,
                             const fopd_attributes* attributes, fopd_result* result) {
    return wait_for_work(client, call, result, [&] { return set_attributes_of(fid, attributes); });
}

void fopd_rename(fopd_client* client, const fopd_call* call, const char* pool, const char* name,
                 const char* new_name, int no_replace, fopd_done done, void* context) {
    begin_work(client, call, done, context,
               [&] { return rename_of(pool, name, new_name, no_replace); });
}
int fopd_rename_wait(fopd_client* client, const fopd_call* call, const char* pool, const char* name,
                     const char* new_name, int no_replace, fopd_result* result) {
    return wait_for_work(client, call, result,
                         [&] { return rename_of(pool, name, new_name, no_replace); });
}

void fopd_remove(fopd_client* client, const fopd_call* call, const char* pool, const char* name,
                 fopd_done done, void* context) {
    begin_work(client, call, done, context, [&] { return remove_of(pool, name); });
}
int fopd_remove_wait(fopd_client* client, const fopd_call* call, const char* pool, const char* name,
                     fopd_result* result) {
    return wait_for_work(client, call, result, [&] { return remove_of(pool, name); });
}

void fopd_sync(fopd_client* client, const fopd_call* call, fopd_done done, void* context) {
    begin_work(client, call, done, context, [&] { return sync_of(); });
}
int fopd_sync_wait(fopd_client* client, const fopd_call* call, fopd_result* result) {
    return wait_for_work(client, call, result, [&] { return sync_of(); });
}

void fopd_list(fopd_client* client, const fopd_call* call, fopd_listing* listing, fopd_done done,
               void* context) {
    begin_work(client, call, done, context, [&] { return list_of(listing); });
}
int fopd_list_wait(fopd_client* client, const fopd_call* call, fopd_listing* listing,
                   fopd_result* result) {
    return wait_for_work(client, call, result, [&] { return list_of(listing); });
}

void fopd_statfs(fopd_client* client, const fopd_call* call, const char* pool, fopd_space* space,
                 fopd_done done, void* context) {
    begin_work(client, call, done, context, [&] { return statfs_of(pool, space); });
}
int fopd_statfs_wait(fopd_client* client, const fopd_call* call, const char* pool,
                     fopd_space* space, fopd_result* result) {
    return wait_for_work(client, call, result, [&] { return statfs_of(pool, space); });
}

void fopd_quota(fopd_client* client, const fopd_call* call, const char* pool, fopd_each_quota each,
                fopd_done done, void* context) {
    begin_work(client, call, done, context, [&] { return quota_of(pool, each, context); });
}
int fopd_quota_wait(fopd_client* client, const fopd_call* call, const char* pool,
                    fopd_each_quota each, void* context, fopd_result* result) {
    return wait_for_work(client, call, result, [&] { return quota_of(pool, each, context); });
}

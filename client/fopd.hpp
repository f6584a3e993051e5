// SPDX-License-Identifier: BSD-2-Clause
#pragma once

// libfopd for C++17 and later: the interface of fopd.h with values and functions instead of structs
// and pointers. Everything is inline, so the library's binary interface is C only.
// The file is long because programs include one file for all functions of the library.

#include <chrono>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/fopd.h"

namespace libfopd {

enum class Status : int {
    kOk = FOPD_OK,
    kInvalid = FOPD_INVALID,
    kUnreachable = FOPD_UNREACHABLE,
    kDenied = FOPD_DENIED,
    kTryAgain = FOPD_TRY_AGAIN,
    kTimedOut = FOPD_TIMED_OUT,
    kClosed = FOPD_CLOSED,
    kCancelled = FOPD_CANCELLED,
    kCorrupt = FOPD_CORRUPT,
    kNoSpace = FOPD_NO_SPACE,
    kNotFound = FOPD_NOT_FOUND,
    kOutcomeUnknown = FOPD_OUTCOME_UNKNOWN,
    kUnsupported = FOPD_UNSUPPORTED,
    kFailed = FOPD_FAILED,
    kExists = FOPD_EXISTS,
    kQuota = FOPD_QUOTA,
    kReadOnly = FOPD_READ_ONLY,
    kMediumMissing = FOPD_MEDIUM_MISSING,
    kLost = FOPD_LOST,
};

inline const char* to_string(Status status) {
    return fopd_status_name(static_cast<int>(status));
}

struct Outcome {
    Status status = Status::kOk;
    std::size_t bytes = 0;  // Bytes transferred.
    std::string words;      // The reason of a failure, for people: one line, safe for a terminal.

    explicit operator bool() const { return status == Status::kOk; }
};

struct Options {
    std::string server;    // "tcp://host:port", or "tcp://host:port/locality".
    std::string key_file;  // Empty: no key; the server must admit anonymous clients.
    std::string user;      // On whose behalf this client acts; empty: itself.
    std::string job;
    // For calls without a timeout of their own.
    std::chrono::microseconds timeout = std::chrono::seconds(30);
    std::string token;     // A capability token, or the name of its file; empty: none.
    std::string protect;   // "seal" or "encrypt", as the server's fabric.protect; empty: seal.
    bool explain = false;  // The server tells where the time of each fop went; see Client::times().
};

inline constexpr std::chrono::microseconds kAsLongAsItTakes = std::chrono::microseconds::max();

struct Call {
    std::chrono::microseconds timeout{0};  // 0: the client's.
    std::string job;                       // Empty: the client's.
};

// The id of an object; it does not change when the object is renamed.
using Fid = fopd_fid;

struct Object {
    Fid fid{};
    std::uint64_t size_bytes = 0;
    std::uint64_t allocated_bytes = 0;
    std::uint64_t version = 0;
    std::uint64_t created_ns = 0;  // Since 1970.
    std::uint64_t changed_ns = 0;
    std::uint32_t mode = 0;
    std::string owner;
    std::string group;
    std::string name;
    std::string collection;  // Empty: that of the group.
};

struct NewObject {
    std::string name;
    std::string pool;   // Empty: the server's default pool.
    std::string group;  // Empty: the first group of the client's principal.
    std::uint32_t mode = 0640;
    bool no_replace = false;
    std::string collection;  // What is kept together on tape. Empty: what has the same group.
};

enum class Durability : int { kDurable = FOPD_DURABLE, kBuffered = FOPD_BUFFERED };

// A listing of the names that begin with `prefix`, page by page: pass the same object to the next
// call to continue.
struct Listing {
    struct Entry {
        Fid fid{};
        std::uint64_t size_bytes = 0;
        std::uint64_t changed_ns = 0;
        std::string name;
    };
    std::string pool;
    std::string prefix;
    std::vector<Entry> entries;  // From the last call.
    std::string cursor;
    bool end = false;
};

struct Space {
    std::uint64_t total_bytes = 0;
    std::uint64_t used_bytes = 0;
    std::uint64_t free_bytes = 0;
    std::uint64_t objects = 0;
};

// Changes of an object's attributes; members without a value stay unchanged.
struct Attributes {
    std::optional<std::string> owner;  // Only administrators may set it.
    std::optional<std::string> group;  // Empty: none.
    std::optional<std::uint32_t> mode;
};

// What an owner uses in a pool, and its limits.
struct QuotaUse {
    static constexpr std::uint64_t kNoLimit = FOPD_NO_LIMIT;

    std::string pool;
    std::optional<std::string> owner;  // None: the whole pool.
    std::uint64_t used_bytes = 0;
    std::uint64_t limit_bytes = kNoLimit;
    std::uint64_t used_objects = 0;
    std::uint64_t limit_objects = kNoLimit;
};

// Called once, on the library's thread. Must not block or throw.
using Done = std::function<void(const Outcome&)>;

// Each call has two functions: one that takes a Done, and one that waits.
class Client {
public:
    // Makes `client` begin to connect, or returns the reason why it cannot.
    static Outcome open(const Options& options, Client& client) {
        if (Outcome checked = check({{"server", options.server},
                                     {"key file", options.key_file},
                                     {"user", options.user},
                                     {"job", options.job},
                                     {"token", options.token},
                                     {"protect", options.protect}});
            !checked) {
            client.close();
            return checked;
        }
        fopd_options asked;
        fopd_options_init(&asked);
        asked.server = options.server.c_str();
        asked.key_file = options.key_file.empty() ? nullptr : options.key_file.c_str();
        asked.user = options.user.empty() ? nullptr : options.user.c_str();
        asked.job = options.job.empty() ? nullptr : options.job.c_str();
        asked.timeout_us = in_microseconds(options.timeout);
        asked.token = options.token.empty() ? nullptr : options.token.c_str();
        asked.protect = options.protect.empty() ? nullptr : options.protect.c_str();
        asked.explain = options.explain ? 1 : 0;
        fopd_client* made = nullptr;
        fopd_result why;
        fopd_open(&asked, &made, &why);
        client.handle_.reset(made);
        return outcome(why);
    }
    // Ends all calls in flight. Idempotent; the destructor calls it.
    void close() { handle_.reset(); }

    // For the functions of fopd.h. It belongs to this object; null unless it is open.
    fopd_client* handle() const { return handle_.get(); }

    // Where the time of all fops went so far. REQUIRES: open.
    fopd_times times() const {
        fopd_times times;
        fopd_get_times(handle_.get(), &times, sizeof(times));
        return times;
    }

    // Waits for a session. Fails when the server refuses it, or when an attempt to connect fails.
    Outcome connected(const Call& call = {}) const {
        return waited(call, [this](const fopd_call* asked, fopd_result* result) {
            fopd_connected_wait(handle_.get(), asked, result);
        });
    }
    void connected(const Call& call, Done done) const {
        begun(call, std::move(done), [this](const fopd_call* asked, fopd_done then, void* context) {
            fopd_connected(handle_.get(), asked, then, context);
        });
    }

    // Waits for an answer of the server.
    Outcome ping(const Call& call = {}) const {
        return waited(call, [this](const fopd_call* asked, fopd_result* result) {
            fopd_ping_wait(handle_.get(), asked, result);
        });
    }
    void ping(const Call& call, Done done) const {
        begun(call, std::move(done), [this](const fopd_call* asked, fopd_done then, void* context) {
            fopd_ping(handle_.get(), asked, then, context);
        });
    }

    // Sends `bytes` bytes to the server in the request, and receives them in the reply.
    Outcome echo(const void* data, void* into, std::size_t bytes, const Call& call = {}) const {
        return waited(call, [&](const fopd_call* asked, fopd_result* result) {
            fopd_echo_wait(handle_.get(), asked, data, into, bytes, result);
        });
    }
    void echo(const void* data, void* into, std::size_t bytes, const Call& call, Done done) const {
        begun(call, std::move(done), [&](const fopd_call* asked, fopd_done then, void* context) {
            fopd_echo(handle_.get(), asked, data, into, bytes, then, context);
        });
    }

    // The same for any size: the server reads and writes memory of the client.
    Outcome bulk_echo(const void* data, void* into, std::size_t bytes,
                      const Call& call = {}) const {
        return waited(call, [&](const fopd_call* asked, fopd_result* result) {
            fopd_bulk_echo_wait(handle_.get(), asked, data, into, bytes, result);
        });
    }
    void bulk_echo(const void* data, void* into, std::size_t bytes, const Call& call,
                   Done done) const {
        begun(call, std::move(done), [&](const fopd_call* asked, fopd_done then, void* context) {
            fopd_bulk_echo(handle_.get(), asked, data, into, bytes, then, context);
        });
    }

    // -- objects; see fopd.h. Arguments by pointer or span stay valid until the call has ended. --

    // Stores a whole object durably. `fid` may be null.
    Outcome put(const NewObject& object, const void* data, std::size_t bytes, Fid* fid,
                const Call& call = {}) const {
        return waited(call,
                      {{"name", object.name},
                       {"pool", object.pool},
                       {"group", object.group},
                       {"collection", object.collection}},
                      [&](const fopd_call* asked, fopd_result* result) {
                          fopd_put_wait(handle_.get(), asked, in_c(object).get(), data, bytes, fid,
                                        result);
                      });
    }
    void put(const NewObject& object, const void* data, std::size_t bytes, Fid* fid,
             const Call& call, Done done) const {
        begun(call,
              {{"name", object.name},
               {"pool", object.pool},
               {"group", object.group},
               {"collection", object.collection}},
              std::move(done), [&](const fopd_call* asked, fopd_done then, void* context) {
                  fopd_put(handle_.get(), asked, in_c(object).get(), data, bytes, fid, then,
                           context);
              });
    }
    // Reads an object from its start, up to the size of the memory.
    Outcome get(const std::string& pool, const std::string& name, void* into, std::size_t bytes,
                const Call& call = {}) const {
        return waited(call, {{"pool", pool}, {"name", name}},
                      [&](const fopd_call* asked, fopd_result* result) {
                          fopd_get_wait(handle_.get(), asked, or_null(pool), name.c_str(), into,
                                        bytes, nullptr, result);
                      });
    }
    void get(const std::string& pool, const std::string& name, void* into, std::size_t bytes,
             const Call& call, Done done) const {
        begun(call, {{"pool", pool}, {"name", name}}, std::move(done),
              [&](const fopd_call* asked, fopd_done then, void* context) {
                  fopd_get(handle_.get(), asked, or_null(pool), name.c_str(), into, bytes, nullptr,
                           then, context);
              });
    }
    Outcome lookup(const std::string& pool, const std::string& name, Object* object,
                   const Call& call = {}) const {
        RawObject raw(object);
        Outcome ended = waited(call, {{"pool", pool}, {"name", name}},
                               [&](const fopd_call* asked, fopd_result* result) {
                                   fopd_lookup_wait(handle_.get(), asked, or_null(pool),
                                                    name.c_str(), &raw.object, result);
                               });
        if (ended) raw.give(*object);
        return ended;
    }
    void lookup(const std::string& pool, const std::string& name, Object* object, const Call& call,
                Done done) const {
        auto raw_kept = std::make_shared<RawObject>(object);
        RawObject& raw = *raw_kept;
        Done then_give = [raw_kept, object, then = std::move(done)](const Outcome& ended) {
            if (ended) raw_kept->give(*object);
            then(ended);
        };
        begun(call, {{"pool", pool}, {"name", name}}, std::move(then_give),
              [&](const fopd_call* asked, fopd_done then, void* context) {
                  fopd_lookup(handle_.get(), asked, or_null(pool), name.c_str(), &raw.object, then,
                              context);
              });
    }
    Outcome stat(const Fid& fid, Object* object, const Call& call = {}) const {
        RawObject raw(object);
        Outcome ended = waited(call, [&](const fopd_call* asked, fopd_result* result) {
            fopd_stat_wait(handle_.get(), asked, &fid, &raw.object, result);
        });
        if (ended) raw.give(*object);
        return ended;
    }
    void stat(const Fid& fid, Object* object, const Call& call, Done done) const {
        auto raw_kept = std::make_shared<RawObject>(object);
        RawObject& raw = *raw_kept;
        Done then_give = [raw_kept, object, then = std::move(done)](const Outcome& ended) {
            if (ended) raw_kept->give(*object);
            then(ended);
        };
        begun(call, std::move(then_give),
              [&](const fopd_call* asked, fopd_done then, void* context) {
                  fopd_stat(handle_.get(), asked, &fid, &raw.object, then, context);
              });
    }
    Outcome read(const Fid& fid, std::uint64_t offset, void* into, std::size_t bytes,
                 const Call& call = {}) const {
        return waited(call, [&](const fopd_call* asked, fopd_result* result) {
            fopd_read_wait(handle_.get(), asked, &fid, offset, into, bytes, result);
        });
    }
    void read(const Fid& fid, std::uint64_t offset, void* into, std::size_t bytes, const Call& call,
              Done done) const {
        begun(call, std::move(done), [&](const fopd_call* asked, fopd_done then, void* context) {
            fopd_read(handle_.get(), asked, &fid, offset, into, bytes, then, context);
        });
    }
    Outcome write(const Fid& fid, std::uint64_t offset, const void* data, std::size_t bytes,
                  Durability durability, const Call& call = {}) const {
        return waited(call, [&](const fopd_call* asked, fopd_result* result) {
            fopd_write_wait(handle_.get(), asked, &fid, offset, data, bytes,
                            static_cast<int>(durability), result);
        });
    }
    void write(const Fid& fid, std::uint64_t offset, const void* data, std::size_t bytes,
               Durability durability, const Call& call, Done done) const {
        begun(call, std::move(done), [&](const fopd_call* asked, fopd_done then, void* context) {
            fopd_write(handle_.get(), asked, &fid, offset, data, bytes,
                       static_cast<int>(durability), then, context);
        });
    }
    // `offset` receives where the bytes were written; may be null.
    Outcome append(const Fid& fid, const void* data, std::size_t bytes, std::uint64_t* offset,
                   const Call& call = {}) const {
        return waited(call, [&](const fopd_call* asked, fopd_result* result) {
            fopd_append_wait(handle_.get(), asked, &fid, data, bytes, offset, result);
        });
    }
    void append(const Fid& fid, const void* data, std::size_t bytes, std::uint64_t* offset,
                const Call& call, Done done) const {
        begun(call, std::move(done), [&](const fopd_call* asked, fopd_done then, void* context) {
            fopd_append(handle_.get(), asked, &fid, data, bytes, offset, then, context);
        });
    }
    Outcome truncate(const Fid& fid, std::uint64_t size_bytes, const Call& call = {}) const {
        return waited(call, [&](const fopd_call* asked, fopd_result* result) {
            fopd_truncate_wait(handle_.get(), asked, &fid, size_bytes, result);
        });
    }
    void truncate(const Fid& fid, std::uint64_t size_bytes, const Call& call, Done done) const {
        begun(call, std::move(done), [&](const fopd_call* asked, fopd_done then, void* context) {
            fopd_truncate(handle_.get(), asked, &fid, size_bytes, then, context);
        });
    }
    Outcome punch(const Fid& fid, std::uint64_t offset, std::uint64_t bytes,
                  const Call& call = {}) const {
        return waited(call, [&](const fopd_call* asked, fopd_result* result) {
            fopd_punch_wait(handle_.get(), asked, &fid, offset, bytes, result);
        });
    }
    void punch(const Fid& fid, std::uint64_t offset, std::uint64_t bytes, const Call& call,
               Done done) const {
        begun(call, std::move(done), [&](const fopd_call* asked, fopd_done then, void* context) {
            fopd_punch(handle_.get(), asked, &fid, offset, bytes, then, context);
        });
    }
    Outcome set_attributes(const Fid& fid, const Attributes& attributes,
                           const Call& call = {}) const {
        const fopd_attributes raw = in_c(attributes);
        return waited(call,
                      {{"owner", text_of(attributes.owner)}, {"group", text_of(attributes.group)}},
                      [&](const fopd_call* asked, fopd_result* result) {
                          fopd_set_attributes_wait(handle_.get(), asked, &fid, &raw, result);
                      });
    }
    void set_attributes(const Fid& fid, const Attributes& attributes, const Call& call,
                        Done done) const {
        const fopd_attributes raw = in_c(attributes);
        begun(call, {{"owner", text_of(attributes.owner)}, {"group", text_of(attributes.group)}},
              std::move(done), [&](const fopd_call* asked, fopd_done then, void* context) {
                  fopd_set_attributes(handle_.get(), asked, &fid, &raw, then, context);
              });
    }
    Outcome rename(const std::string& pool, const std::string& name, const std::string& new_name,
                   bool no_replace, const Call& call = {}) const {
        return waited(call, {{"pool", pool}, {"name", name}, {"new name", new_name}},
                      [&](const fopd_call* asked, fopd_result* result) {
                          fopd_rename_wait(handle_.get(), asked, or_null(pool), name.c_str(),
                                           new_name.c_str(), no_replace ? 1 : 0, result);
                      });
    }
    void rename(const std::string& pool, const std::string& name, const std::string& new_name,
                bool no_replace, const Call& call, Done done) const {
        begun(call, {{"pool", pool}, {"name", name}, {"new name", new_name}}, std::move(done),
              [&](const fopd_call* asked, fopd_done then, void* context) {
                  fopd_rename(handle_.get(), asked, or_null(pool), name.c_str(), new_name.c_str(),
                              no_replace ? 1 : 0, then, context);
              });
    }
    Outcome remove(const std::string& pool, const std::string& name, const Call& call = {}) const {
        return waited(call, {{"pool", pool}, {"name", name}},
                      [&](const fopd_call* asked, fopd_result* result) {
                          fopd_remove_wait(handle_.get(), asked, or_null(pool), name.c_str(),
                                           result);
                      });
    }
    void remove(const std::string& pool, const std::string& name, const Call& call,
                Done done) const {
        begun(call, {{"pool", pool}, {"name", name}}, std::move(done),
              [&](const fopd_call* asked, fopd_done then, void* context) {
                  fopd_remove(handle_.get(), asked, or_null(pool), name.c_str(), then, context);
              });
    }
    // Makes all buffered writes durable. kLost: all but those that the words name, one object at a
    // time.
    Outcome sync(const Call& call = {}) const {
        return waited(call, [&](const fopd_call* asked, fopd_result* result) {
            fopd_sync_wait(handle_.get(), asked, result);
        });
    }
    void sync(const Call& call, Done done) const {
        begun(call, std::move(done), [&](const fopd_call* asked, fopd_done then, void* context) {
            fopd_sync(handle_.get(), asked, then, context);
        });
    }
    Outcome list(Listing* listing, const Call& call = {}) const {
        RawListing raw(listing);
        Outcome ended = waited(
            call,
            {{"pool", listing->pool}, {"prefix", listing->prefix}, {"cursor", listing->cursor}},
            [&](const fopd_call* asked, fopd_result* result) {
                fopd_list_wait(handle_.get(), asked, &raw.listing, result);
            });
        if (ended) raw.give(*listing);
        return ended;
    }
    void list(Listing* listing, const Call& call, Done done) const {
        auto raw_kept = std::make_shared<RawListing>(listing);
        RawListing& raw = *raw_kept;
        Done then_give = [raw_kept, listing, then = std::move(done)](const Outcome& ended) {
            if (ended) raw_kept->give(*listing);
            then(ended);
        };
        begun(call,
              {{"pool", listing->pool}, {"prefix", listing->prefix}, {"cursor", listing->cursor}},
              std::move(then_give), [&](const fopd_call* asked, fopd_done then, void* context) {
                  fopd_list(handle_.get(), asked, &raw.listing, then, context);
              });
    }
    // `pool` empty: all pools together.
    Outcome statfs(const std::string& pool, Space* space, const Call& call = {}) const {
        RawSpace raw(space);
        Outcome ended =
            waited(call, {{"pool", pool}}, [&](const fopd_call* asked, fopd_result* result) {
                fopd_statfs_wait(handle_.get(), asked, or_null(pool), &raw.space, result);
            });
        if (ended) raw.give(*space);
        return ended;
    }
    void statfs(const std::string& pool, Space* space, const Call& call, Done done) const {
        auto raw_kept = std::make_shared<RawSpace>(space);
        RawSpace& raw = *raw_kept;
        Done then_give = [raw_kept, space, then = std::move(done)](const Outcome& ended) {
            if (ended) raw_kept->give(*space);
            then(ended);
        };
        begun(call, {{"pool", pool}}, std::move(then_give),
              [&](const fopd_call* asked, fopd_done then, void* context) {
                  fopd_statfs(handle_.get(), asked, or_null(pool), &raw.space, then, context);
              });
    }
    // `pool` empty: all pools. Administrators get the use of all owners.
    Outcome quota(const std::string& pool, std::vector<QuotaUse>* uses,
                  const Call& call = {}) const {
        uses->clear();
        return waited(call, {{"pool", pool}}, [&](const fopd_call* asked, fopd_result* result) {
            fopd_quota_wait(handle_.get(), asked, or_null(pool), &add_quota, uses, result);
        });
    }
    void quota(const std::string& pool, std::vector<QuotaUse>* uses, const Call& call,
               Done done) const {
        struct Wanted {
            std::vector<QuotaUse>* uses;
            Done done;
        };
        uses->clear();
        if (const Outcome checked = check(call, {{"pool", pool}}); !checked) return done(checked);
        auto wanted = std::make_unique<Wanted>(Wanted{uses, std::move(done)});
        const fopd_call asked = in_c(call);
        fopd_quota(
            handle_.get(), &asked, or_null(pool),
            [](const fopd_quota_use* use, void* context) {
                add_quota(use, static_cast<Wanted*>(context)->uses);
            },
            [](const fopd_result* result, void* context) {
                const std::unique_ptr<Wanted> ended(static_cast<Wanted*>(context));
                ended->done(outcome(*result));
            },
            wanted.release());
    }

private:
    static void add_quota(const fopd_quota_use* use, void* context) {
        QuotaUse added;
        added.pool = use->pool;
        if (use->owner != nullptr) added.owner = use->owner;
        added.used_bytes = use->used_bytes;
        added.limit_bytes = use->limit_bytes;
        added.used_objects = use->used_objects;
        added.limit_objects = use->limit_objects;
        static_cast<std::vector<QuotaUse>*>(context)->push_back(std::move(added));
    }

    struct RawObject {
        explicit RawObject(const Object* /*to*/) { fopd_object_init(&object); }
        void give(Object& to) const {
            to = {object.fid,     object.size_bytes, object.allocated_bytes,
                  object.version, object.created_ns, object.changed_ns,
                  object.mode,    object.owner,      object.group,
                  object.name,    object.collection};
        }
        fopd_object object;
    };
    struct RawListing {
        explicit RawListing(const Listing* to) : pool(to->pool), prefix(to->prefix) {
            fopd_listing_init(&listing);
            listing.pool = or_null(pool);
            listing.prefix = prefix.c_str();
            listing.context = &entries;
            to->cursor.copy(listing.cursor, FOPD_NAME_MAX);
            listing.each = [](const fopd_entry* entry, void* context) {
                static_cast<std::vector<Listing::Entry>*>(context)->push_back(
                    {entry->fid, entry->size_bytes, entry->changed_ns, entry->name});
            };
        }
        RawListing(const RawListing&) = delete;
        RawListing& operator=(const RawListing&) = delete;
        void give(Listing& to) {
            to.entries = std::move(entries);
            to.cursor = listing.cursor;
            to.end = listing.end != 0;
        }
        const std::string pool;
        const std::string prefix;
        std::vector<Listing::Entry> entries;
        fopd_listing listing;
    };
    struct RawSpace {
        explicit RawSpace(const Space* /*to*/) { fopd_space_init(&space); }
        void give(Space& to) const {
            to = {space.total_bytes, space.used_bytes, space.free_bytes, space.objects};
        }
        fopd_space space;
    };
    // Must live as long as the C struct is used.
    class NewObjectInC {
    public:
        explicit NewObjectInC(const NewObject& from) {
            fopd_new_object_init(&object_);
            object_.name = from.name.c_str();
            object_.pool = or_null(from.pool);
            object_.group = or_null(from.group);
            object_.mode = from.mode;
            object_.no_replace = from.no_replace ? 1 : 0;
            object_.collection = or_null(from.collection);
        }
        const fopd_new_object* get() const { return &object_; }

    private:
        fopd_new_object object_;
    };

    // Borrows the texts.
    static fopd_attributes in_c(const Attributes& from) {
        fopd_attributes to;
        fopd_attributes_init(&to);
        to.owner = from.owner ? from.owner->c_str() : nullptr;
        to.group = from.group ? from.group->c_str() : nullptr;
        if (from.mode) to.mode = *from.mode;
        return to;
    }
    static const char* or_null(const std::string& text) {
        return text.empty() ? nullptr : text.c_str();
    }
    static NewObjectInC in_c(const NewObject& object) { return NewObjectInC(object); }

    struct Close {
        void operator()(fopd_client* client) const { fopd_close(client); }
    };

    static std::uint64_t in_microseconds(std::chrono::microseconds span) {
        if (span == kAsLongAsItTakes) return FOPD_TIMEOUT_NEVER;
        return span.count() > 0 ? static_cast<std::uint64_t>(span.count()) : FOPD_TIMEOUT_DEFAULT;
    }
    static Outcome outcome(const fopd_result& result) {
        return {static_cast<Status>(result.status), result.bytes, result.words};
    }
    static fopd_call in_c(const Call& call) {
        fopd_call asked;
        fopd_call_init(&asked);
        asked.timeout_us = in_microseconds(call.timeout);
        asked.job = call.job.empty() ? nullptr : call.job.c_str();
        return asked;
    }

    // Refuses text with a NUL: C would end it there, and the call would mean another name.
    struct Text {
        const char* what;
        std::string_view text;
    };
    using Texts = std::initializer_list<Text>;
    static std::string_view text_of(const std::optional<std::string>& text) {
        return text ? std::string_view(*text) : std::string_view();
    }
    static Outcome check(Texts texts) {
        for (const Text& each : texts) {
            if (each.text.find('\0') == std::string_view::npos) continue;
            return {Status::kInvalid, 0, std::string("the ") + each.what + " has a NUL in it"};
        }
        return {};
    }
    static Outcome check(const Call& call, Texts texts) {
        Outcome checked = check({{"job", call.job}});
        return checked ? check(texts) : checked;
    }
    template <typename Wait>
    static Outcome waited(const Call& call, Texts texts, Wait&& wait) {
        if (Outcome checked = check(call, texts); !checked) return checked;
        const fopd_call asked = in_c(call);
        fopd_result result;
        wait(&asked, &result);
        return outcome(result);
    }
    template <typename Wait>
    static Outcome waited(const Call& call, Wait&& wait) {
        return waited(call, {}, std::forward<Wait>(wait));
    }
    template <typename Begin>
    static void begun(const Call& call, Texts texts, Done done, Begin&& begin) {
        if (const Outcome checked = check(call, texts); !checked) return done(checked);
        const fopd_call asked = in_c(call);
        auto kept = std::make_unique<Done>(std::move(done));
        begin(
            &asked,
            [](const fopd_result* result, void* context) {
                const std::unique_ptr<Done> then(static_cast<Done*>(context));
                (*then)(outcome(*result));
            },
            kept.release());
    }
    template <typename Begin>
    static void begun(const Call& call, Done done, Begin&& begin) {
        begun(call, {}, std::move(done), std::forward<Begin>(begin));
    }

    std::unique_ptr<fopd_client, Close> handle_;
};

}  // namespace libfopd

// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "client/buffered_writes.h"
#include "client/object_call.h"
#include "client/slots.h"
#include "client/tape_calls.h"
#include "client/uploads.h"

namespace fopd::client {

struct ObjectInfo {
    fop::Fid fid{};
    std::uint64_t size_bytes = 0;
    std::uint64_t version = 0;
    std::uint64_t created_ns = 0;
    std::uint64_t changed_ns = 0;
    std::uint64_t allocated_bytes = 0;
    std::uint64_t incarnation = 0;  // The current incarnation of the object's slot.
    std::string owner{};
    std::string group{};
    std::string name{};
    std::uint16_t mode = 0;
    std::string collection{};  // Empty: the objects of its group form one.
};

struct ObjectPage {
    struct Entry {
        fop::Fid fid{};
        std::uint64_t size_bytes = 0;
        std::uint64_t changed_ns = 0;
        std::string name{};
    };
    std::vector<Entry> entries{};
    std::string cursor{};  // The beginning of the next page.
    bool end = false;
};

struct PoolSpace {
    std::string pool{};
    std::uint64_t total_bytes = 0;
    std::uint64_t used_bytes = 0;
    std::uint64_t free_bytes = 0;
    std::uint64_t objects = 0;
};

// How much space an owner uses in a pool, and the limits.
struct QuotaUse {
    static constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};

    std::string pool{};
    std::optional<std::string> owner{};  // None: all owners together.
    std::uint64_t used_bytes = 0;
    std::uint64_t limit_bytes = kNoLimit;
    std::uint64_t used_objects = 0;
    std::uint64_t limit_objects = kNoLimit;
};

// Space for objects: whole blocks, in bytes, and the number of objects.
struct WantedSpace {
    std::uint64_t bytes = 0;
    std::uint64_t objects = 0;
};

// The objects of one server.
//
// Long reads, writes and puts are cut into fops; several fops are in flight at a time. A put is
// atomic, and so is each fop, but a long write is not. The client computes the checksums when it
// writes, and compares them when it reads.
//
// Buffered writes are kept until they are durable. When a reply shows that the server has
// restarted, the writes that it has lost are written again: those of the reply's object before the
// reply is used, so that a read always finds what was written, and those of other objects of its
// slot afterwards. Changes of an object wait while its lost writes are written again. If two writes
// to the same bytes are in flight at once, either may win.
//
// A lost write is not written again if others may have changed its bytes since, or if the server
// refuses it permanently, for example because a right was revoked or a disk is full. This loss is
// reported once, as kLost with the object and the bytes: by the call that finds it, if that reads
// or looks up the object; otherwise by the next call about the object, before it does anything, or
// by the next sync. A sync that reports a loss has made everything else durable. It reports one
// object at a time: repeat it until it succeeds.
//
// Example: write A to object 1 is acknowledged as buffered; the server crashes; another client
// writes the same bytes. A read of object 1 now fails with kLost once, and the next read returns
// the other client's bytes.
//
// Writes that cannot be written again for now are tried again by the next calls. Until then sync,
// and calls that read the object or append to it, fail with the reason. The outcome of other calls
// does not depend on it; they may take ObjectClientOptions::patience longer.
//
// A call that needs bytes which are on tape only waits until the server has brought them back to a
// disk, and is then made again. It ends as kStaging at its deadline; the recall goes on.
//
// The caller keeps memory that a call borrows valid until the call has returned. A call ends by its
// deadline or its cancel source, or, without either, when the server answers. Lives on the reactor
// of its host.
class ObjectClient {
public:
    ObjectClient(fabric::SessionHost& host, ObjectClientOptions options);
    // REQUIRES: closed, and all calls have returned.
    ~ObjectClient() = default;
    ObjectClient(const ObjectClient&) = delete;
    ObjectClient& operator=(const ObjectClient&) = delete;

    void start() { slots_.start(); }
    // Ends every call. Awaited once.
    Task<void> close() { return slots_.close(); }

    using Wait = client::Wait;

    Task<Outcome<fop::Fid>> create(NewObject object, Wait wait);
    Task<Outcome<ObjectInfo>> lookup(std::string pool, std::string name, Wait wait);
    Task<Outcome<ObjectInfo>> stat(fop::Fid fid, Wait wait);
    struct ListWish {
        std::string pool{};
        std::string prefix{};
        std::string cursor{};
        std::uint16_t count_max = 0;
    };
    Task<Outcome<ObjectPage>> list(ListWish wish, Wait wait);
    Task<Outcome<std::vector<PoolSpace>>> statfs(Wait wait);
    // How many disks of each pool are missing. Pools without missing disks are left out.
    Task<Outcome<std::map<std::string, std::uint32_t>>> missing_disks(Wait wait);
    // Whether the disk of the object is missing. Asks the server once.
    Task<Outcome<bool>> is_on_missing_disk(fop::Fid fid, Wait wait);
    struct KnownPool {
        std::string name{};      // Empty: the default pool, which has no disk.
        bool is_staged = false;  // Its objects are on disks of another pool before they go to tape.
    };
    // Asks the server for a pool. An empty name is the default pool.
    Task<Outcome<KnownPool>> known_pool(std::string pool, Wait wait);
    // For one pool; empty: for all. An administrator gets the uses of all owners.
    Task<Outcome<std::vector<QuotaUse>>> quota(std::string pool, Wait wait);
    // Whether the caller may have so much more in the pool; an empty name is the default pool.
    // kQuota: no. False: the server is older, and has not compared it. A server that is not so old
    // may have compared the bytes only. REQUIRES: something is wanted.
    Task<Outcome<bool>> fits_quota(std::string pool, WantedSpace wanted, Wait wait);

    // Returns the number of bytes read, which is less than asked for only at the end of the object.
    // The rest of `into` may have been overwritten.
    Task<Outcome<std::uint64_t>> read(fop::Fid fid, std::uint64_t offset, std::span<std::byte> into,
                                      Wait wait);
    using WriteWish = client::WriteWish;
    Task<Outcome<void>> write(WriteWish wish, Wait wait) { return writes_.write(wish, wait); }
    // Appends at most fop::kTransferBytesMax atomically, and returns the offset.
    Task<Outcome<std::uint64_t>> append(fop::Fid fid, std::span<const std::byte> from, Wait wait);
    Task<Outcome<void>> truncate(fop::Fid fid, std::uint64_t size_bytes, Wait wait);
    Task<Outcome<void>> punch(fop::Fid fid, fop::Range range, Wait wait);
    struct AttributeWish {
        std::optional<std::string> owner{};
        std::optional<std::string> group{};
        std::optional<std::uint16_t> mode{};
    };
    Task<Outcome<void>> set_attributes(fop::Fid fid, AttributeWish wish, Wait wait);
    struct RenameWish {
        fop::Fid fid{};
        std::string pool{};
        std::string from{};  // The name that the object must have; empty: any.
        std::string name{};
        bool no_replace = false;
    };
    Task<Outcome<void>> rename(RenameWish wish, Wait wait);
    Task<Outcome<void>> remove(fop::Fid fid, std::string from, Wait wait);
    // Returns when every buffered write acknowledged before is durable. kLost: all but the lost
    // ones.
    Task<Outcome<void>> sync(Wait wait);

    // Makes acknowledged writes of all clients durable: in all slots, or in the slot of this
    // object. sync_object() gives kLost if the slot has begun a new incarnation since `found`.
    Task<Outcome<void>> sync_node(Wait wait);
    Task<Outcome<void>> sync_object(ObjectInfo found, Wait wait);

    // Stores a whole object that is in memory; larger ones go through uploads().
    Task<Outcome<fop::Fid>> put(NewObject object, std::span<const std::byte> from, Wait wait) {
        return uploads_.put(std::move(object), from, wait);
    }
    Uploads& uploads() { return uploads_; }
    TapeCalls& tape() { return tape_; }

    // The first session, with any locality of the server. REQUIRES: started.
    fabric::Client& home() { return slots_.home(); }
    // The bytes of buffered writes that are kept until they are durable, at most
    // ObjectClientOptions::held_bytes_max.
    std::uint64_t held_bytes() { return writes_.held().bytes(); }
    std::size_t session_count() const { return slots_.session_count(); }

private:
    Task<Outcome<fop::Fid>> create_at(std::uint16_t slot, const NewObject* object, Wait wait);

    const ObjectClientOptions options_;
    Slots slots_;
    BufferedWrites writes_;
    Uploads uploads_;
    TapeCalls tape_;
};

}  // namespace fopd::client

// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "client/held_writes.h"
#include "client/lost_writes.h"
#include "core/wait_queue.h"
#include "fabric/rpc/client.h"
#include "fop/listing.h"

namespace fopd::client {

// Why something was not done.
struct Problem {
    fop::Status status = fop::Status::kInternal;
    bool answered = false;  // A server said so; else none did.
    std::string words{};    // For people.
    // It may have been done before that, on a disk that is missing now: asked for once more, it may
    // be done twice.
    bool may_be_done = false;
    // Of kLost: what was written buffered before, and is lost. The call itself has done nothing,
    // unless it was a sync.
    std::optional<LostWrite> lost{};
};
template <typename T>
using Outcome = std::expected<T, Problem>;

struct ObjectClientOptions {
    fabric::Address server{};
    fop::Credentials credentials{};
    std::vector<std::byte> token{};  // Goes with each fop; empty: none.
    std::string job{};
    // How many fops of one read, write or put are under way at a time, and how long each is.
    std::uint32_t window = 8;
    std::uint64_t fop_bytes = 1U << 20;  // A multiple of fop::kBlockBytes.
    // What is kept of buffered writes; what would pass it waits until the server has made earlier
    // ones durable.
    std::uint64_t held_bytes_max = 64U << 20;
    // How long a server is asked again that says "try again".
    Duration patience{10s};
};

struct NewObject {
    std::string name{};   // May be empty.
    std::string pool{};   // Empty: the server's default.
    std::string group{};  // Empty: the first one of the principal.
    std::uint16_t mode = 0640;
    bool no_replace = false;
};

struct ObjectInfo {
    fop::Fid fid{};
    std::uint64_t size_bytes = 0;
    std::uint64_t version = 0;
    std::uint64_t created_ns = 0;
    std::uint64_t changed_ns = 0;
    std::uint64_t allocated_bytes = 0;
    std::uint64_t incarnation = 0;  // Of its slot.
    std::string owner{};
    std::string group{};
    std::string name{};
    std::uint16_t mode = 0;
};

struct ObjectPage {
    struct Entry {
        fop::Fid fid{};
        std::uint64_t size_bytes = 0;
        std::uint64_t changed_ns = 0;
        std::string name{};
    };
    std::vector<Entry> entries{};
    std::string cursor{};  // To go on from.
    bool end = false;
};

struct PoolSpace {
    std::string pool{};
    std::uint64_t total_bytes = 0;
    std::uint64_t used_bytes = 0;
    std::uint64_t free_bytes = 0;
    std::uint64_t objects = 0;
};

// What somebody has in a pool, and may have.
struct QuotaUse {
    static constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};

    std::string pool{};
    std::optional<std::string> owner{};  // None: the pool in all.
    std::uint64_t used_bytes = 0;
    std::uint64_t limit_bytes = kNoLimit;
    std::uint64_t used_objects = 0;
    std::uint64_t limit_objects = kNoLimit;
};

// The objects of one server. It has a session with each of its localities that it needs, and asks
// the one to which an object's slot belongs. Sessions that are lost are made again, and what was
// under way is sent again; what must not be done twice is remembered by the server.
//
// Long reads, writes and puts are cut into fops, several of which are under way at a time: a put
// and a fop are atomic, a long write is not. Checksums are computed here when writing, and compared
// here when reading.
//
// Buffered writes are kept until they are durable. When the server shows that it has started anew,
// those it has lost are written again before the answer that showed it is used, so that reading
// always finds what was written. Changes wait meanwhile. Of two writes to the same bytes that are
// under way at once, either may win.
//
// A lost write is not written again if others may have changed its bytes since, or if the client
// may no longer write there. This loss is reported once, as kLost with the object and the bytes: by
// the call that finds it, if that reads or looks up the object; else by the next call about the
// object, before it does anything, or by the next sync. A sync that reports a loss has made
// everything else durable. It reports one object at a time: repeat it until it succeeds.
//
// Memory and names a call borrows stay until it has returned. A call ends by its deadline or its
// cancel source, or, without either, when the server answers. Lives on the reactor of its host.
class ObjectClient {
public:
    ObjectClient(fabric::SessionHost& host, ObjectClientOptions options);
    // Requires: closed, and all calls have returned.
    ~ObjectClient();
    ObjectClient(const ObjectClient&) = delete;
    ObjectClient& operator=(const ObjectClient&) = delete;

    void start();
    // Every call ends. Awaited once.
    Task<void> close();

    // How long a call may last, who may end it early, and by which job the server's rules know it.
    struct Wait {
        Instant deadline = kNever;
        core::CancelSource* cancel = nullptr;
        std::string_view job{};  // Empty: as the options say. Borrowed until the call has returned.

        // NOLINTNEXTLINE(google-explicit-constructor): for every wait within the call.
        operator core::WaitOptions() const { return {.deadline = deadline, .cancel = cancel}; }
    };

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
    // Of one pool; of all when it is empty. An administrator is told of everybody.
    Task<Outcome<std::vector<QuotaUse>>> quota(std::string pool, Wait wait);

    // How many bytes there were before the end of the object. What of `into` is behind them may
    // have changed.
    Task<Outcome<std::uint64_t>> read(fop::Fid fid, std::uint64_t offset, std::span<std::byte> into,
                                      Wait wait);
    struct WriteWish {
        fop::Fid fid{};
        std::uint64_t offset = 0;
        std::span<const std::byte> from{};
        fop::Durability durability = fop::Durability::kDurable;
    };
    Task<Outcome<void>> write(WriteWish wish, Wait wait);
    // At most fop::kTransferBytesMax, which are written in one piece. Returns where.
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
        std::string from{};  // Which name it must have; empty: any.
        std::string name{};
        bool no_replace = false;
    };
    Task<Outcome<void>> rename(RenameWish wish, Wait wait);
    Task<Outcome<void>> remove(fop::Fid fid, std::string from, Wait wait);
    // Returns when every buffered write that was acknowledged before is durable. kLost: all but the
    // lost ones are.
    Task<Outcome<void>> sync(Wait wait);

    // What anybody wrote and had acknowledged before is durable: everywhere, or in the slot of this
    // object. The latter is kLost when the slot has begun a new incarnation since `found`.
    Task<Outcome<void>> sync_node(Wait wait);
    Task<Outcome<void>> sync_object(ObjectInfo found, Wait wait);

    // A whole object, seen by nobody before all of it is durable.
    Task<Outcome<fop::Fid>> put(NewObject object, std::span<const std::byte> from, Wait wait);

    // The same for one that is not in memory at once. What is written is acknowledged as buffered:
    // whoever cannot send it again asks whether it is kept before forgetting it.
    //
    // The size is 0 as long as it is not known.
    Task<Outcome<fop::Fid>> begin_upload(NewObject object, std::uint64_t size_bytes, Wait wait);
    struct UploadPart {
        fop::Fid fid{};
        std::uint64_t offset = 0;           // Where a block begins.
        std::span<const std::byte> from{};  // Whole blocks, but for the object's last one.
    };
    // The receipt stands for all of the part: its incarnation is the oldest one, its number the
    // last.
    Task<Outcome<fop::Receipt>> write_upload(UploadPart part, Wait wait);
    // Makes it durable. False: it is lost, or some of it may be.
    Task<Outcome<bool>> keep_upload(fop::Receipt receipt, Wait wait);
    struct Committed {
        bool done = false;  // Else parts are missing, of other incarnations than this one.
        std::uint64_t incarnation = 0;
    };
    // Requires: an end is an end of the parts that were written.
    Task<Outcome<Committed>> commit_upload(fop::Fid fid, std::uint64_t size_bytes, Wait wait);
    // The server gives up what nobody commits, too, but later.
    Task<void> abort_upload(fop::Fid fid);

    // The session that the others follow. Requires: started.
    fabric::Client& home() { return *sessions_.front(); }
    const fabric::Client& home() const { return *sessions_.front(); }
    std::uint64_t held_bytes() const { return held_.bytes(); }
    std::size_t session_count() const { return sessions_.size(); }

private:
    struct Train;
    struct Slot {
        std::uint16_t locality = 0;
        fop::SlotState state = fop::SlotState::kOnline;
        bool in_default_pool = false;
        std::string pool{};

        bool is_of(const std::string& wanted) const {
            return wanted.empty() ? in_default_pool : pool == wanted;
        }
    };

    // Asking.
    fabric::CallRequest request(fop::RequestBody body, Wait wait) const;
    Task<Outcome<fabric::Answer>> ask(fabric::Client* session, fabric::CallRequest request);
    Task<Outcome<fabric::Answer>> ask_home(fabric::CallRequest request);
    Task<Outcome<fabric::Answer>> ask_slot(std::uint16_t slot, fabric::CallRequest request);
    Problem no_answer(const fabric::Client& session, const Error& error) const;

    // Sessions and slots.
    fabric::Client& connect(std::optional<std::uint16_t> locality);
    Task<Outcome<fabric::Client*>> session_of(std::uint16_t slot, Wait wait);
    Task<Outcome<void>> load_slots(Wait wait);
    Task<Outcome<void>> ask_for_slots(Wait wait);
    // For a new object: disks come and go.
    Task<Outcome<void>> look_for_places(Wait wait);
    bool knows_slots() const;
    std::vector<std::uint16_t> places_for(const std::string& pool);
    Problem no_place(const std::string& pool) const;

    // Pieces of what is long.
    Task<Outcome<void>> run(Train* train);
    Task<void> run_pieces(Train* train);
    Task<Outcome<void>> read_piece(Train* train, std::size_t index);
    Task<Outcome<void>> write_piece(Train* train, std::size_t index);
    Task<Outcome<void>> upload_piece(Train* train, std::size_t index);

    // Changes, and what the server may have lost.
    Task<Outcome<void>> begin_change(fop::Fid fid, Wait wait);
    void end_change();
    Task<Outcome<fabric::Answer>> change(fop::Fid fid, fabric::CallRequest request);
    Task<Outcome<void>> catch_up(std::uint16_t slot, std::uint64_t incarnation, Wait wait);
    Task<Outcome<void>> make_durable(Wait wait);
    // Tells what is lost of an object, once.
    Outcome<void> tell_lost(fop::Fid fid);
    Outcome<void> tell_all_lost();
    void give_up_slot(std::uint16_t slot, std::uint64_t incarnation);
    Task<Outcome<std::vector<fop::Receipt>>> ask_sync(std::vector<fop::Receipt> receipts,
                                                      Wait wait);
    Task<Outcome<void>> write_again(std::vector<fop::Receipt> kept, Wait wait);
    Task<Outcome<void>> write_pieces_again(std::vector<fop::Receipt> kept, Wait wait);

    struct Beginning {
        std::uint16_t slot = 0;
        const NewObject* object = nullptr;
        std::uint64_t size_bytes = 0;
    };
    Task<Outcome<fop::Fid>> begin_at(Beginning beginning, Wait wait);

    // Again with a newer table of disks, when those that are known answer that theirs has gone.
    template <typename Attempt>
    Task<Outcome<fop::Fid>> try_places(const Attempt* attempt);
    // On one of the disks that are known, whose table may be older than what they answer.
    Task<Outcome<fop::Fid>> create_somewhere(const NewObject* object, Wait wait);
    Task<Outcome<fop::Fid>> put_somewhere(const NewObject* object, std::span<const std::byte> from,
                                          Wait wait);
    Task<Outcome<fop::Fid>> begin_somewhere(const NewObject* object, std::uint64_t size_bytes,
                                            Wait wait);
    Task<Outcome<void>> upload(Train* train, std::uint16_t slot, const NewObject* object);

    fabric::SessionHost& host_;
    const ObjectClientOptions options_;
    std::vector<std::unique_ptr<fabric::Client>> sessions_;  // The first: of any locality.
    std::map<std::uint16_t, fabric::Client*> by_locality_;
    std::map<std::uint16_t, Slot> slots_;
    std::optional<std::uint64_t> slots_of_;  // Of which life of the server.
    Instant places_good_until_{};
    bool places_are_old_ = false;  // One of them refused what the table had promised.
    std::uint64_t turn_;           // Whose turn it is to take a new object.
    bool loading_ = false;
    bool closing_ = false;

    HeldWrites held_;
    LostWrites lost_;
    std::uint32_t changes_ = 0;  // Under way.
    bool writing_again_ = false;
    core::WaitQueue changed_;
};

}  // namespace fopd::client

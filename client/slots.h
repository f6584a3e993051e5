// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "client/object_call.h"
#include "core/wait_queue.h"
#include "fop/listing.h"

namespace fopd::client {

// The table of a server's slots, i.e. its disks, and the sessions with the localities that serve
// them. A fop about an object goes to the locality of the object's slot. Lost sessions are made
// again, and the fops in flight are sent again; the server remembers fops that must not run twice.
//
// Lives on the reactor of its host.
class Slots {
public:
    Slots(fabric::SessionHost& host, const ObjectClientOptions& options);
    // REQUIRES: close() has returned, if start() was called, and all other calls have returned.
    ~Slots() = default;
    Slots(const Slots&) = delete;
    Slots& operator=(const Slots&) = delete;

    void start();
    // Closes all sessions. Calls in flight and later calls fail with kCancelled. REQUIRES: called
    // once.
    Task<void> close();

    core::Reactor& reactor() const { return host_.reactor(); }
    const ObjectClientOptions& options() const { return options_; }
    // The first session, with any locality of the server. REQUIRES: started.
    fabric::Client& home() const { return *sessions_.front(); }
    std::size_t session_count() const { return sessions_.size(); }

    fabric::CallRequest request(fop::RequestBody body, Wait wait) const;
    // Makes the call, and repeats it in three cases, never beyond the deadline of the request:
    // - The server answers "try again": for at most options().patience, then returns this answer.
    //   An idempotent call is repeated likewise after the answer "outcome unknown".
    // - The server answers "staging": the object's bytes are on tape. The call is repeated when the
    //   recall of the object has ended, and fails if the recall fails or the deadline passes.
    // - The server answers "staging full" to a call about an object: until the deadline, then
    //   returns this answer.
    // An answer with any other status is returned at once.
    Task<Outcome<fabric::Answer>> call(fabric::Client* session, fabric::CallRequest request);
    // Makes the call over the session of a slot, and repeats it like call(). The server takes
    // `data` from the message if it fits, or else from memory that is opened to the server. `data`
    // is ignored unless the request body has a field `source`.
    Task<Outcome<fabric::Answer>> call_slot(std::uint16_t slot, fabric::CallRequest request,
                                            std::span<const std::byte> data = {});
    // ask_home() and ask_slot() call like call() and call_slot(), and return an answer with another
    // status than "done" as a problem.
    Task<Outcome<fabric::Answer>> ask_home(fabric::CallRequest request);
    Task<Outcome<fabric::Answer>> ask_slot(std::uint16_t slot, fabric::CallRequest request,
                                           std::span<const std::byte> data = {});

    // The state of calls that wait for a recall from tape. After report_recalls() was called, each
    // waiting call asks the server for it every few seconds; otherwise only some times before its
    // deadline.
    struct TapeWait {
        std::uint32_t calls = 0;  // How many calls wait.
        // How many recalls are expected to end before the recall that the server reported last.
        // None: unknown.
        std::optional<std::uint64_t> place{};
        // When the recall that the server reported last is expected to end. None: unknown.
        std::optional<Instant> expected_at{};
        // Why the server serves no recall, as it reported last. Empty: it serves them.
        std::string reason{};
    };
    const TapeWait& tape_wait() const { return tape_wait_; }
    void report_recalls() { reports_recalls_ = true; }

    // Loads the table unless it is from this life of the server.
    Task<Outcome<void>> load(Wait wait);
    Task<Outcome<fabric::Client*>> session_of(std::uint16_t slot, Wait wait);
    // REQUIRES: loaded. 0 for a slot that is not in the table.
    std::uint16_t locality_of(std::uint16_t slot) const;

    // Returns `pool`, or the name of the default pool if `pool` is empty. Returns an empty name if
    // no disk is in the default pool. REQUIRES: load() has succeeded.
    std::string name_of(const std::string& pool) const {
        return pool.empty() ? default_pool_ : pool;
    }
    // REQUIRES: loaded. Whether the pool's objects are on disks of another pool.
    bool is_staged(const std::string& pool) const;
    // REQUIRES: loaded. How many disks of each pool are missing. Pools without missing disks are
    // not included.
    std::map<std::string, std::uint32_t> missing_disks() const;
    // REQUIRES: loaded. Whether the slot's disk is missing, or the server does not know the slot.
    bool is_missing(std::uint16_t slot) const;

    // Makes a new object: tries the pool's slots in turn while they have no space or accept no
    // objects, then again with a newer table if a disk has been removed meanwhile, and until the
    // deadline while room is being made for objects of a tape pool.
    using Attempt = std::function<Task<Outcome<fop::Fid>>(std::uint16_t slot)>;
    Task<Outcome<fop::Fid>> make_object(std::string pool, const Attempt* attempt, Wait wait);

private:
    // A row of the table: the disk of one slot.
    struct Row {
        std::uint16_t locality = 0;
        fop::ListedSlotState state = fop::ListedSlotState::kOnline;
        bool in_default_pool = false;      // One of its pools is the default pool.
        std::vector<std::string> pools{};  // The pools of its objects; its own is the last.

        bool is_of(const std::string& wanted) const {
            if (wanted.empty()) return in_default_pool;
            return std::ranges::find(pools, wanted) != pools.end();
        }
    };

    Task<Outcome<void>> wait_for_recall(fabric::Client* session, fabric::CallRequest about);
    // How long the server should wait for a recall before it reports on it. 0: to the deadline.
    std::uint64_t recall_patience_ms(Instant deadline, bool is_first) const;
    // `why` is set to the reason why no recall is served, if the server reports that.
    Task<Outcome<bool>> wait_once(fabric::Client* session, fabric::CallRequest asked,
                                  std::string* why);
    void note_progress(const fop::RecallWaitReply& reply, std::string reason);
    Problem no_answer(const fabric::Client& session, const Error& error) const;
    fabric::Client& connect(std::optional<std::uint16_t> locality);
    bool is_current() const;
    Task<Outcome<void>> load_again(Wait wait);
    Task<Outcome<void>> load_for_new_object(Wait wait);
    Task<Outcome<fop::Fid>> try_slots(std::string pool, const Attempt* attempt, Wait wait);
    std::vector<std::uint16_t> slots_for(const std::string& pool);
    Problem no_slot(const std::string& pool) const;

    fabric::SessionHost& host_;
    const ObjectClientOptions& options_;
    std::vector<std::unique_ptr<fabric::Client>> sessions_;
    std::map<std::uint16_t, fabric::Client*> by_locality_;
    std::map<std::uint16_t, Row> rows_;  // By slot.
    std::string default_pool_;
    std::optional<std::uint64_t> incarnation_;  // The incarnation of the server, as the table says.
    Instant fresh_until_{};     // Until then the table is recent enough for new objects.
    bool is_outdated_ = false;  // An answer of a slot contradicts the table.
    std::uint64_t turn_;        // Selects the slot of the next new object.
    bool loading_ = false;
    bool closing_ = false;
    TapeWait tape_wait_;
    bool reports_recalls_ = false;
    core::WaitQueue loaded_;
};

}  // namespace fopd::client

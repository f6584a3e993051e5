#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "core/intrusive_list.h"
#include "core/time.h"
#include "fabric/rpc/kept_reply.h"
#include "fop/fop_type.h"
#include "fop/hello.h"
#include "fop/message.h"
#include "fop/principal.h"

namespace fopd::fabric {

class ClientRecord;

// The interface through which a client's record uses the client's session.
class ClientLine {
public:
    virtual std::uint64_t id() const = 0;  // Unique: no other session has it.
    virtual void reply(const fop::Reply& reply, fop::Lane lane) = 0;
    // The client has opened a new session, which takes the place of this one.
    virtual void replaced() = 0;

protected:
    ~ClientLine() = default;
};

// A remembered fop while it runs, for its client's record.
class RememberedRun {
public:
    // Nobody can ask for the reply any more: cancels the fop, which may be answered within this
    // call.
    virtual void abandon() = 0;

protected:
    ~RememberedRun() = default;
};

// A fop that must not run twice and may have started, and whose reply the store does not record.
struct RememberedFop {
    ClientRecord* client = nullptr;
    RememberedRun* run = nullptr;       // Null: it does not run any more, or was abandoned.
    std::uint64_t line = 0;             // The session that gets the reply, if it still exists.
    fop::Lane lane = fop::Lane::kData;  // The lane of the credit that it used.
    std::optional<KeptReply> reply;     // Set when the fop has run.
};

// The replies of one session that wait until it can send them.
class UnsentReplies : public core::ListNode {
public:
    // Another session of the principal got their memory. They are not sent, and the session ends.
    virtual void on_lost() = 0;

    std::uint64_t bytes = 0;  // Their memory, as ClientRecords counts it.

protected:
    ~UnsentReplies() = default;
};

// The resources of a locality that one principal uses: sessions, clients that may reconnect, the
// replies kept for them, requests in memory, and replies that wait to be sent.
struct PrincipalShare {
    std::string name;            // fop::share_name().
    std::uint32_t sessions = 0;  // Includes ended sessions that still hold memory.
    std::uint32_t clients = 0;
    std::uint64_t reply_bytes = 0;  // Includes the memory for numbers of recorded replies.
    std::uint64_t request_bytes = 0;
    std::uint64_t unsent_bytes = 0;
    // Sessions with replies that wait; the one that has sent none of them for longest is the first.
    core::IntrusiveList<UnsentReplies> unsent;
    std::uint32_t idle_count = 0;
    std::uint64_t idle_bytes = 0;            // The part of reply_bytes that is kept for these.
    core::IntrusiveList<ClientRecord> idle;  // Idle clients, the longest idle first.
    // The sessions that it has opened count as opened at a steady pace until then.
    Instant opens_until = Instant::min();
};

// The place of a client in the lists of clients that have no session, but fops that run.
struct AbsentClient final : core::ListNode {
    explicit AbsentClient(ClientRecord& owner) : client(owner) {}
    ClientRecord& client;
};

// One client of one principal. Exists while the client has a session, or may reconnect for the
// replies to its requests.
class ClientRecord final : public core::ListNode {
public:
    ClientRecord(const fop::ClientId& id, const fop::Identity& identity, PrincipalShare& share)
        : id_(id), identity_(identity), share_(share) {}

    const fop::ClientId& id() const { return id_; }
    fop::AuthKind kind() const { return identity_.kind; }
    const std::string& principal() const { return identity_.name; }
    PrincipalShare& share() { return share_; }
    const std::map<std::uint64_t, RememberedFop>& fops() const { return fops_; }
    // For each of the client's request places (see fop::kRequestPlaces), the id of the newest
    // started fop whose reply the store records, and which the client has not acknowledged.
    std::span<const std::uint64_t> recorded() const { return recorded_; }
    // Null while the client has no session.
    ClientLine* line() const { return line_; }
    Instant idle_since() const { return idle_since_; }

private:
    friend class ClientRecords;

    const fop::ClientId id_;
    fop::Identity identity_;  // Of its newest session.
    PrincipalShare& share_;
    std::map<std::uint64_t, RememberedFop> fops_;
    std::vector<std::uint64_t> recorded_;  // In the order of their places.
    std::uint64_t recorded_bytes_ = 0;     // The part of recorded_ that counts in the share.
    std::uint64_t bytes_ = 0;              // All that counts in the share's reply_bytes.
    // The client has the replies to all requests before this one.
    std::uint64_t acknowledged_before_ = 0;
    std::uint32_t running_ = 0;  // The number of entries in fops_ without a reply.
    ClientLine* line_ = nullptr;
    Instant idle_since_ = kNever;
    AbsentClient absent_{*this};
    std::uint64_t abandoned_before_ = 0;  // The fops before this one were abandoned, if they ran.
};

// The records of clients that a server keeps beyond their sessions. Each principal may use a
// limited share, so that a principal that takes its whole share leaves room for principals that
// come later. When that has used up a memory, a principal that holds none of it may still have one
// request, reply or remembered fop, until a half more is in use. If a principal needs more memory
// for replies than it may have, idle clients are forgotten: those of the principal that keeps most
// for its idle clients if it holds more than this one, else its own. When there are too many idle
// clients, the principal with the most of them loses one.
class ClientRecords {
public:
    struct Limits {
        std::uint32_t sessions_max = 0;
        // A principal may open `opens_max` sessions at once, and one more in each interval. Without
        // an interval it may open any number.
        std::uint32_t opens_max = 0;
        Duration open_interval{};
        std::uint32_t idle_max = 0;
        Duration idle_time{};
        std::uint64_t reply_bytes_max = 0;
        std::uint64_t request_bytes_max = 0;
        std::uint64_t unsent_bytes_max = 0;
    };

    explicit ClientRecords(const Limits& limits) : limits_(limits) {}

    struct TakenSession {
        PrincipalShare* share = nullptr;  // Null: the principal may not open a session now.
        std::string_view refusal{};       // The reason, if `share` is null. A static text.
    };
    // Counts a new session for the client's principal, until give_back(). Refuses it if the
    // principal has its share of sessions, none is left, or it opens them too fast.
    TakenSession take_session(const fop::Identity& identity, Instant now);
    void give_back(PrincipalShare& share);

    ClientRecord* find(const fop::ClientId& id, const fop::Identity& identity);
    // A session of the client begins. It replaces the client's earlier session, if there is one.
    ClientRecord& enter(const fop::ClientId& id, const fop::Identity& identity,
                        PrincipalShare& share, ClientLine& line);
    // The client's session ends. May destroy `client`.
    void leave(ClientRecord& client, const ClientLine& line, Instant now);

    // Called when a fop that must be remembered has arrived. `is_new`: it has arrived for the first
    // time. `fop` is null if too many are remembered already for this client, or too much memory is
    // used for its principal.
    struct Found {
        RememberedFop* fop = nullptr;
        bool is_new = false;
    };
    Found remember(ClientRecord& client, std::uint64_t request);
    // Called when the fop has run: the session that sent the request last gets the reply. May
    // destroy the record of the fop's client.
    void answered(RememberedFop& fop, const fop::Reply& reply, Instant now);
    // The fop will not run and has changed nothing: a resend of it counts as a new fop. May destroy
    // the record of the fop's client.
    void forget(RememberedFop& fop, std::uint64_t request, Instant now);
    // A fop whose reply the store records has arrived. False when too much is remembered for its
    // principal already.
    [[nodiscard]] bool may_record(ClientRecord& client, std::uint64_t request);
    // The fop has started.
    void note_recorded(ClientRecord& client, std::uint64_t request);
    // The client has the replies to all requests before this one, or wants them no more: those that
    // run are forgotten when they are answered.
    void acknowledged(ClientRecord& client, std::uint64_t before);

    // Counts the memory of a reply that waits until its session can send it; give_back_unsent()
    // ends that. If too many replies of the principal wait already, the sessions that have sent
    // none for longest lose theirs; if the principal has none, and no memory is left even for the
    // first one, those of the principal that has most. False when this session is the first of
    // these. REQUIRES: the principal has a session.
    [[nodiscard]] bool take_unsent(PrincipalShare& share, UnsentReplies& session,
                                   std::uint64_t bytes);
    // A reply of the session that took so much memory was sent.
    void give_back_unsent(PrincipalShare& share, UnsentReplies& session, std::uint64_t bytes);
    // None of the session's replies wait any longer.
    void give_back_all_unsent(PrincipalShare& share, UnsentReplies& session);
    // Whether the principal may have one more request in memory.
    bool may_take_request(const PrincipalShare& share) const;
    // Whether a request may count more: as if it was taken now, with all its bytes.
    struct Growth {
        std::uint64_t bytes_before = 0;
        std::uint64_t more_bytes = 0;
    };
    bool may_grow_request(const PrincipalShare& share, const Growth& growth) const;
    // Counts a request until give_back_request(); until then the share exists.
    void take_request(PrincipalShare& share, std::uint64_t bytes);
    void give_back_request(PrincipalShare& share, std::uint64_t bytes);

    // Abandons the fops of clients without a session for which `may_return(identity)` is false.
    template <typename MayReturn>
    void abandon(MayReturn may_return) {
        absent_.for_each([this, &may_return](AbsentClient& each) {
            if (may_return(each.client.identity_)) return;
            each.unlink();
            lost_.push_back(each);
        });
        while (!lost_.empty()) abandon_next(lost_.front().client);
    }
    // Abandons the fops of clients that have had no session for at least `idle_time`, and forgets
    // clients that have been idle for that time: no more than take a moment.
    // True if there may be others; the next call goes on with them.
    [[nodiscard]] bool forget_old(Instant now);
    std::size_t size() const { return clients_.size(); }
    // The bytes that count against Limits::reply_bytes_max.
    std::uint64_t reply_bytes() const { return reply_bytes_; }
    // The bytes that count against Limits::request_bytes_max.
    std::uint64_t request_bytes() const { return request_bytes_; }
    // The bytes that count against Limits::unsent_bytes_max.
    std::uint64_t unsent_bytes() const { return unsent_bytes_; }
    // How many fops were looked at for acknowledgements. It bounds their cost, which nothing else
    // shows.
    std::uint64_t looked_at() const { return looked_at_; }
    template <typename Visit>
    void for_each(Visit visit) const {
        for (const auto& [key, client] : clients_) visit(*client);
    }

private:
    using Key = std::tuple<fop::ClientId, std::string, std::string>;  // Share, principal.

    static Key key_of(const fop::ClientId& id, const fop::Identity& identity) {
        return {id, fop::share_name(identity), identity.name};
    }
    bool may_remember_more(const PrincipalShare& share) const;
    bool make_room(PrincipalShare& share);
    PrincipalShare* who_gives_room(PrincipalShare& to);
    PrincipalShare& who_gives_unsent(PrincipalShare& to);
    void set_unsent(PrincipalShare& share, std::uint64_t bytes);
    bool may_take_unsent(const PrincipalShare& share) const;
    // What counts for the client was `before` bytes, and is `now` bytes.
    void recount(ClientRecord& client, std::uint64_t before, std::uint64_t now);
    void count_recorded(ClientRecord& client);
    void set_idle(ClientRecord& client, bool is_idle);
    void end_running(ClientRecord& client, Instant now);
    void erase_fop(ClientRecord& client, std::map<std::uint64_t, RememberedFop>::iterator fop);
    void forget(ClientRecord& client);
    void abandon_next(ClientRecord& client);
    void release_if_empty(PrincipalShare& share);
    // Empty: the principal may open a session now.
    std::string_view refusal_of_session(const PrincipalShare& share, Instant now) const;

    const Limits limits_;
    std::string sweep_from_;  // The name of the share that forget_old() goes on with.
    std::map<std::string, PrincipalShare> shares_;
    std::map<Key, std::unique_ptr<ClientRecord>> clients_;
    // The principals of which a member is above 0; the one with the most last. REQUIRES: a
    // principal is taken out before its member changes.
    template <auto kMember>
    struct HasLess {
        bool operator()(const PrincipalShare* one, const PrincipalShare* other) const {
            return std::tie(one->*kMember, one->name) < std::tie(other->*kMember, other->name);
        }
    };
    template <auto kMember>
    using SharesBy = std::set<PrincipalShare*, HasLess<kMember>>;
    SharesBy<&PrincipalShare::idle_count> by_idle_;
    SharesBy<&PrincipalShare::idle_bytes> by_idle_bytes_;
    SharesBy<&PrincipalShare::unsent_bytes> by_unsent_;
    // Clients without a session that have fops that run, the longest absent first.
    core::IntrusiveList<AbsentClient> absent_;
    core::IntrusiveList<AbsentClient> lost_;  // The ones whose fops are abandoned now.
    std::uint32_t sessions_ = 0;
    std::uint32_t idle_count_ = 0;
    std::uint64_t reply_bytes_ = 0;
    std::uint64_t request_bytes_ = 0;
    std::uint64_t unsent_bytes_ = 0;
    std::uint64_t looked_at_ = 0;
};

}  // namespace fopd::fabric

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

// The session of a client, as its record knows it.
class ClientLine {
public:
    virtual std::uint64_t id() const = 0;  // Never that of another one.
    virtual void reply(const fop::Reply& reply, fop::Lane lane) = 0;
    // Its client has another one now.
    virtual void replaced() = 0;

protected:
    ~ClientLine() = default;
};

// A fop that must not run twice, may have started, and that the store does not remember.
struct RememberedFop {
    ClientRecord* client = nullptr;
    std::uint64_t line = 0;             // The session that gets the reply, if it still exists.
    fop::Lane lane = fop::Lane::kData;  // The lane of the credit that it used.
    std::optional<KeptReply> reply;     // Once it has run.
};

// What a principal has of a locality: sessions, clients that may come back, replies kept for them.
struct PrincipalShare {
    std::string name;            // fop::share_name().
    std::uint32_t sessions = 0;  // Also ended ones that still hold memory.
    std::uint32_t clients = 0;
    std::uint64_t reply_bytes = 0;
    std::uint32_t idle_count = 0;
    core::IntrusiveList<ClientRecord> idle;  // The longest first.
};

// One client of one principal, as long as it has a session or may come back for what it asked.
class ClientRecord final : public core::ListNode {
public:
    ClientRecord(const fop::ClientId& id, std::string principal, PrincipalShare& share)
        : id_(id), principal_(std::move(principal)), share_(share) {}

    const fop::ClientId& id() const { return id_; }
    const std::string& principal() const { return principal_; }
    PrincipalShare& share() { return share_; }
    const std::map<std::uint64_t, RememberedFop>& fops() const { return fops_; }
    // Of the fops that the store remembers, the newest in each place of this client's; 0: none.
    std::span<const std::uint64_t> recorded() const { return recorded_; }
    void note_recorded(std::uint64_t request) {
        const std::size_t place = request % fop::kRequestPlaces;
        if (place >= recorded_.size()) recorded_.resize(place + 1);
        recorded_[place] = request;
    }
    // The client has the replies to all requests before this one.
    std::uint64_t acknowledged_before() const { return acknowledged_before_; }
    // Null while it has no session.
    ClientLine* line() const { return line_; }
    Instant idle_since() const { return idle_since_; }

private:
    friend class ClientRecords;

    const fop::ClientId id_;
    const std::string principal_;
    PrincipalShare& share_;
    std::map<std::uint64_t, RememberedFop> fops_;
    std::vector<std::uint64_t> recorded_;
    std::uint64_t acknowledged_before_ = 0;
    std::uint32_t running_ = 0;  // Of them, those without a reply.
    ClientLine* line_ = nullptr;
    Instant idle_since_ = kNever;
};

// What a server knows of its clients beyond their sessions, and the share of it that each principal
// may have: one that takes all it can get leaves something for those who come later, and its own
// clients are forgotten first.
class ClientRecords {
public:
    struct Limits {
        std::uint32_t sessions_max = 0;
        std::uint32_t idle_max = 0;
        Duration idle_time{};
        std::uint64_t reply_bytes_max = 0;
    };

    explicit ClientRecords(const Limits& limits) : limits_(limits) {}

    // Counts a new session for the client's principal, until give_back(). Null when the principal
    // has its share of sessions, or none is left: why_no_session() says which.
    PrincipalShare* take_session(const fop::Identity& identity);
    std::string_view why_no_session() const;
    void give_back(PrincipalShare& share);

    ClientRecord* find(const fop::ClientId& id, const fop::Identity& identity);
    // A session of it begins, and takes the place of the one before.
    ClientRecord& enter(const fop::ClientId& id, const fop::Identity& identity,
                        PrincipalShare& share, ClientLine& line);
    // It ends. The record may be gone then.
    void leave(ClientRecord& client, const ClientLine& line, Instant now);

    // A fop to be remembered has arrived. `is_new`: it arrived for the first time. `fop` is null
    // when too much is remembered for this client or its principal already.
    struct Found {
        RememberedFop* fop = nullptr;
        bool is_new = false;
    };
    Found remember(ClientRecord& client, std::uint64_t request);
    // It has run: the session that asked last gets the reply. The client may be gone then.
    void answered(RememberedFop& fop, const fop::Reply& reply, Instant now);
    // It will not run, and has done nothing: it may come again as if it had never been there.
    void forget(RememberedFop& fop, std::uint64_t request, Instant now);
    // The client has the replies to all before this one.
    void acknowledged(ClientRecord& client, std::uint64_t before);

    // Forgets who has been idle for too long.
    void forget_old(Instant now);
    std::size_t size() const { return clients_.size(); }
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
    void set_idle(ClientRecord& client, bool is_idle);
    void end_running(ClientRecord& client, Instant now);
    void erase_fop(ClientRecord& client, std::map<std::uint64_t, RememberedFop>::iterator fop);
    void forget(ClientRecord& client);
    void release_if_empty(PrincipalShare& share);

    const Limits limits_;
    std::map<std::string, PrincipalShare> shares_;
    std::map<Key, std::unique_ptr<ClientRecord>> clients_;
    // Those with idle clients, who has most of them last.
    std::set<std::pair<std::uint32_t, std::string>> by_idle_;
    std::uint32_t sessions_ = 0;
    std::uint32_t idle_count_ = 0;
    std::uint64_t reply_bytes_ = 0;
};

}  // namespace fopd::fabric

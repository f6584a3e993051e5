#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string_view>

#include "core/intrusive_list.h"
#include "fabric/rpc/client_records.h"
#include "fabric/rpc/server.h"
#include "fabric/rpc/server_incoming.h"

namespace fopd::fabric {

// A client's session and its fops. Exists until the session has ended and all its fops are
// finished.
class Server::Peer final : public SessionUser, public core::ListNode, ClientLine {
public:
    Peer(Server& server, HandshakePlaces::Host& from) : host(&from), server_(server) {}

    Verdict on_proved(Session& session) override;
    void on_open(Session& session) override;
    bool on_requests(Session& session, const fop::RequestsView& requests) override;
    bool on_replies(Session&, const fop::RepliesView&) override { return false; }
    void on_cancelled(Session& session, std::span<const std::uint64_t> requests) override;
    void on_let_go(Session&, std::uint64_t) override {}
    void on_acknowledged(Session& session, std::uint64_t before) override;
    void on_bye(Session& session, std::string_view words) override;
    void on_turn_end(Session& session) override;
    void on_end(Session& session, const Error& error, std::string_view words) override;
    void on_gone(Session& session) override;

    // Sends the reply at the end of this turn, or keeps a copy if there is no room. The message
    // returns the fop's credit, so a client that receives no replies runs out of credits.
    void reply(const fop::Reply& reply, fop::Lane lane) override;
    void leave(Incoming& incoming);
    // The fop has started: from now on the store may have a record of its reply.
    void note_started(const Incoming& incoming);
    // The fop has changed nothing: a resend of it counts as a new fop.
    void forget(Incoming& incoming);
    void join(Incoming& incoming);

    Session* session = nullptr;   // Null: the session has ended.
    HandshakePlaces::Host* host;  // The peer's host; null after the handshake.
    Caller caller;
    ClientRecord* record = nullptr;
    // Fops that have not been answered.
    std::uint32_t running_count() const { return running_count_; }

private:
    std::uint64_t id() const override { return caller.session; }
    void replaced() override { session->end(Errc::kClosed, "its client has connected again"); }
    bool take(Session& session, const fop::RequestHeader& header, const fop::Request& request);
    // A kind of memory that is used up, so that a request is put off.
    struct Lack {
        std::string_view words;                   // The reason that the client gets.
        core::Counter ServerStatistics::* count;  // Counts the requests put off for this reason.
    };
    static const Lack kLacksRequests;
    static const Lack kLacksWaiting;
    static const Lack kLacksReplies;
    const Lack* lacks(Session& session, const fop::RequestHeader& header,
                      const fop::Request& request, fop::Lane lane) const;
    bool put(Session& session, const fop::Reply& reply, fop::Lane lane);
    void give_up(Incoming& incoming);
    // A session may have thousands: `visit` is called once for each, and counted.
    template <typename Visit>
    void for_each_running(Visit visit) {
        running_.for_each([this, &visit](Incoming& each) {
            ++server_.visited_;
            visit(each);
        });
    }
    void put_off(const fop::Request& request, fop::Lane lane, const Lack& lack);

    struct Waiting {
        // The approximate memory of a waiting reply besides the bytes of the reply.
        static constexpr std::uint64_t kObjectBytes = 512;
        std::uint64_t bytes() const { return kObjectBytes + reply.size_bytes(); }

        KeptReply reply;
        fop::Lane lane;
    };
    static_assert(sizeof(Waiting) <= Waiting::kObjectBytes);

    class Unsent final : public UnsentReplies {
    public:
        explicit Unsent(Peer& owner) : peer_(owner) {}

    private:
        void on_lost() override { peer_.lose_replies(); }
        Peer& peer_;
    };
    // From now on no reply is sent. The session ends at the end of the turn, because a fop may be
    // in use here. Its client gets the replies over another session.
    void lose_replies();

    Server& server_;
    PrincipalShare* share_ = nullptr;        // Set when the session counts in it.
    core::IntrusiveList<Incoming> running_;  // Visited with for_each_running() only.
    std::uint32_t running_count_ = 0;
    bool gone_ = false;
    // Replies for which there was no room. Limited by the fop credits and loans of the session, and
    // by the share of its principal, in which they count as unsent_.
    std::deque<Waiting> backlog_;
    Unsent unsent_{*this};
    bool has_lost_reply_ = false;  // A waiting reply was given up: the session ends.
};

}  // namespace fopd::fabric

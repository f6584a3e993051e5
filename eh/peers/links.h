#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/cancel.h"
#include "core/events.h"
#include "core/gate.h"
#include "core/reactor.h"
#include "core/timer_heap.h"
#include "core/wait_queue.h"
#include "eh/peers/handler.h"
#include "fabric/rpc/client.h"
#include "fabric/session/session_host.h"
#include "fop/key.h"

namespace fopd::eh::peers {

struct LinkOptions {
    fabric::HostOptions host{};
    std::string name{};  // This node's name and address, as other members know them.
    std::string address{};
    // The keys that the daemons of the cluster share, the current one first. While the key is being
    // changed, other daemons may not have it yet. Not empty.
    std::vector<fop::Key> keys{};
    Duration idle_max{60s};     // A link without messages is closed after this time.
    Duration message_life{1s};  // A message that could not be sent in this time is dropped.
    // The longest pause between two attempts to connect, or after a refusal.
    Duration back_off_max{2s};
    // If no message on a connection is answered for this time, a new connection is made.
    Duration answer_max{2s};

    // Derives message_life, back_off_max and answer_max from the times for which members wait.
    void follow(const MemberOptions& member);
};

// The connections of a node to the other members, one for each, made when there is a message for
// it. Lives on one reactor.
class Links final : public MessageSender, core::Timer {
public:
    Links(core::Reactor& reactor, core::EventSink& events, core::Entropy& entropy,
          LinkOptions options);
    // REQUIRES: closed, except at the end of a simulated world.
    ~Links();
    Links(const Links&) = delete;
    Links& operator=(const Links&) = delete;

    Result<void> open(fabric::Transport& transport) { return host_.open(transport); }
    // Stops sending, and releases everything. Called once.
    Task<void> close();
    // New connections use these keys, the first one first. REQUIRES: `keys` is not empty.
    void use_keys(std::vector<fop::Key> keys);

    void send(const Peer& to, const Message& message) override;
    std::uint64_t requests_taken() const override { return requests_taken_; }
    std::string problem_with(const std::string& name) const override;
    // A message from this peer has arrived: links that have failed to connect to it try again at
    // once, but not more often than once in a message_life.
    void heard(const std::string& name);
    std::size_t count() const { return links_.size(); }

private:
    class Link;
    static constexpr std::size_t kKinds = std::variant_size_v<Body>;
    // Limits the memory for links. Twice the members, because a member whose address has changed
    // has two links for a while.
    static constexpr std::size_t kLinksMax = 2 * kRosterMax;
    // Of one name. A peer may say any number of addresses.
    static constexpr std::size_t kAddressesMax = 4;

    static void on_time(core::Timer& timer);
    void close_idle();
    void make_room(const std::string& name);
    void end(std::unique_ptr<Link> link);
    Task<void> close_ending(Link* link);

    core::Reactor& reactor_;
    core::EventSink& events_;
    LinkOptions options_;
    fabric::SessionHost host_;
    // By the peer's name and address.
    std::map<std::pair<std::string, std::string>, std::unique_ptr<Link>> links_;
    std::list<std::unique_ptr<Link>> ending_;
    core::Gate work_;
    std::uint64_t requests_taken_ = 0;
    std::uint64_t sent_ = 0;  // Messages that were given to links.
    bool closing_ = false;
};

}  // namespace fopd::eh::peers

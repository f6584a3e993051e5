#pragma once

#include <atomic>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/entropy.h"
#include "core/events.h"
#include "core/metrics.h"
#include "core/reactor.h"
#include "core/task.h"
#include "daemon/access.h"
#include "daemon/epoch_stores.h"
#include "eh/fold.h"
#include "eh/local.h"
#include "eh/peers/handler.h"
#include "eh/peers/links.h"
#include "eh/settings.h"
#include "fabric/rpc/incoming.h"

namespace fopd::daemon {

// The epochs of a node, in which its localities take part as one: of its own, or in step with other
// nodes. Made on the control thread; then lives on the reactor of the node's first locality.
// Outlives the localities.
class NodeEpochs final : eh::peers::MessageSender {
public:
    struct Parts {
        core::Reactor& reactor;
        core::EventSink& events;
        core::Entropy& entropy;
        eh::EpochSettings settings{};
        eh::OwnNode self{};
        // Not null if the settings have kind peers. Of kind local, null: numbers begin with 1.
        EpochStores* stores = nullptr;
        eh::peers::EpochObserver* observer = nullptr;
    };
    explicit NodeEpochs(const Parts& parts);

    eh::LocalityFold& fold() { return fold_; }
    bool has_peers() const { return peers_ != nullptr; }

    // -- with peers; otherwise these do nothing --

    // Prepares the connections to other nodes.
    Result<void> open(fabric::Transport& transport, const fabric::HostOptions& host,
                      const Access& access);
    // The node serves: it may join.
    void begin();
    void use_keys(const Access& access);
    // Waits until the node takes part in no epochs, after its localities have left.
    Task<void> leave(Instant deadline);
    // Releases everything. Localities that still take part get no more epochs.
    Task<void> close();
    // Takes an epoch message, and replies to it.
    void on_message(fabric::IncomingFop& fop);

    // For an administrator; of kind local, only the epoch and the node itself.
    eh::peers::EpochStatus status() const;
    // See PeersHandler::waive_majority().
    std::expected<Duration, std::string> waive_majority();

    // -- from any thread --
    // The last time that this node wanted an epoch of its peers, it got none.
    bool lacks_epochs() const {
        return peers_ != nullptr && peers_->handler.figures().failing.get() != 0;
    }
    struct MemberCount {
        std::uint64_t present = 0;   // By the view of this node; 0 while it is no member.
        std::uint64_t expected = 0;  // Those in eh.members, or without these eh.expect.
    };
    MemberCount member_count() const;
    // After close(): a file did not answer, so its call must not be destroyed.
    bool hangs() const { return hangs_.load(); }
    void collect(core::MetricSink& sink) const;

private:
    struct Peers {
        Peers(const Parts& parts, MessageSender& sender);
        eh::peers::PeersHandler handler;
        std::optional<eh::peers::Links> links{};  // Empty until open().
    };

    void send(const eh::peers::Peer& to, const eh::peers::Message& message) override;
    std::uint64_t requests_taken() const override;
    std::string problem_with(const std::string& name) const override;
    // The member that has sent a message, and says that it can be reached at `address`; empty if it
    // may not take part.
    std::optional<eh::peers::Peer> sender(std::string_view name, std::string_view address) const;
    eh::EpochHandler& handler();

    const Parts parts_;
    std::atomic<bool> hangs_{false};
    eh::LocalEpochHandler local_;
    const eh::peers::EpochFigures none_;  // Returned for eh.kind local: all 0.
    std::unique_ptr<Peers> peers_;        // Null: eh.kind is local.
    eh::LocalityFold fold_;
};

}  // namespace fopd::daemon

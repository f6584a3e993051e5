#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/buffer_pool.h"
#include "core/clock.h"
#include "core/entropy.h"
#include "core/events.h"
#include "core/gate.h"
#include "core/random.h"
#include "core/reactor.h"
#include "daemon/access.h"
#include "daemon/node_epochs.h"
#include "daemon/peer_fops.h"
#include "eh/fold.h"
#include "fabric/rpc/server.h"
#include "fabric/session/session_host.h"
#include "fabric/transport.h"
#include "io_sched/main_scheduler.h"
#include "library/tape_library.h"
#include "lrs/policies.h"
#include "lrs/scheduler.h"
#include "objects/coalescer.h"
#include "objects/replaced_objects.h"
#include "objects/scrub.h"
#include "objects/store_check.h"
#include "objects/store_upkeep.h"
#include "objects/stores.h"
#include "reqh/request_handler.h"

namespace fopd::objects {
class NameParts;
}

namespace fopd::daemon {

// How long after losing its session a client may take to reconnect and fetch its replies.
inline constexpr Duration kBackWithin = 10s;

class Listener;
class NodeDisk;

// The settings of a locality that a reload may change while it runs.
struct LiveSettings {
    reqh::RequestHandlerLimits limits;
    lrs::PolicyChoice policy{};
    lrs::PolicyShare share{};  // Shared state of the policy, if it has one for the whole node.
    io_sched::IoSchedSettings io{};
    AccessPtr access;
};

struct LocalityOptions {
    std::uint64_t buffers_bytes = 0;
    fabric::HostOptions host;
    fabric::ServerOptions server;
    objects::UpkeepOptions upkeep{};
    std::uint64_t scrub_bytes_per_second = 1;
    objects::CoalescerOptions coalescer{};
    // Empty: the node has no tape library.
    std::optional<library::LibraryOptions> library{};
    LiveSettings live;
};

// The parts that all localities of a node share. They outlive the localities.
struct LocalityWorld {
    core::EventSink& events;
    core::Entropy& entropy;
    const core::Clock& clock;
    // Null: the node has no network.
    fabric::Transport* transport = nullptr;
    // Already open. Null: the node has no disks.
    objects::NameParts* names = nullptr;
    // Where the tape library is opened; null: the node has none.
    library::LibraryBay* library_bay = nullptr;
    devices::NodeId node{};
    // Null: the node has no network.
    NodeEpochs* epochs = nullptr;
};

// One core's share of the node: a reactor and everything that only this reactor uses — buffers,
// sessions, the request scheduler, the request handler. The node makes and destroys it; everything
// in between happens on its reactor.
class Locality {
public:
    Locality(std::uint32_t index, core::Reactor& reactor)
        : index_(index), reactor_(reactor), buffers_(reactor) {}

    std::uint32_t index() const { return index_; }
    core::Reactor& reactor() { return reactor_; }
    const core::Reactor& reactor() const { return reactor_; }
    core::BufferPool& buffers() { return buffers_; }
    const core::BufferPool& buffers() const { return buffers_; }

    // All work on behalf of clients enters this gate. A drain closes the gate.
    core::Gate& work() { return work_; }
    // The locality's work for the node itself, not for clients.
    core::Gate& duties() { return duties_; }

    // Allocates its memory, and its share of the network. The error's context says what failed.
    Result<void> open(const LocalityOptions& options, const LocalityWorld& world);
    void apply(const LiveSettings& live);
    // The listener is stopped when this locality closes.
    void own(Listener& listener) { listener_ = &listener; }
    // Registers a disk whose volume lives on this locality. Before open(), or on the locality's
    // reactor.
    void own(NodeDisk& disk);
    // REQUIRES: the disk is closed, or was given up.
    void disown(NodeDisk& disk) { std::erase(disks_, &disk); }
    // Null unless this is the first locality of a node with a network. After open().
    NodeEpochs* epochs() { return epochs_; }
    const NodeEpochs* epochs() const { return epochs_; }
    // REQUIRES: opened with a transport.
    fabric::Server& server() { return *fabric_->server; }

    // Lets fops find the node's objects: those on this locality's disks directly, others through
    // their home localities. Called when all present disks have been opened. REQUIRES: the node has
    // disks.
    struct Beginning {
        std::vector<objects::Stores*> all;  // One per locality.
        objects::StoreLayoutPtr layout;
        // The next three are empty or null if the node has no tape library.
        std::vector<library::HomeDoors::Door> tape_doors{};  // One per locality.
        library::LibraryDoor library{};
        library::LibraryBell* library_bell = nullptr;
    };
    void serve_objects(const Beginning& beginning);
    // Begins to serve an open disk that was added to the running node. REQUIRES: this locality is
    // its home.
    void serve_disk(NodeDisk& disk);
    // Called after a disk was added to the running node. REQUIRES: the node has disks.
    void look_at_replaced_again() { store_->replaced.look_again(); }
    void set_layout(objects::StoreLayoutPtr layout) {
        store_->stores.set_layout(std::move(layout));
    }
    // Null without disks. From any thread after open().
    objects::Stores* stores() { return store_ == nullptr ? nullptr : &store_->stores; }
    // Null if this locality does not have the node's tape library. From any thread after open().
    library::TapeLibrary* library() { return library_.get(); }
    // Null without a tape library. From any thread after open().
    library::StagingDisks* staging() { return store_ == nullptr ? nullptr : store_->staging(); }

    // Accepts no new work, answers queued fops with "try again", and waits until no fop runs, at
    // most until `deadline`. Returns the number still running.
    Task<std::uint64_t> drain(Instant deadline);
    // Ends the tape library, if this locality has it; tape files that are complete are made
    // durable. REQUIRES: the stores of all localities still serve.
    Task<std::uint64_t> close_library(Instant deadline);
    // Cuts off the remaining fops and ends the sessions. Returns the number cut off.
    Task<std::uint64_t> close();
    // Destroys the remaining sessions and fops in whatever state they are. REQUIRES: closed, or no
    // coroutine runs.
    void drop_fops();
    // Stops the work on objects other than fops, and releases the buffers. REQUIRES: all localities
    // have closed.
    Task<std::uint64_t> close_store();

    // -- on the locality's reactor --
    std::vector<fabric::SessionInfo> sessions();
    reqh::FopList fops(std::size_t queued_max) const;
    reqh::FopList slow_fops() const;
    std::optional<reqh::FopRecord> trace(reqh::FopId id) const;
    // Empty without a network. The figures exist until drop_fops(); any thread may read them.
    std::vector<reqh::FopLoad::Row> load() const;
    // Replies that clients may not have received: clients with a session now, or within the last
    // kBackWithin.
    std::vector<store::ReplyKey> unheard_replies() const;
    // The classes of waiting and served requests; empty without a network.
    std::vector<lrs::ClassFigures> class_figures();
    // Changes of the classes since the last call.
    std::vector<lrs::ClassNews> take_class_news();
    // Null without disks.
    objects::Scrub* scrub() { return store_ == nullptr ? nullptr : &store_->scrub; }
    objects::StoreCheck* store_check() { return store_ == nullptr ? nullptr : &store_->check; }
    // REQUIRES: opened.
    io_sched::MainScheduler& io() { return *io_; }
    // Updates the figures that other threads read.
    void publish();
    // No session, fop, buffer or credit is held for any client.
    bool at_rest() const;

    // -- from any thread; null without a network, and before open() --
    const fabric::HostStatistics* host_statistics() const;
    const fabric::ServerStatistics* server_statistics() const;
    const lrs::Scheduler* requests() const;
    const reqh::RequestHandler* handler() const;
    // REQUIRES: Node::opened().
    const io_sched::MainScheduler& io() const { return *io_; }

private:
    struct Fabric {
        Fabric(Locality& locality, const LocalityOptions& options, const LocalityWorld& world);
        // Switches to another policy or to other settings of the same one.
        void use(const lrs::PolicyChoice& choice, const lrs::PolicyShare& share);

        AccessTokens tokens;
        lrs::PolicyChoice policy;  // The current policy.
        lrs::PolicyShare shared;   // The state that its instances on all localities share.
        core::Random policy_seeds;
        // The last news of former policies, rules and classes.
        std::vector<lrs::ClassNews> last_news;
        eh::LocalityFold::End epochs;
        lrs::Scheduler requests;
        reqh::RequestHandler handler;
        PeerFops peer_fops;
        fabric::SessionHost host;
        std::optional<fabric::Server> server;
    };

    struct Store {
        Store(Locality& locality, const LocalityOptions& options, const LocalityWorld& world);
        library::StagingDisks* staging() { return staged ? &*staged : nullptr; }

        objects::Stores stores;
        objects::ReplacedObjects replaced;
        objects::StoreUpkeep upkeep;
        objects::Scrub scrub;
        objects::StoreCheck check;
        objects::Coalescer coalescer;
        std::optional<library::StagingDisks> staged;  // Empty without a tape library.
    };

    void introduce(NodeDisk& disk);
    const Fabric* shown() const { return shown_.load(std::memory_order_acquire); }

    const std::uint32_t index_;
    core::Reactor& reactor_;
    core::BufferPool buffers_;
    core::Gate work_;
    core::Gate duties_;
    std::unique_ptr<io_sched::MainScheduler> io_;
    std::unique_ptr<Store> store_;  // Null without disks.
    // How this locality reaches the tape library and the staging disks of all localities. Set by
    // serve_objects().
    library::LibraryDoor library_door_;
    std::unique_ptr<library::TapeLibrary> library_;  // On one locality of a node that has one.
    std::unique_ptr<Fabric> fabric_;
    std::atomic<const Fabric*> shown_ = nullptr;  // fabric_, for other threads.
    Listener* listener_ = nullptr;
    NodeEpochs* epochs_ = nullptr;  // On the first locality of a node with a network.
    objects::NameParts* names_ = nullptr;
    std::vector<NodeDisk*> disks_;
};

}  // namespace fopd::daemon

#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
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
#include "eh/local.h"
#include "fabric/rpc/server.h"
#include "fabric/session/session_host.h"
#include "fabric/transport.h"
#include "io_sched/main_scheduler.h"
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

// A client that has lost its session and wants its replies connects again within this.
inline constexpr Duration kBackWithin = 10s;

class Listener;
class NodeDisk;

// What a reload may change of a locality while it runs.
struct LiveSettings {
    reqh::RequestHandlerLimits limits;
    lrs::PolicyChoice policy{};
    lrs::PolicyShare share{};  // Of the policy, where it is the node's.
    AccessPtr access;
};

struct LocalityOptions {
    std::uint64_t buffers_bytes = 0;
    fabric::HostOptions host;
    fabric::ServerOptions server;
    io_sched::IoSchedSettings io{};
    objects::UpkeepOptions upkeep{};
    std::uint64_t scrub_bytes_per_second = 1;
    objects::CoalescerOptions coalescer{};
    LiveSettings live;
};

// What all localities of a node share. All members outlive the localities.
struct LocalityWorld {
    core::EventSink& events;
    core::Entropy& entropy;
    const core::Clock& clock;
    // Null: the node has no network.
    fabric::Transport* transport = nullptr;
    // Open. Null: the node has no disks.
    objects::NameParts* names = nullptr;
};

// One core's share of the node: a reactor and what belongs to it alone — buffers, sessions, the
// request scheduler, the request handler. The node makes and destroys it; everything in between
// happens on its reactor.
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
    // What the locality does for the node.
    core::Gate& duties() { return duties_; }

    // Takes its memory, and its share of the network. What failed is the error's context.
    Result<void> open(const LocalityOptions& options, const LocalityWorld& world);
    void apply(const LiveSettings& live);
    // Stops it when this locality closes.
    void own(Listener& listener) { listener_ = &listener; }
    // Has its volume on this locality, which knows it from now on: before open(), or on the
    // locality's reactor.
    void own(NodeDisk& disk);
    // Requires: it is closed, or was given up.
    void disown(NodeDisk& disk) { std::erase(disks_, &disk); }
    // Requires: opened with a transport.
    fabric::Server& server() { return *fabric_->server; }

    // Lets fops find the objects of the node: those of this locality's disks, and through the
    // others those of theirs. When all disks that there are have been opened. Requires: the node
    // has disks.
    struct Beginning {
        std::vector<objects::Stores*> all;  // Of each locality.
        objects::StoreLayoutPtr layout;
    };
    void serve_objects(const Beginning& beginning);
    // Serves a disk that was added later and is open: does what its home locality has to do.
    void serve_disk(NodeDisk& disk);
    // Called after a disk was added to the running node. Requires: the node has disks.
    void look_at_replaced_again() { store_->replaced.look_again(); }
    void set_layout(objects::StoreLayoutPtr layout) {
        store_->stores.set_layout(std::move(layout));
    }
    // Null without disks. From any thread after open().
    objects::Stores* stores() { return store_ == nullptr ? nullptr : &store_->stores; }

    // Lets no new work in, answers what waits with "try again", and waits until none runs any more,
    // at most until `deadline`. Returns how much still does.
    Task<std::uint64_t> drain(Instant deadline);
    // Cuts off what is left, ends the sessions and gives the buffers back; how much was cut off.
    Task<std::uint64_t> close();
    // What is left of sessions and fops goes, as it is. Requires: closed, or without coroutines.
    void drop_fops();
    // Ends what is done for objects besides fops. Requires: all localities have closed.
    Task<std::uint64_t> close_store();

    // -- on its reactor --
    std::vector<fabric::SessionInfo> sessions();
    std::vector<reqh::FopRecord> running() const;
    std::optional<reqh::FopRecord> trace(reqh::FopId id) const;
    // Of clients that are here, or were until kBackWithin ago: replies that they may not have.
    std::vector<store::ReplyKey> unheard_replies() const;
    // Of the requests that wait or did; none without a network.
    std::vector<lrs::ClassFigures> class_figures();
    // What is new of them since the last call.
    std::vector<lrs::ClassNews> take_class_news();
    // Null without disks.
    objects::Scrub* scrub() { return store_ == nullptr ? nullptr : &store_->scrub; }
    objects::StoreCheck* store_check() { return store_ == nullptr ? nullptr : &store_->check; }
    // Requires: opened.
    io_sched::MainScheduler& io() { return *io_; }
    // Brings the figures up to date that others read.
    void publish();
    // Nothing is held for any client: no session, fop, buffer or credit.
    bool at_rest() const;

    // -- from any thread; null without a network, and before it is open --
    const fabric::HostStatistics* host_statistics() const;
    const lrs::Scheduler* requests() const;
    const reqh::RequestHandler* handler() const;
    // Requires: the node has opened() it.
    const io_sched::MainScheduler& io() const { return *io_; }

private:
    struct Fabric {
        Fabric(Locality& locality, const LocalityOptions& options, const LocalityWorld& world);
        // Another policy, or the same one set otherwise, takes over.
        void use(const lrs::PolicyChoice& choice, const lrs::PolicyShare& share);

        AccessTokens tokens;
        lrs::PolicyChoice policy;  // The current policy,
        lrs::PolicyShare shared;   // and its shared state.
        core::Random policy_seeds;
        std::vector<lrs::ClassNews> last_news;  // Of policies, rules and classes that are gone.
        eh::LocalEpochHandler epochs;
        lrs::Scheduler requests;
        reqh::RequestHandler handler;
        fabric::SessionHost host;
        std::optional<fabric::Server> server;
    };

    struct Store {
        Store(Locality& locality, const LocalityOptions& options, const LocalityWorld& world);

        objects::Stores stores;
        objects::ReplacedObjects replaced;
        objects::StoreUpkeep upkeep;
        objects::Scrub scrub;
        objects::StoreCheck check;
        objects::Coalescer coalescer;
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
    std::unique_ptr<Fabric> fabric_;
    std::atomic<const Fabric*> shown_ = nullptr;  // fabric_, for other threads.
    Listener* listener_ = nullptr;
    objects::NameParts* names_ = nullptr;
    std::vector<NodeDisk*> disks_;
};

}  // namespace fopd::daemon

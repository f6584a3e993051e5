#include "daemon/locality.h"

#include <algorithm>
#include <iterator>

#include "daemon/listener.h"
#include "daemon/node_disk.h"
#include "objects/name_parts.h"

namespace fopd::daemon {

namespace {

// How long the last replies may take to be sent.
constexpr Duration kFarewellMax = 1s;

}  // namespace

Locality::Fabric::Fabric(Locality& locality, const LocalityOptions& options,
                         const LocalityWorld& world)
    : tokens(world.clock, options.live.access),
      policy(options.live.policy),
      shared(options.live.share),
      policy_seeds(world.entropy.number()),
      epochs(locality.reactor_, world.epochs->fold()),
      requests(locality.reactor_, policy.make({.seed = policy_seeds.next(), .share = shared}),
               &epochs),
      handler({.reactor = locality.reactor_,
               .work = locality.work_,
               .buffers = locality.buffers_,
               .requests = requests,
               .tokens = tokens,
               .events = world.events,
               .stores = locality.stores(),
               .locality = locality.index_,
               .library = &locality.library_door_},
              options.live.limits),
      peer_fops(handler, locality.epochs_),
      host(locality.reactor_, world.events, world.entropy, options.host) {
    server.emplace(host, peer_fops, options.server);
    server->admit(options.live.access->admission());
}

void Locality::Fabric::use(const lrs::PolicyChoice& choice, const lrs::PolicyShare& share) {
    // Compares identity, not text: rules with equal text may be different objects.
    if (choice == policy && share == shared) return;
    const bool may_adapt = choice.is_kind_of(policy);
    policy = choice;
    shared = share;
    std::ranges::move(requests.take_class_news(), std::back_inserter(last_news));
    for (lrs::ClassNews& each : last_news) each.now = {};
    const lrs::PolicyParts parts{.seed = policy_seeds.next(), .share = share};
    if (may_adapt && requests.adapt(policy, parts)) return;
    requests.use(policy.make(parts));
}

Locality::Store::Store(Locality& locality, const LocalityOptions& options,
                       const LocalityWorld& world)
    : stores({.locality = locality.index_,
              .reactor = locality.reactor_,
              .io = *locality.io_,
              .buffers = locality.buffers_,
              .clock = world.clock,
              .events = world.events,
              .names = world.names->names(locality.index_)}),
      replaced(stores, world.names->part(locality.index_)),
      upkeep(stores, options.upkeep),
      scrub(stores, options.scrub_bytes_per_second),
      check(stores, options.scrub_bytes_per_second),
      coalescer(stores, options.coalescer) {
    if (options.library) staged.emplace(stores, *options.library);
}

Result<void> Locality::open(const LocalityOptions& options, const LocalityWorld& world) {
    if (auto opened = buffers_.open(options.buffers_bytes); !opened) return opened;
    io_ = std::make_unique<io_sched::MainScheduler>(reactor_, options.live.io);
    if (world.names != nullptr) {
        names_ = world.names;
        store_ = std::make_unique<Store>(*this, options, world);
        for (NodeDisk* const disk : disks_) introduce(*disk);
        const bool has_library = options.library && world.library_bay != nullptr;
        if (has_library && index_ == 0) {
            const library::TapeLibrary::Parts parts{.reactor = reactor_,
                                                    .clock = world.clock,
                                                    .events = world.events,
                                                    .io = *io_,
                                                    .bay = *world.library_bay,
                                                    .node = world.node};
            library_ = std::make_unique<library::TapeLibrary>(parts, *options.library);
        }
    }
    if (world.transport == nullptr) return {};
    if (index_ == 0) epochs_ = world.epochs;
    fabric_ = std::make_unique<Fabric>(*this, options, world);
    if (auto opened = fabric_->host.open(*world.transport); !opened) return opened;
    if (auto used = fabric_->server->use_memory(buffers_.memory()); !used) return used;
    if (epochs_ != nullptr) {
        auto opened = epochs_->open(*world.transport, options.host, *options.live.access);
        if (!opened) return opened;
    }
    shown_.store(fabric_.get(), std::memory_order_release);
    return {};
}

void Locality::own(NodeDisk& disk) {
    disks_.push_back(&disk);
    if (store_ != nullptr) introduce(disk);
}

void Locality::introduce(NodeDisk& disk) {
    disk.use({.io = *io_, .stores = store_->stores, .names = names_->sink(index_)});
}

void Locality::serve_disk(NodeDisk& disk) {
    store_->upkeep.count(*disk.slot());
    if (staging() != nullptr) staging()->look_at(*disk.slot());
    disk.publish();
}

void Locality::serve_objects(const Beginning& beginning) {
    store_->stores.introduce(beginning.all);
    store_->stores.set_layout(beginning.layout);
    store_->replaced.start();
    store_->upkeep.start();
    store_->coalescer.start();
    library_door_ = beginning.library;
    if (library_ != nullptr) library_->start(beginning.tape_doors);
    if (staging() != nullptr && beginning.library_bell != nullptr) {
        staging()->begin({.reactor = beginning.library.reactor, .bell = beginning.library_bell});
    }
}

Task<std::uint64_t> Locality::close_library(Instant deadline) {
    if (library_ == nullptr) co_return 0;
    co_return co_await library_->stop(deadline);
}

void Locality::apply(const LiveSettings& live) {
    io_->use(live.io);
    if (library_ != nullptr) library_->io_settings_changed();
    if (fabric_ == nullptr) return;
    fabric_->handler.set_limits(live.limits);
    fabric_->use(live.policy, live.share);
    fabric_->tokens.replace(live.access);
    fabric_->server->admit(live.access->admission());
    fabric_->server->end_outdated();
    if (epochs_ != nullptr) epochs_->use_keys(*live.access);
}

Task<std::uint64_t> Locality::drain(Instant deadline) {
    if (fabric_ != nullptr) {
        fabric_->server->drain();
        fabric_->handler.drain();
    }
    const auto closed = co_await work_.close_by(reactor_, deadline);
    if (epochs_ != nullptr) co_await epochs_->leave(deadline);
    if (closed) co_return 0;
    co_return work_.count();
}

Task<std::uint64_t> Locality::close() {
    const std::uint64_t left = work_.count();
    if (listener_ != nullptr) co_await listener_->stop();
    if (fabric_ != nullptr) {
        fabric_->server->drain();
        fabric_->handler.drain();
        fabric_->handler.cut_off();
    }
    co_await work_.close(reactor_);
    if (fabric_ != nullptr) {
        if (epochs_ != nullptr) co_await epochs_->close();
        co_await fabric_->epochs.close();
        // A client that does not take its last replies in time does not get them.
        [[maybe_unused]] const bool sent =
            co_await fabric_->host.sent(after(reactor_.now(), kFarewellMax));
        co_await fabric_->host.close();
    }
    co_return left;
}

void Locality::drop_fops() {
    shown_.store(nullptr, std::memory_order_release);
    fabric_.reset();
}

Task<std::uint64_t> Locality::close_store() {
    if (store_ != nullptr) co_await store_->stores.stop();
    if (staging() != nullptr) staging()->let_go();
    // Until then a scrub or the coalescer may have a buffer.
    buffers_.close();
    co_return 0;
}

std::vector<fabric::SessionInfo> Locality::sessions() {
    if (fabric_ == nullptr) return {};
    return fabric_->server->sessions();
}

reqh::FopList Locality::fops(std::size_t queued_max) const {
    if (fabric_ == nullptr) return {};
    return fabric_->handler.in_flight(queued_max);
}

reqh::FopList Locality::slow_fops() const {
    if (fabric_ == nullptr) return {};
    return fabric_->handler.slow();
}

std::optional<reqh::FopRecord> Locality::trace(reqh::FopId id) const {
    if (fabric_ == nullptr) return std::nullopt;
    return fabric_->handler.trace(id);
}

std::vector<reqh::FopLoad::Row> Locality::load() const {
    if (fabric_ == nullptr) return {};
    return fabric_->handler.load().rows();
}

std::vector<lrs::ClassFigures> Locality::class_figures() {
    if (fabric_ == nullptr) return {};
    return fabric_->requests.class_figures();
}

std::vector<lrs::ClassNews> Locality::take_class_news() {
    if (fabric_ == nullptr) return {};
    auto news = std::exchange(fabric_->last_news, {});
    std::ranges::move(fabric_->requests.take_class_news(), std::back_inserter(news));
    return news;
}

std::vector<store::ReplyKey> Locality::unheard_replies() const {
    std::vector<store::ReplyKey> keys;
    if (fabric_ == nullptr) return keys;
    for (const fabric::UnheardFop& each : fabric_->server->unheard(kBackWithin)) {
        keys.push_back({.client = {each.owner}, .request_number = each.request});
    }
    return keys;
}

void Locality::publish() {
    for (NodeDisk* const disk : disks_) {
        const bool is_open = store_ != nullptr && disk->volume() != nullptr;
        disk->publish(is_open ? store_->check.finding_count(*disk->slot()) : 0);
    }
}

bool Locality::at_rest() const {
    if (work_.count() > 0 || buffers_.free_count() < buffers_.total_count()) return false;
    if (fabric_ == nullptr) return true;
    return fabric_->host.at_rest() && fabric_->server->held() == 0;
}

const fabric::HostStatistics* Locality::host_statistics() const {
    const Fabric* const fabric = shown();
    return fabric == nullptr ? nullptr : &fabric->host.statistics();
}

const fabric::ServerStatistics* Locality::server_statistics() const {
    const Fabric* const fabric = shown();
    return fabric == nullptr ? nullptr : &fabric->server->statistics();
}

const lrs::Scheduler* Locality::requests() const {
    const Fabric* const fabric = shown();
    return fabric == nullptr ? nullptr : &fabric->requests;
}

const reqh::RequestHandler* Locality::handler() const {
    const Fabric* const fabric = shown();
    return fabric == nullptr ? nullptr : &fabric->handler;
}

}  // namespace fopd::daemon

#include "daemon/node.h"

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "core/remote.h"
#include "fabric/network_transport.h"
#include "fabric/settings.h"

namespace fopd::daemon {

namespace {

// How much longer than its own deadline a locality may take to answer.
constexpr Duration kAnswerPatience = 2s;
// How often a slow start asks the service manager for more time.
constexpr Duration kStartStep = 20s;
// How often damage and space of the disks are looked at.
constexpr Duration kDisksStep = 5s;
// How long a locality may take to close: it waits for transfers the hardware has begun, and for its
// last replies to be sent.
constexpr Duration kClosePatience = 4s;

// The addresses of the options count before those of the configuration.
std::vector<fabric::Address> addresses_of(const config::Snapshot& settings,
                                          const NodeOptions& options) {
    return options.listen.value_or(settings.get<fabric::FabricSettings>().listen);
}

eh::OwnNode own_node(const config::Snapshot& settings, const NodeOptions& options) {
    return {.name = node_name(settings), .listen = addresses_of(settings, options)};
}

// Rule versions start from the wall clock, so that they continue to rise after a restart.
std::uint64_t milliseconds_of(WallTime time) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(time.unix_ns, 0)) / 1'000'000;
}

}  // namespace

StartProblem cannot_listen(const fabric::Address& address, const Error& error) {
    return {.exit_code = error.code == Errc::kBusy ? kExitInUse : kExitSystem,
            .message = "fabric.listen: " + format_address(address) + ": " + describe(error)};
}

Node::Node(NodeWorld world, NodeOptions options)
    : world_(std::move(world)),
      options_(std::move(options)),
      life_(world_.control),
      epochs_({.reactor = *world_.localities.front(),
               .events = world_.events,
               .entropy = world_.entropy,
               .settings = world_.configuration.current()->get<eh::EpochSettings>(),
               .self = own_node(*world_.configuration.current(), options_),
               .stores = world_.epoch_stores,
               .observer = world_.epoch_observer}),
      orders_(world_.control),
      access_(world_, addresses_),
      policies_(world_.entropy.number(), milliseconds_of(world_.clock.wall())),
      lrs_({.control = world_.control,
            .events = world_.events,
            .configuration = world_.configuration,
            .policies = policies_,
            .check_ready = [this] { return life_.check_ready(); },
            .apply =
                [this] {
                    updates_.send();
                    rule_warnings_.note();
                }}),
      io_sched_({.events = world_.events,
                 .configuration = world_.configuration,
                 .check_ready = [this] { return life_.check_ready(); },
                 .apply = [this] { updates_.send(); }}),
      rule_warnings_(access_, lrs_, world_.events),
      class_ledger_(world_.events),
      updates_({.control = world_.control,
                .configuration = world_.configuration,
                .policies = policies_,
                .lrs = lrs_,
                .access = access_,
                .classes = class_ledger_}),
      disks_({.control = world_.control,
              .bay = world_.bay,
              .events = world_.events,
              .entropy = world_.entropy,
              .clock = world_.clock,
              .node = world_.id,
              .store = world_.configuration.current()->get<store::StoreSettings>(),
              .sweep = options_.sweep},
             world_.localities,
             world_.configuration.current()->get<std::vector<devices::DeviceSettings>>()),
      layout_({.control = world_.control,
               .clock = world_.clock,
               .configuration = world_.configuration,
               .disks = disks_,
               .localities = localities_,
               .access = access_}),
      device_warnings_(disks_, world_.events),
      space_(world_.events),
      missing_({.events = world_.events, .disks = disks_, .names = names_, .life = life_}),
      tapes_(world_.localities.size()),
      watch_({.control = world_.control,
              .events = world_.events,
              .manager = world_.manager,
              .classes = class_ledger_,
              .tapes = tapes_}),
      questions_(world_.control, localities_, class_ledger_),
      checks_(world_.control, localities_, disks_),
      drained_(world_.control),
      turn_(world_.control, life_),
      backup_({.control = world_.control,
               .node = world_.id,
               .life = life_,
               .turn = turn_,
               .disks = disks_,
               .localities = localities_,
               .names = names_}),
      device_changes_({.control = world_.control,
                       .events = world_.events,
                       .disks = disks_,
                       .localities = localities_,
                       .layout = layout_,
                       .names = names_,
                       .life = life_}),
      device_requests_({.configuration = world_.configuration,
                        .disks = disks_,
                        .changes = device_changes_,
                        .warnings = device_warnings_,
                        .missing = missing_,
                        .turn = turn_}),
      reload_({.world = world_,
               .turn = turn_,
               .access = access_,
               .rules = rule_warnings_,
               .updates = updates_,
               .layout = layout_,
               .devices = device_requests_,
               .life = life_}),
      registered_(world_.localities.size(), false) {
    for (std::uint32_t index = 0; index < world_.localities.size(); ++index) {
        core::Reactor& reactor = *world_.localities[index];
        localities_.push_back(std::make_unique<Locality>(index, reactor));
        watch_.add(*localities_.back());
        orders_.add(*localities_.back());
        updates_.add(*localities_.back());
    }
    for (const auto& disk : disks_.all()) localities_[disk->locality().index]->own(*disk);
}

// Fops hold resources of other localities, so all fops are destroyed before any locality; they may
// still exist when a process of the simulated world is killed.
Node::~Node() {
    listener_.reset();
    for (const auto& locality : localities_) locality->drop_fops();
}

Task<Started<void>> Node::start() {
    ENSURE(life_.state() == NodeState::kStarting);
    world_.manager.status("starting");
    incarnation_ = world_.entropy.number();
    auto access = access_.load(*world_.configuration.current());
    if (!access) co_return std::unexpected(access.error());
    access_.use(*std::move(access));
    const auto named = co_await open_names();
    if (!named) co_return std::unexpected(named.error());
    for (const auto& locality : localities_) {
        if (life_.stop_requested()) co_return {};
        const auto opened = co_await open_locality(locality.get());
        if (!opened) co_return std::unexpected(opened.error());
    }
    opened_.store(true, std::memory_order_release);
    if (life_.stop_requested()) co_return {};
    co_await open_disks();
    co_await layout_.begin();
    if (life_.stop_requested()) co_return {};
    const auto listening = co_await listen();
    if (!listening) co_return std::unexpected(listening.error());
    world_.control.spawn(background_, watch_.run());
    life_.enter(NodeState::kReady);
    emit(world_.events, core::Level::kInfo, "daemon.ready",
         {{"localities", static_cast<std::uint64_t>(localities_.size())},
          {"seconds", in_seconds(life_.ready_at() - life_.created_at())}});
    world_.manager.status("ready");
    world_.manager.ready();
    co_return {};
}

Task<Started<void>> Node::open_locality(Locality* locality) {
    const auto& listen_at = listen_addresses();
    if (!listen_at.empty() && transport_ == nullptr) {
        transport_ = world_.transport(listen_at.front().scheme);
        if (transport_ == nullptr) {
            co_return std::unexpected(StartProblem{
                .exit_code = kExitConfig,
                .message =
                    "fabric.listen: this fopd has no transport for " + listen_at.front().scheme});
        }
    }
    const LocalityOptions options = locality_options(locality->index());
    const LocalityWorld world{.events = world_.events,
                              .entropy = world_.entropy,
                              .clock = world_.clock,
                              .transport = transport_,
                              .names = names_.get(),
                              .library_bay = world_.library_bay,
                              .node = world_.id,
                              .epochs = &epochs_};
    auto open = [locality, &options, &world] { return locality->open(options, world); };
    const auto opened = co_await core::run_on(world_.control, locality->reactor(), open);
    if (!opened) {
        const bool memory = opened.error().code == Errc::kNoSpace;
        co_return std::unexpected(
            StartProblem{.exit_code = kExitSystem,
                         .message = (memory ? "localities.buffers: " : "the network: ") +
                                    describe(opened.error()) + (memory ? "; lower it" : "")});
    }
    registered_[locality->index()] = locality->buffers().registered();
    if (locality->buffers().registered()) co_return {};

    const Error& error = locality->buffers().registration_error();
    const std::string reason = describe(error);
    if (options_.buffers == NodeOptions::Buffers::kRegistered) {
        const std::string advice =
            error.os_errno == ENOMEM ? "; the memory lock limit is too small: raise LimitMEMLOCK= "
                                       "or ulimit -l, or lower localities.buffers"
                                     : "";
        co_return std::unexpected(StartProblem{
            .exit_code = kExitSystem,
            .message =
                "localities.buffers cannot be registered with the kernel: " + reason + advice});
    }
    const std::string warning = "buffers are not registered with the kernel: " + reason;
    if (std::ranges::find(warnings_, warning) == warnings_.end()) {
        warnings_.push_back(warning);
        emit(world_.events, core::Level::kWarn, "daemon.unregistered_buffers",
             {{"reason", std::string_view(reason)}});
    }
    co_return {};
}

Task<Started<void>> Node::open_names() {
    if (disks_.empty()) co_return {};
    const auto slots = world_.bay->read_slots();
    const bool had_disks = slots || slots.error().code != Errc::kNotFound;
    names_ =
        std::make_unique<objects::NameParts>(objects::NameParts::World{.control = world_.control,
                                                                       .indexes = *world_.bay,
                                                                       .events = world_.events,
                                                                       .clock = world_.clock,
                                                                       .node = world_.id,
                                                                       .had_disks = had_disks},
                                             world_.localities);
    const auto opened = co_await names_->open();
    if (opened) co_return {};
    co_return std::unexpected(StartProblem{
        .exit_code = kExitSystem,
        .message = "the names of objects, in node.data_dir: " + describe(opened.error())});
}

// A disk that cannot be used does not keep the others from serving.
Task<void> Node::open_disks() {
    world_.control.spawn(background_, ask_for_time());
    co_await disks_.open();
    disks_open_.cancel();
    for (const auto& disk : disks_.all()) device_warnings_.note_disk(disk->settings().name);
    missing_.note();
    if (names_ == nullptr) co_return;
    world_.control.spawn(background_, missing_.count());
    world_.control.spawn(background_, look_after_disks());
}

Task<void> Node::look_after_disks() {
    for (;;) {
        const auto slept = co_await world_.control.sleep_for(kDisksStep, &closing_);
        disks_.note_damage();
        if (!slept) co_return;
        space_.look_at(disks_.reports());
    }
}

std::vector<Warning> Node::warnings() const {
    std::vector<Warning> all;
    const auto add = [&all](const std::vector<std::string>& texts) {
        for (const std::string& each : texts) all.push_back({.text = each});
    };
    add(warnings_);
    if (!access_.warning().empty()) all.push_back({.text = std::string(access_.warning())});
    add(rule_warnings_.all());
    std::ranges::move(device_warnings_.all(), std::back_inserter(all));
    add(disks_.lost_slots());
    return all;
}

// Replaying a log may take longer than the service manager allows for a start.
Task<void> Node::ask_for_time() {
    for (;;) {
        const auto slept = co_await world_.control.sleep_for(kStartStep, &disks_open_);
        if (!slept) co_return;
        world_.manager.status("opening disks");
        world_.manager.extend_timeout(3 * kStartStep);
    }
}

std::vector<fabric::Address> Node::listen_addresses() const {
    return addresses_of(*world_.configuration.current(), options_);
}

LocalityOptions Node::locality_options(std::uint32_t index) {
    const config::Snapshot& settings = *world_.configuration.current();
    const auto& localities = settings.get<LocalitySettings>();
    const auto& network = settings.get<fabric::FabricSettings>();
    LocalityOptions options{
        .buffers_bytes = localities.buffers_bytes,
        .host = {},
        .server = {.locality = static_cast<std::uint16_t>(index), .incarnation = incarnation_},
        .upkeep = {.upload_timeout = settings.get<store::StoreSettings>().upload_timeout},
        .scrub_bytes_per_second = settings.get<store::StoreSettings>().scrub_bytes_per_second,
        .coalescer = {.bytes_per_second =
                          settings.get<store::StoreSettings>().coalesce_bytes_per_second},
        .live = updates_.settings()};
    options.library = options_.library;
    options.host.machine.receive_buffer_count = localities.receive_buffers;
    options.host.machine.host = node_name(settings);
    options.host.inline_max = static_cast<std::uint32_t>(network.inline_max);
    options.host.lease = network.lease;
    options.host.handshake_timeout = network.handshake_timeout;
    options.host.protection = network.protection;
    return options;
}

// The last step before the node is ready, because clients that connect are served at once.
Task<Started<void>> Node::listen() {
    const auto& network = world_.configuration.current()->get<fabric::FabricSettings>();
    std::vector<Locality*> localities;
    for (const auto& each : localities_) localities.push_back(each.get());
    core::Reactor& first = localities.front()->reactor();
    listener_ = std::make_unique<Listener>(localities, world_.events);
    localities.front()->own(*listener_);
    const fabric::AcceptorOptions options{.silence_max = network.handshake_timeout};
    const auto wanted = listen_addresses();
    for (const fabric::Address& address : wanted) {
        auto job = [this, &address, &options] {
            return listener_->listen(*transport_, address, options);
        };
        const auto listening = co_await core::run_on(world_.control, first, job);
        if (!listening) {
            co_return std::unexpected(cannot_listen(address, listening.error()));
        }
        addresses_.push_back(*listening);
        emit_each(world_.events, core::Level::kInfo, "fabric.listening",
                  {{"address", std::string_view(format_address(*listening))}});
    }
    auto begin = [this] { epochs_.begin(); };
    if (transport_ != nullptr) co_await core::run_on(world_.control, first, begin);
    warn_of_transport();
    access_.report();
    rule_warnings_.note();
    co_return {};
}

void Node::warn_of_transport() {
    if (addresses_.empty() || !fabric::trusts_strangers(addresses_.front().scheme)) return;
    emit(world_.events, core::Level::kWarn, "fabric.trusts_strangers",
         {{"reason",
           "libfabric's tcp provider believes what any host that reaches the port sends, also "
           "without a key: such a host can end this daemon or fill its memory; listen at tcp:// "
           "unless all hosts that reach it are known"}});
}

Task<LeftRunning> Node::drain() {
    if (life_.state() == NodeState::kDraining) {
        // No deadline of its own: the drain in progress has one.
        while (life_.state() == NodeState::kDraining) {
            [[maybe_unused]] const auto woken = co_await drained_.wait({});
        }
        co_return left_;
    }
    if (life_.state() != NodeState::kReady) co_return left_;

    life_.enter(NodeState::kDraining);
    co_await world_.control.yield();  // This thread may have blocked; updates now().
    const Instant began_at = world_.control.now();
    const Duration timeout = world_.configuration.current()->get<NodeSettings>().drain_timeout;
    emit(world_.events, core::Level::kInfo, "daemon.draining", {{"timeout", in_seconds(timeout)}});
    world_.manager.status("draining");

    const Instant deadline = after(began_at, timeout);
    left_ = co_await orders_.send(
        [](Locality* locality, Instant until) { return locality->drain(until); }, deadline,
        after(deadline, kAnswerPatience));
    emit(world_.events, left_.nothing() ? core::Level::kInfo : core::Level::kWarn, "daemon.drained",
         {{"seconds", in_seconds(world_.control.now() - began_at)},
          {"left_running", left_.operations},
          {"silent_localities", left_.localities}});
    world_.manager.status("drained");
    life_.enter(NodeState::kDrained);
    drained_.wake_all();
    co_return left_;
}

Task<bool> Node::stop() {
    request_stop();
    const Instant asked_at = world_.control.now();
    // Before the drain, which may take long: the service manager shall know why it waits.
    world_.manager.stopping();
    if (life_.state() == NodeState::kReady || life_.state() == NodeState::kDraining) {
        [[maybe_unused]] const LeftRunning left = co_await drain();
    }
    life_.enter(NodeState::kStopping);
    world_.manager.status("stopping");
    watch_.stop();
    closing_.cancel();
    // The rest of the drain timeout; a volume that is closing still has to write.
    const Duration timeout = world_.configuration.current()->get<NodeSettings>().drain_timeout;
    const bool disks_are_still = co_await turn_.wait_until_free(after(asked_at, timeout));
    if (!disks_are_still) {
        emit(world_.events, core::Level::kError, "daemon.not_stopped",
             {{"reason", std::string_view("adding or removing a disk did not finish in time")}});
        co_return false;
    }
    co_await background_.close(world_.control);
    co_await world_.control.yield();  // This thread may have blocked; updates now().
    // A locality that did not answer the drain will not answer a close either.
    const bool deaf = orders_.under_way();
    LeftRunning left =
        co_await orders_.send([](Locality* locality, Instant) { return locality->close(); },
                              Instant{}, after(world_.control.now(), kClosePatience));
    if (!deaf && left.localities == 0) {
        // Drives finish their current operations, if that does not take too long.
        const Instant until =
            std::max(after(asked_at, timeout), after(world_.control.now(), kClosePatience));
        const LeftRunning tape = co_await orders_.send(
            [](Locality* locality, Instant limit) { return locality->close_library(limit); }, until,
            after(until, kAnswerPatience));
        left.localities = tape.localities;
        left_on_tape_ = tape.operations > 0;
    }
    if (!deaf && left.localities == 0) {
        const LeftRunning kept = co_await orders_.send(
            [](Locality* locality, Instant) { return locality->close_store(); }, Instant{},
            after(world_.control.now(), kClosePatience));
        left.localities = kept.localities;
    }
    if (deaf || left.localities > 0) {
        emit(world_.events, core::Level::kError, "daemon.not_stopped",
             {{"silent_localities", left.localities}});
        co_return false;
    }
    const Instant deadline =
        std::max(after(asked_at, timeout), after(world_.control.now(), kClosePatience));
    const bool disks_closed = co_await close_disks(deadline);
    if (!disks_closed) co_return false;
    // Every pulse is back: it was sent before the close order, and messages are answered in order.
    ENSURE(watch_.all_pulses_are_back());
    life_.enter(NodeState::kStopped);
    emit(world_.events, core::Level::kInfo, "daemon.stopped", {{"cut_off", left.operations}});
    co_return true;
}

Task<bool> Node::close_disks(Instant deadline) {
    const bool closed = co_await disks_.close(deadline);
    if (!closed) co_return false;
    if (names_ == nullptr) co_return true;
    const bool names_closed = co_await names_->close(deadline);
    if (!names_closed) emit(world_.events, core::Level::kError, "daemon.names_do_not_close");
    co_return names_closed;
}

}  // namespace fopd::daemon

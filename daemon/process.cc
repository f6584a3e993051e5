#include "daemon/process.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <utility>

#include <poll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "config/units.h"
#include "core/clock.h"
#include "core/entropy.h"
#include "core/fd_watch.h"
#include "core/offload.h"
#include "core/poll_backend.h"
#include "daemon/admin_api.h"
#include "daemon/admin_audit.h"
#include "daemon/admin_reply.h"
#include "daemon/admin_server.h"
#include "daemon/daemon_logs.h"
#include "daemon/data_dir.h"
#include "daemon/health_metrics.h"
#include "daemon/local_disk_bay.h"
#include "daemon/local_epoch_stores.h"
#include "daemon/local_library_bay.h"
#include "daemon/locality_threads.h"
#include "daemon/log.h"
#include "daemon/node_id.h"
#include "daemon/process_metrics.h"
#include "daemon/version.h"
#include "eh/settings.h"
#include "fabric/network_transport.h"
#include "fabric/settings.h"
#include "library/settings.h"

namespace fopd::daemon {

namespace {

// How much longer than the drain timeout a stop may take before the process is ended by force.
constexpr Duration kStopGrace = 10s;
// An upper limit of each wait for signals, because every wait has one.
constexpr Duration kSignalCap = 1h;
// The same signal again within this time counts as one request: timeout(1) signals the process and
// then its group.
constexpr Duration kSameRequestWithin = 500ms;
constexpr Duration kLogFlushLimit = 2s;
// How old the problems in the metrics may be.
constexpr Duration kHealthInterval = 1s;
// How long closing the log may take after that.
constexpr Duration kLogEndLimit = 3 * (Log::kCloseWait + Log::kCloseMargin);

sigset_t signals_to_read() {
    sigset_t set;
    sigemptyset(&set);
    for (const int each : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, each);
    return set;
}

struct Signal {
    int number;
    AdminCaller sender;  // Without the user's name, whose lookup may block.
};

// The signals the control thread reads. REQUIRES: hold_signals().
class Signals {
public:
    static Started<std::unique_ptr<Signals>> open() {
        const sigset_t set = signals_to_read();
        const int fd = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
        if (fd < 0) {
            return std::unexpected(StartProblem{.exit_code = kExitSystem,
                                                .message = describe(os_error(errno, "signalfd"))});
        }
        return std::unique_ptr<Signals>(new Signals(fd));
    }
    ~Signals() { ::close(fd_); }
    Signals(const Signals&) = delete;
    Signals& operator=(const Signals&) = delete;

    int fd() const { return fd_; }
    // The next pending signal, if there is one, and its sender.
    std::optional<Signal> next() const {
        signalfd_siginfo info{};
        if (::read(fd_, &info, sizeof info) != sizeof info) return std::nullopt;
        return Signal{.number = static_cast<int>(info.ssi_signo),
                      .sender = {.uid = info.ssi_uid, .pid = info.ssi_pid}};
    }

private:
    explicit Signals(int fd) : fd_(fd) {}
    const int fd_;
};

// Each connection needs a descriptor. A shell's soft limit is often 1 024; the hard one is higher.
void raise_files_limit() {
    rlimit files{};
    if (::getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == files.rlim_max) return;
    files.rlim_cur = files.rlim_max;
    // Where it fails, the limit stays, and connections beyond it wait.
    [[maybe_unused]] const int raised = ::setrlimit(RLIMIT_NOFILE, &files);
}

std::uint32_t locality_count(const LocalitySettings& settings) {
    if (settings.cores.has_value()) return *settings.cores;
    return std::max<std::uint32_t>(1, static_cast<std::uint32_t>(usable_cores().size() / 2));
}

// Pinning more memory than the machine has would make the kernel kill arbitrary processes.
Started<void> check_memory(const LocalitySettings& settings) {
    const auto machine = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                         static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    const std::uint64_t wanted = settings.buffers_bytes * locality_count(settings);
    if (wanted <= machine / 10 * 9) return {};
    return std::unexpected(StartProblem{
        .exit_code = kExitSystem,
        .message = "localities.buffers: " + config::format_size(settings.buffers_bytes) +
                   " for each of " + std::to_string(locality_count(settings)) +
                   " localities do not fit into the " + std::to_string(machine >> 20) +
                   " MiB of this machine; lower it"});
}

// All parts of a running daemon in the order of creation; destroyed in reverse order.
class Process {
public:
    Process(std::unique_ptr<Configuration> configuration, const ProcessOptions& options,
            DaemonLogs& logs)
        : configuration_(std::move(configuration)), options_(options), logs_(logs) {}

    int run() {
        const Started<void> made = make();
        if (!made) return fail(made.error());
        return control_->run_until_done(live());
    }

private:
    Started<void> make();
    std::vector<fabric::Address> listen_addresses() const;
    Started<void> try_addresses() const;
    Started<std::unique_ptr<core::Offload>> make_offload(core::OffloadOptions options);
    Started<void> make_bay(std::size_t disk_count);
    Started<void> make_epoch_offload();
    void make_epoch_stores();
    fabric::Transport* transport(std::string_view scheme);
    void make_api();
    Task<Started<void>> start_admin();
    Task<int> live();
    Task<void> watch_signals();
    void on_signal(const Signal& signal);
    Task<void> reload(AdminCaller sender);
    Task<void> publish_health();
    void expect_end();
    Task<void> limit_stop();
    Task<void> stop_admin();
    int fail(const StartProblem& problem);
    [[noreturn]] void leave(int exit_code);

    const std::unique_ptr<Configuration> configuration_;
    const ProcessOptions options_;
    DaemonLogs& logs_;
    core::EventSink& events_ = logs_.events();
    const core::PosixClock clock_;
    core::SystemEntropy entropy_;
    std::unique_ptr<fabric::Transport> transport_;  // For the scheme of the listen addresses.
    std::unique_ptr<Signals> signals_;
    std::unique_ptr<DataDir> data_dir_;
    std::unique_ptr<ServiceManager> manager_;
    std::unique_ptr<core::Reactor> control_;
    std::unique_ptr<core::Offload> offload_;
    std::unique_ptr<LocalityThreads> threads_;
    std::unique_ptr<core::Offload> disk_offload_;
    std::unique_ptr<LocalDiskBay> bay_;
    std::unique_ptr<LocalLibraryBay> library_bay_;
    std::unique_ptr<core::Offload> epoch_offload_;
    std::optional<EtcdAccess> etcd_access_;  // Until epoch_stores_ has it.
    std::unique_ptr<LocalEpochStores> epoch_stores_;
    std::unique_ptr<Node> node_;
    std::unique_ptr<NodeMetrics> node_metrics_;
    HealthMetrics health_metrics_;
    const ProcessMetrics process_metrics_{clock_};
    std::unique_ptr<AdminApi> api_;
    std::unique_ptr<AdminServer> server_;
    std::unique_ptr<core::WaitQueue> told_to_stop_;
    core::Gate background_;
    core::CancelSource end_background_;
    bool stopping_ = false;  // A stop was requested.
    int stop_signal_ = 0;    // The signal that requested it, and when.
    Instant stop_asked_at_;
    bool end_expected_ = false;  // limit_stop() runs.
};

Started<void> Process::make() {
    const config::Snapshot& settings = *configuration_->current();
    raise_files_limit();
    auto signals = Signals::open();
    if (!signals) return std::unexpected(signals.error());
    signals_ = std::move(*signals);

    auto data_dir = DataDir::open(settings.get<NodeSettings>().data_dir);
    if (!data_dir) return std::unexpected(data_dir.error());
    data_dir_ = std::move(*data_dir);
    if (options_.when_locked) {
        if (auto done = options_.when_locked(); !done) return done;
    }

    auto backend = core::make_poll_backend(clock_);
    if (!backend) {
        return std::unexpected(
            StartProblem{.exit_code = kExitSystem, .message = describe(backend.error())});
    }
    control_ = std::make_unique<core::Reactor>(std::move(*backend));
    told_to_stop_ = std::make_unique<core::WaitQueue>(*control_);
    auto offload = make_offload({.name = "fopd-offload"});
    if (!offload) return std::unexpected(offload.error());
    offload_ = std::move(*offload);
    manager_ = make_systemd_manager();
    if (auto tried = try_addresses(); !tried) return tried;
    const auto& disks = settings.get<std::vector<devices::DeviceSettings>>();
    std::vector<std::string> disk_paths;
    for (const devices::DeviceSettings& each : disks) disk_paths.push_back(each.path);
    const auto node_id = load_node_id(data_dir_->path(), disk_paths, entropy_);
    if (!node_id) return std::unexpected(node_id.error());
    const LocalitySettings& localities = settings.get<LocalitySettings>();
    if (auto fits = check_memory(localities); !fits) return fits;
    // Before the localities' threads: these end only when a node stops.
    if (auto made = make_bay(disks.size()); !made) return made;
    if (auto made = make_epoch_offload(); !made) return made;
    auto threads = LocalityThreads::start(
        {.count = locality_count(localities), .spin = localities.spin, .sqpoll = localities.sqpoll},
        *control_, clock_, events_);
    if (!threads) return std::unexpected(threads.error());
    threads_ = std::move(*threads);

    make_epoch_stores();
    node_ = std::make_unique<Node>(
        NodeWorld{.control = *control_,
                  .localities = threads_->reactors(),
                  .clock = clock_,
                  .entropy = entropy_,
                  .events = events_,
                  .manager = *manager_,
                  .configuration = *configuration_,
                  .bay = bay_.get(),
                  .library_bay = library_bay_.get(),
                  .epoch_stores = epoch_stores_.get(),
                  .id = *node_id,
                  .transport = [this](std::string_view scheme) { return transport(scheme); },
                  .load_access =
                      [](const config::Snapshot& wanted) {
                          return load_access(wanted.get<AuthSettings>());
                      },
                  .apply_settings = [this] { logs_.set_level(configuration_->log_level()); }},
        NodeOptions{
            .buffers = options_.buffers,
            .listen = options_.listen,
            .library = library::options_of(settings.get<std::vector<library::LibrarySettings>>(),
                                           settings.get<std::vector<devices::PoolSettings>>())});
    node_metrics_ = std::make_unique<NodeMetrics>(
        *node_, clock_, [this](std::size_t locality) { return threads_->cpu_time(locality); });
    return {};
}

std::vector<fabric::Address> Process::listen_addresses() const {
    return options_.listen.value_or(
        configuration_->current()->get<fabric::FabricSettings>().listen);
}

// Before anything is written: a daemon that cannot listen leaves the node as it was, and a new node
// without an id. The node listens when its disks are open, because clients are served from then on.
Started<void> Process::try_addresses() const {
    for (const fabric::Address& address : listen_addresses()) {
        if (!fabric::is_network_scheme(address.scheme)) continue;
        const auto tried = fabric::try_address(address);
        if (!tried) return std::unexpected(cannot_listen(address, tried.error()));
    }
    return {};
}

Started<std::unique_ptr<core::Offload>> Process::make_offload(core::OffloadOptions options) {
    auto offload = core::make_thread_offload(std::move(options));
    if (offload) return *std::move(offload);
    return std::unexpected(StartProblem{
        .exit_code = kExitSystem,
        .message = "threads for blocking calls: " + describe(offload.error()) + kThreadAdvice});
}

// Creates threads for blocking calls on disks: opening them, and writing to their indexes. A node
// without disks may have had some, which its files know.
Started<void> Process::make_bay(std::size_t disk_count) {
    auto offload =
        make_offload({.name = "fopd-disks", .thread_count = LocalDiskBay::threads_for(disk_count)});
    if (!offload) return std::unexpected(offload.error());
    disk_offload_ = std::move(*offload);
    bay_ = std::make_unique<LocalDiskBay>(*disk_offload_, events_, data_dir_->path());
    library_bay_ = std::make_unique<LocalLibraryBay>(data_dir_->path());
    return {};
}

// Before the localities' threads, as for disks.
Started<void> Process::make_epoch_offload() {
    const auto& settings = configuration_->current()->get<eh::EpochSettings>();
    // The configuration was checked with the addresses in it, which an option may have replaced.
    const auto mistakes = eh::check_epochs(
        settings, {.name = node_name(*configuration_->current()), .listen = listen_addresses()});
    if (!mistakes.empty()) {
        const config::Mistake& first = mistakes.front();
        return std::unexpected(
            StartProblem{.exit_code = kExitConfig,
                         .message = "eh." + first.key + ": " + first.wrong + ", " + first.right});
    }
    auto access = read_etcd_access(settings.store);
    if (!access) return std::unexpected(access.error());
    etcd_access_ = *std::move(access);
    auto offload = make_offload(
        {.name = "fopd-epochs", .thread_count = LocalEpochStores::thread_count(etcd_access_)});
    if (!offload) return std::unexpected(offload.error());
    epoch_offload_ = std::move(*offload);
    return {};
}

void Process::make_epoch_stores() {
    const auto& settings = configuration_->current()->get<eh::EpochSettings>();
    epoch_stores_ = std::make_unique<LocalEpochStores>(
        LocalEpochStores::World{.reactor = *threads_->reactors().front(),
                                .offload = *epoch_offload_,
                                .clock = clock_,
                                .events = events_},
        settings.store, std::move(etcd_access_), data_dir_->path());
}

fabric::Transport* Process::transport(std::string_view scheme) {
    if (!fabric::is_network_scheme(scheme)) return nullptr;
    transport_ =
        fabric::make_network_transport(scheme, events_, [this] { return entropy_.number(); });
    return transport_.get();
}

void Process::make_api() {
    api_ = std::make_unique<AdminApi>(AdminApi::Parts{
        .control = *control_,
        .node = *node_,
        .configuration = *configuration_,
        .facts =
            [this] {
                StatusFacts facts{.log_level = logs_.level(),
                                  .watchdog_timeout = manager_->watchdog_timeout(),
                                  .threads = {}};
                for (std::size_t i = 0; i < threads_->cores().size(); ++i) {
                    facts.threads.push_back(
                        {.core = threads_->cores()[i], .cpu_time = threads_->cpu_time(i)});
                }
                return facts;
            },
        .set_log_level = [this](core::Level level) { logs_.set_level(level); },
        .metrics = {node_metrics_.get(), &health_metrics_, &process_metrics_, &logs_.metrics()},
        .events = events_,
        .clock = clock_});
}

// Resolves names and waits for a lock, so it runs on another thread.
Task<Started<void>> Process::start_admin() {
    const AdminSettings& settings = configuration_->current()->get<AdminSettings>();
    AdminServer::Options options{.socket = settings.socket,
                                 .metrics = options_.metrics.value_or(settings.metrics)};
    for (const fabric::Address& each : listen_addresses()) options.kept_ports.push_back(each.port);
    auto start_server = [this, &options] { return AdminServer::start(options, *api_, events_); };
    auto server = co_await offload_->run(*control_, start_server);
    ENSURE(server.has_value());
    if (!server->has_value()) co_return std::unexpected(server->error());
    server_ = std::move(**server);
    co_return Started<void>{};
}

// The daemon's life, on the control reactor. After a failed start, the parts created so far are
// stopped as at a normal stop.
Task<int> Process::live() {
    control_->spawn(background_, watch_signals());
    control_->spawn(background_, publish_health());
    make_api();
    Started<void> started = co_await start_admin();
    if (started) started = co_await node_->start();
    int exit_code = kExitDone;
    if (started) {
        while (!stopping_) {
            // No deadline: a daemon runs until it is told to stop.
            [[maybe_unused]] const auto told = co_await told_to_stop_->wait({});
        }
    } else if (!stopping_) {  // A start that was interrupted by a stop request has not failed.
        exit_code = fail(started.error());
    }
    expect_end();
    const bool stopped = co_await node_->stop();
    if (!stopped) leave(kExitInternal);
    co_await stop_admin();
    if (node_->left_on_tape() || node_->left_in_file()) leave(exit_code);
    const bool ended = co_await threads_->stop(after(control_->now(), kStopGrace));
    if (!ended) {
        emit(events_, core::Level::kError, "daemon.locality_does_not_stop");
        leave(kExitInternal);
    }
    end_background_.cancel();
    co_await background_.close(*control_);
    co_return exit_code;
}

// The server's threads wait for answers from this reactor, so another thread waits for their end.
Task<void> Process::stop_admin() {
    if (api_ == nullptr) co_return;
    if (server_ != nullptr) {
        auto stop_server = [this] { server_->stop(); };
        const auto stopped = co_await offload_->run(*control_, stop_server);
        ENSURE(stopped.has_value());
    }
    co_await api_->close();
}

Task<void> Process::watch_signals() {
    core::FdWatch watch(*control_, signals_->fd(), POLLIN);
    for (;;) {
        const auto wake = co_await watch.wait(kSignalCap, &end_background_);
        if (wake == core::FdWatch::Wake::kCancelled) break;
        while (const auto signal = signals_->next()) on_signal(*signal);
    }
    co_await watch.stop();
}

void Process::on_signal(const Signal& received) {
    const int signal = received.number;
    const char* const name = signal == SIGTERM ? "SIGTERM" : signal == SIGINT ? "SIGINT" : "SIGHUP";
    emit(events_, core::Level::kInfo, "daemon.signal", {{"signal", std::string_view(name)}});
    if (signal == SIGHUP) {
        control_->spawn(background_, reload(received.sender));
        return;
    }
    audit(events_, {.method = "signal", .path = name, .caller = received.sender}, {});
    if (stopping_) {
        if (signal == stop_signal_ && control_->now() - stop_asked_at_ < kSameRequestWithin) return;
        emit(events_, core::Level::kWarn, "daemon.stopped_at_once",
             {{"reason", std::string_view("a second signal to stop")}});
        leave(kExitDone);
    }
    stopping_ = true;
    stop_signal_ = signal;
    stop_asked_at_ = control_->now();
    node_->request_stop();
    told_to_stop_->wake_all();
    expect_end();
}

// Node::reload() logs its outcome, except when it was refused as busy.
Task<void> Process::reload(AdminCaller sender) {
    const auto reloaded = co_await node_->reload();
    AdminReply reply;
    if (reloaded) reply.changes = reloaded->for_audit();
    if (!reloaded) reply = failure(kConflict, reloaded.error().problems.front());
    audit(events_, {.method = "signal", .path = "SIGHUP", .caller = sender}, reply);
    if (reloaded || !reloaded.error().busy) co_return;
    emit(events_, core::Level::kWarn, "daemon.reload_refused",
         {{"reason", std::string_view(reloaded.error().problems.front())}});
}

Task<void> Process::publish_health() {
    while (node_->state() < NodeState::kStopping) {
        health_metrics_.publish(health_of(*node_, *configuration_, clock_));
        const auto slept = co_await control_->sleep_for(kHealthInterval, &end_background_);
        if (!slept) co_return;
    }
}

void Process::expect_end() {
    if (!std::exchange(end_expected_, true)) control_->spawn(background_, limit_stop());
}

Task<void> Process::limit_stop() {
    const Duration limit =
        configuration_->current()->get<NodeSettings>().drain_timeout + kStopGrace;
    // A drain timeout beyond the service manager's own limit would otherwise end in a kill.
    manager_->extend_timeout(limit + kLogEndLimit);
    const auto slept = co_await control_->sleep_for(limit, &end_background_);
    if (!slept) co_return;
    emit(events_, core::Level::kError, "daemon.stop_takes_too_long",
         {{"limit_s", in_seconds(limit)}});
    leave(kExitInternal);
}

int Process::fail(const StartProblem& problem) {
    emit(events_, core::Level::kError, "daemon.cannot_start",
         {{"problem", std::string_view(problem.message)},
          {"exit_code", static_cast<std::int64_t>(problem.exit_code)}});
    return problem.exit_code;
}

// Exits without destructors, because threads or requests may never end. Removes the socket file and
// the lock file first; a socket being created at this moment may remain, and the next start
// replaces it. Everything acknowledged is durable already.
void Process::leave(int exit_code) {
    logs_.flush(kLogFlushLimit);
    if (server_ != nullptr) server_->remove_file();
    // Last, because the localities may still run: the process exits right after the lock is
    // released.
    if (data_dir_ != nullptr) data_dir_->release();
    ::_exit(exit_code);
}

}  // namespace

void hold_signals() {
    const sigset_t set = signals_to_read();
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
}

int run_process(std::unique_ptr<Configuration> configuration, const ProcessOptions& options) {
    const core::PosixClock clock;
    const config::SnapshotPtr settings = configuration->current();
    auto started = DaemonLogs::start(settings->get<LogSettings>(), clock);
    if (!started) {
        std::fprintf(stderr, "fopd: %s\n", started.error().message.c_str());
        return started.error().exit_code;
    }
    DaemonLogs& logs = **started;
    emit(logs.events(), core::Level::kInfo, "daemon.start",
         {{"version", version()},
          {"pid", static_cast<std::int64_t>(::getpid())},
          {"name", std::string_view(node_name(*settings))},
          {"config", std::string_view(configuration->file())},
          {"config_hash", std::string_view(configuration->hash())}});
    const int exit_code = Process(std::move(configuration), options, logs).run();
    emit(logs.events(), core::Level::kInfo, "daemon.end",
         {{"exit_code", static_cast<std::int64_t>(exit_code)}});
    if (!logs.close()) ::_exit(exit_code);
    return exit_code;
}

}  // namespace fopd::daemon

#include "tests/hostile/stage.h"

#include <algorithm>
#include <utility>

#include "fop/key.h"
#include "tests/slowness.h"

namespace fopd::fabric::testing {

namespace {

Task<void> count_down(Task<void> task, bool* done) {
    co_await std::move(task);
    *done = true;
}

// Runs a task of the loop's reactor to its end.
void finish(Loop& loop, const std::function<Task<void>()>& make) {
    core::Gate gate;
    bool done = false;
    loop.run([&] { loop.reactor().spawn(gate, count_down(make(), &done)); });
    CHECK(loop.wait([&] { return done && gate.count() == 0; }));
}

std::string hex(const fop::Key& key) {
    return fop::to_text(key);
}

// Keeps one of the metrics that have no labels.
class FigureSink final : public core::MetricSink {
public:
    explicit FigureSink(std::string_view name) : name_(name) {}

    void counter(std::string_view name, std::string_view, std::span<const core::Label>,
                 double value) override {
        if (name == name_) found = value;
    }
    void gauge(std::string_view name, std::string_view, std::span<const core::Label>,
               double value) override {
        if (name == name_) found = value;
    }
    void time_histogram(std::string_view, std::string_view, std::span<const core::Label>,
                        const core::Histogram&, core::Buckets) override {}

    std::optional<double> found;

private:
    const std::string_view name_;
};

}  // namespace

// -- the bystander --

Bystander::Bystander(Transport& transport, Loop& loop, const core::Clock& clock,
                     const Address& server, Duration pace, std::uint64_t seed)
    : loop_(loop), clock_(clock), pace_(pace) {
    ClientOptions options;
    options.server = server;
    options.credentials = credentials(key_of(1), "bystander");
    loop_.run([&] {
        side_ = std::make_unique<ClientSide>(transport, loop_.reactor(), options,
                                             client_host_options("bystander"), seed);
        side_->client.start();
        loop_.reactor().spawn(gate_, work());
    });
    REQUIRE(go_on(1));
}

Bystander::~Bystander() {
    finish(loop_, [this] { return stop(); });
    loop_.run([this] { side_.reset(); });
}

Task<void> Bystander::stop() {
    stopping_ = true;
    co_await gate_.close(loop_.reactor());
    co_await side_->stop();
}

Task<void> Bystander::work() {
    const std::string text(64, 'x');
    std::string back(64, '?');
    const CallRequest request{.type = fop::find_fop_type("echo"),
                              .body = fop::Echo{},
                              .payload = bytes_of(text),
                              .reply_into = std::as_writable_bytes(std::span(back))};
    while (!stopping_) {
        const Instant began = clock_.now();
        const auto answer = co_await side_->client.call(request);
        latencies_.push_back(clock_.now() - began);
        ++calls_;
        if (!answer || answer->status != fop::Status::kDone || back != text) ++failures_;
        back.assign(64, '?');
        if (pace_ > Duration::zero()) {
            [[maybe_unused]] const auto slept = co_await loop_.reactor().sleep_for(pace_);
        }
    }
}

bool Bystander::go_on(std::size_t count) {
    std::size_t until = 0;
    loop_.run([&] { until = calls_ + count; });
    return loop_.wait([&] { return calls_ >= until; });
}

Task<void> Bystander::bulk(bool* moved) {
    std::string from(100'000, 'b');
    std::string into(from.size(), '.');
    const CallRequest request{.type = fop::find_fop_type("bulk_echo"),
                              .body = fop::BulkEcho{.bytes = from.size()},
                              .source = std::as_writable_bytes(std::span(from)),
                              .target = std::as_writable_bytes(std::span(into)),
                              .deadline = after(loop_.reactor().now(), 500ms)};
    const auto answer = co_await side_->client.call(request);
    *moved = answer && answer->status == fop::Status::kDone && into == from;
}

bool Bystander::move_bulk() {
    bool moved = false;
    finish(loop_, [this, &moved] { return bulk(&moved); });
    return moved;
}

std::size_t Bystander::failures() {
    std::size_t failures = 0;
    loop_.run([&] { failures = failures_; });
    return failures;
}

std::uint64_t Bystander::reconnects() {
    std::uint64_t reconnects = 0;
    loop_.run([&] { reconnects = side_->client.reconnects(); });
    return reconnects;
}

std::uint64_t Bystander::session_id() {
    std::uint64_t id = 0;
    loop_.run([&] { id = side_->client.session().id(); });
    return id;
}

std::vector<Duration> Bystander::take_latencies() {
    std::vector<Duration> taken;
    loop_.run([&] { taken = std::exchange(latencies_, {}); });
    std::ranges::sort(taken);
    return taken;
}

// -- the stage --

HostileStage::HostileStage(const Kind& kind, const HostileOptions& options) {
    if (kind.world == World::kVirtual) {
        world_.emplace(7);
        clock_ = &world_->clock();
    }
    transport_ = kind.make(world());
    server_loop_ = make_loop();
    hostile_loop_ = make_loop();
    bystander_loop_ = make_loop();

    daemon::LocalityOptions locality{.buffers_bytes = 32U << 20,
                                     .host = server_host_options(),
                                     .server = options.server,
                                     .live = live_settings({.open_to_all = options.open_to_all})};
    const int slowness = world_ ? 1 : fopd::testing::kSlowness;
    locality.host.lease = options.lease * slowness;
    locality.host.handshake_timeout = options.handshake_timeout * slowness;
    locality.host.inline_max = options.inline_max;
    locality.host.send_buffer_count = options.send_buffer_count;
    server_loop_->run([&] {
        locality_ =
            std::make_unique<daemon::Locality>(options.server.locality, server_loop_->reactor());
        make_epochs(options.epochs);
        const daemon::LocalityWorld world{.events = events_,
                                          .entropy = entropy_,
                                          .clock = *clock_,
                                          .transport = transport_.get(),
                                          .epochs = &*epochs_};
        REQUIRE(locality_->open(locality, world).has_value());
        listener_ = std::make_unique<daemon::Listener>(
            std::vector<daemon::Locality*>{locality_.get()}, events_);
        locality_->own(*listener_);
        const auto wanted = parse_address(kind.listen_at);
        const auto address = listener_->listen(*transport_, *wanted,
                                               {.silence_max = locality.host.handshake_timeout});
        REQUIRE(address.has_value());
        address_ = *address;
        epochs_->begin();
    });
    hostile_.emplace(*transport_, *hostile_loop_,
                     MachineOptions{.receive_buffer_bytes = 36U << 10, .host = "hostile"});
    bystander_ =
        std::make_unique<Bystander>(*transport_, *bystander_loop_, *clock_, address_, options.pace);
}

HostileStage::~HostileStage() {
    if (bystander_ != nullptr) {
        CHECK(bystander_->go_on(5));
        CHECK(bystander_->failures() == 0);
        CHECK(bystander_->reconnects() == 0);
        bystander_.reset();
    }
    peers_.clear();
    hostile_.reset();
    finish(*server_loop_, [this] { return close_locality(); });
    server_loop_->run([this] {
        listener_.reset();
        locality_.reset();
        epochs_.reset();
        epoch_stores_.reset();
    });
}

Task<void> HostileStage::close_locality() {
    // The first locality does this itself.
    if (locality_->epochs() == nullptr) co_await epochs_->close();
    [[maybe_unused]] const auto left = co_await locality_->close();
}

void HostileStage::make_epochs(const eh::EpochSettings& settings) {
    core::Reactor& reactor = server_loop_->reactor();
    daemon::NodeEpochs::Parts parts{
        .reactor = reactor, .events = events_, .entropy = entropy_, .settings = settings};
    if (settings.kind == eh::EpochSettings::Kind::kPeers) {
        epoch_stores_.emplace(reactor, core::Random(1), epoch_files_, nullptr);
        parts.self.name = kMemberName;
        parts.stores = &*epoch_stores_;
    }
    epochs_.emplace(parts);
}

std::unique_ptr<Loop> HostileStage::make_loop() {
    if (world_) return std::make_unique<VirtualLoop>(*world_);
    return std::make_unique<RealLoop>();
}

daemon::LiveSettings HostileStage::live_settings(const Reload& files) {
    const auto entry = [](const char* name, const fop::Key& key) {
        return std::string("  - name: ") + name + "\n    key: " + hex(key) + "\n";
    };
    std::string principals = "principals:\n" + entry("poor", poor_key());
    principals += entry("good", good_key()) + "    rights: [read, write, admin]\n";
    principals += entry("turned", turned_key()) + "    rights: [read, admin]\n";
    if (files.with_old_key) principals += "    previous_keys: [" + hex(turned_old_key()) + "]\n";
    principals += entry("proxy", proxy_key()) + "    rights: [read]\n    delegate: " +
                  (files.with_delegation ? "true\n" : "false\n");
    using Mode = daemon::AuthSettings::Mode;
    auto access = daemon::make_access({.principals_file = "principals.yaml",
                                       .principals = principals,
                                       .peer_keys = files.peers,
                                       .issuer = issuer().public_half(),
                                       .mode = files.open_to_all ? Mode::kNone : Mode::kRequired});
    REQUIRE(access.has_value());
    return {.limits = {}, .access = *std::move(access)};
}

RawPeer& HostileStage::peer(fop::Credentials who) {
    return peer(RawPeer::Options{.credentials = std::move(who)});
}

RawPeer& HostileStage::peer(RawPeer::Options options) {
    options.seed = next_seed_++;
    return peers_.emplace_back(*hostile_, address_, std::move(options));
}

RawPeer& HostileStage::connected_peer(const fop::Key& key) {
    RawPeer& made = peer(key);
    REQUIRE(made.connect());
    return made;
}

RawPeer& HostileStage::open_peer(const fop::Key& key) {
    RawPeer& made = peer(key);
    REQUIRE(made.open());
    return made;
}

void HostileStage::reload(const Reload& files) {
    server_loop_->run([this, &files] { locality_->apply(live_settings(files)); });
}

bool HostileStage::wait_count(Counter counter, std::uint64_t at_least) {
    return server_loop_->wait([this, counter, at_least] { return count(counter) >= at_least; });
}

std::size_t HostileStage::events(std::string_view name) {
    std::size_t count = 0;
    server_loop_->run([&] { count = events_.count(name); });
    return count;
}

std::vector<SessionInfo> HostileStage::sessions() {
    std::vector<SessionInfo> list;
    server_loop_->run([&] { list = locality_->sessions(); });
    return list;
}

eh::peers::EpochStatus HostileStage::epochs() {
    eh::peers::EpochStatus status;
    server_loop_->run([&] { status = epochs_->status(); });
    return status;
}

double HostileStage::epoch_figure(std::string_view name) {
    FigureSink sink(name);
    epochs_->collect(sink);
    REQUIRE(sink.found.has_value());
    return *sink.found;
}

std::size_t HostileStage::fops_held() {
    std::size_t held = 0;
    server_loop_->run([&] { held = locality_->server().held(); });
    return held;
}

}  // namespace fopd::fabric::testing

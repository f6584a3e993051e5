#include "bench/fabric_stage.h"

#include <algorithm>
#include <string>
#include <utility>

#include <poll.h>

#include "bench/measure.h"
#include "core/uring_backend.h"
#include "fabric/network_transport.h"
#include "fop/principal.h"

namespace fopd::bench {

namespace {

using fabric::IncomingFop;

constexpr std::size_t kCallMemoryBytes = 64U << 10;  // Payloads, both ways.

fop::Key key() {
    fop::Key key;
    for (std::byte& each : key.writable()) each = std::byte{0x5a};
    return key;
}

std::unique_ptr<core::Reactor> make_reactor(core::EventSink& events, Duration spin) {
    auto backend = core::make_uring_backend(kClock, events);
    if (!backend) fail(core::explain_no_uring(backend.error()));
    return std::make_unique<core::Reactor>(std::move(*backend), core::ReactorOptions{.spin = spin});
}

const char* chosen_scheme = fabric::kTcpScheme;
fop::Protection chosen_protection = fop::Protection::kSeal;

std::unique_ptr<fabric::Transport> make_transport(core::EventSink& events, core::Entropy& entropy) {
    return fabric::make_network_transport(chosen_scheme, events,
                                          [&entropy] { return entropy.number(); });
}

fabric::Address at_port(std::uint16_t port) {
    return {.scheme = chosen_scheme, .host = "127.0.0.1", .port = port, .locality = {}};
}

void expect(const Result<void>& result, const char* what) {
    if (!result) fail(std::string(what) + ": " + describe(result.error()));
}

// -- the server --

// Answers without anything behind it.
class Answers final : public fabric::IncomingUser {
public:
    Answers(core::Reactor& reactor, Service service) : reactor_(reactor), service_(service) {
        for (std::size_t i = memory_.size(); i > 0; i -= kBufferBytes) {
            free_buffers_.push_back({.data = memory_.data() + i - kBufferBytes,
                                     .size_bytes = static_cast<std::uint32_t>(kBufferBytes)});
        }
    }

    std::span<std::byte> memory() { return memory_; }
    core::Gate& gate() { return gate_; }

    void on_incoming(IncomingFop& fop) override {
        const fop::Request& request = fop.request();
        if (request.fault != fop::Status::kDone) return fop.reply({.status = request.fault});
        fop.started();
        switch (service_) {
            case Service::kEcho:
                return fop.reply({.payload = request.payload, .body = fop::EchoReply{}});
            case Service::kReply4k:
                return fop.reply(
                    {.payload = std::span(memory_).first(4096), .body = fop::EchoReply{}});
            case Service::kPull:
            case Service::kPush: return reactor_.spawn(gate_, move(&fop));
        }
    }

private:
    Task<void> move(IncomingFop* fop) {
        const auto body = std::get<fop::BulkEcho>(fop->request().body);
        if (free_buffers_.empty()) fail("more calls than buffers");
        const core::Buffer buffer = free_buffers_.back();
        free_buffers_.pop_back();
        Result<void> moved;
        for (std::uint64_t at = 0; moved && at < body.bytes; at += kBufferBytes) {
            core::Buffer part = buffer;
            part.size_bytes =
                static_cast<std::uint32_t>(std::min<std::uint64_t>(kBufferBytes, body.bytes - at));
            if (service_ == Service::kPull) {
                moved = co_await fop->pull(&body.source, at, part);
            } else {
                moved = co_await fop->push(&body.target, at, part);
            }
        }
        free_buffers_.push_back(buffer);
        fop->reply({.status = moved ? fop::Status::kDone : fop::status_of(moved.error().code),
                    .body = fop::BulkEchoReply{.bytes = body.bytes}});
    }

    core::Reactor& reactor_;
    const Service service_;
    core::Gate gate_;
    std::vector<std::byte> memory_ = std::vector<std::byte>(16 * kBufferBytes);
    std::vector<core::Buffer> free_buffers_;
};

class ServerProcess final : fabric::RequestUser {
public:
    explicit ServerProcess(const StageOptions& options)
        : transport_(make_transport(events_, entropy_)),
          reactor_(make_reactor(events_, options.spin)),
          answers_(*reactor_, options.service),
          host_(*reactor_, events_, entropy_,
                {.machine = {},
                 .fops_per_message_max = options.fops_per_message_max,
                 .protection = chosen_protection}),
          server_(host_, answers_, {.incarnation = 1}) {
        expect(host_.open(*transport_), "transport");
        expect(server_.use_memory(answers_.memory()), "memory");
        auto ring = fop::KeyRing::make(
            {.principals = {{.name = "bench", .keys = {key()}, .rights = fop::kAllRights}}});
        if (!ring) fail(ring.error());
        server_.admit({.keys = std::make_shared<const fop::KeyRing>(*std::move(ring))});
        auto listening = transport_->listen(*reactor_, at_port(0), *this, {});
        if (!listening) fail("listen: " + describe(listening.error()));
        acceptor_ = std::move(*listening);
    }

    void serve(const Child::Parent& parent) {
        parent.send(acceptor_->address().port);
        reactor_->run_until_done(until_done(parent.done_fd()));
    }

private:
    void on_request(std::unique_ptr<fabric::ConnectionRequest> request) override {
        server_.accept(std::move(request));
    }
    void on_silent(std::uint32_t) override {}

    Task<void> until_done(int done_fd) {
        const auto told = co_await reactor_->poll(done_fd, POLLIN | POLLHUP);
        if (!told) fail("poll: " + describe(told.error()));
        co_await acceptor_->stop();
        co_await host_.close();
        co_await answers_.gate().close(*reactor_);
    }

    core::NullEventSink events_;
    core::SystemEntropy entropy_;
    std::unique_ptr<fabric::Transport> transport_;
    std::unique_ptr<core::Reactor> reactor_;
    Answers answers_;
    fabric::SessionHost host_;
    fabric::Server server_;
    std::unique_ptr<fabric::Acceptor> acceptor_;
};

}  // namespace

void choose_scheme(const char* scheme) {
    chosen_scheme = scheme;
}

void choose_protection(fop::Protection protection) {
    chosen_protection = protection;
}

// -- the clients --

struct FabricStage::Running {
    Load load;
    core::Gate gate;
    std::uint64_t done = 0;
    bool enough = false;
    Cost cost;
};

FabricStage::FabricStage(const StageOptions& options)
    : server_([&options](const Child::Parent& parent) { ServerProcess(options).serve(parent); }) {
    const auto port = server_.receive<decltype(fabric::Address::port)>();
    address_ = at_port(port);
    transport_ = make_transport(events_, entropy_);
    reactor_ = make_reactor(events_, options.spin);
    host_ = std::make_unique<fabric::SessionHost>(
        *reactor_, events_, entropy_,
        fabric::HostOptions{
            .machine = {.receive_buffer_count = 1024, .receive_buffer_bytes = 36U << 10},
            .fops_per_message_max = options.fops_per_message_max,
            .protection = chosen_protection});
    expect(host_->open(*transport_), "transport");
}

FabricStage::~FabricStage() {
    reactor_->run_until_done(stop());
}

Task<void> FabricStage::stop() {
    co_await close_clients();
    co_await host_->close();
}

Task<void> FabricStage::close_clients() {
    for (const auto& client : clients_) co_await client->close();
}

void FabricStage::leave() {
    reactor_->run_until_done(close_clients());
    clients_.clear();
}

std::unique_ptr<fabric::Client> FabricStage::make_client() {
    return std::make_unique<fabric::Client>(
        *host_,
        fabric::ClientOptions{.server = address_,
                              .credentials = {.kind = fop::AuthKind::kPrincipal, .key = key()}});
}

void FabricStage::connect(std::size_t count) {
    // Not all at once: a listener's queue is not that long.
    constexpr std::size_t kAtOnce = 32;
    const std::size_t before = clients_.size();
    while (clients_.size() < before + count) {
        const std::size_t first = clients_.size();
        while (clients_.size() < std::min(first + kAtOnce, before + count)) {
            clients_.push_back(make_client());
        }
        reactor_->run_until_done(open(std::span(clients_).subspan(first)));
    }
}

Task<void> FabricStage::open(std::span<const std::unique_ptr<fabric::Client>> clients) {
    for (const auto& client : clients) client->start();
    for (const auto& client : clients) {
        const auto opened =
            co_await client->connected(after(reactor_->now(), 10s), fabric::Client::Tries::kFirst);
        expect(opened, "connect");
    }
}

void FabricStage::connect_and_leave(std::size_t count, std::size_t at_once) {
    reactor_->run_until_done(come_and_go_many(count, at_once));
}

Task<void> FabricStage::come_and_go_many(std::size_t count, std::size_t at_once) {
    core::Gate gate;
    std::size_t left = count;
    for (std::size_t i = 0; i < at_once; ++i) reactor_->spawn(gate, come_and_go(&left));
    co_await gate.close(*reactor_);
}

Task<void> FabricStage::come_and_go(std::size_t* left) {
    while (*left > 0) {
        --*left;
        const auto client = make_client();
        client->start();
        const auto opened =
            co_await client->connected(after(reactor_->now(), 10s), fabric::Client::Tries::kFirst);
        expect(opened, "connect");
        co_await client->close();
    }
}

Task<void> FabricStage::sleep(Duration span) {
    const auto slept = co_await reactor_->sleep_for(span);
    expect(slept, "sleep");
}

void FabricStage::idle(Duration span) {
    reactor_->run_until_done(sleep(span));
}

FabricStage::Cost FabricStage::measure(const Load& load) {
    Running running{.load = load, .gate = {}, .cost = {}};
    reactor_->run_until_done(run(&running));
    return running.cost;
}

Task<void> FabricStage::run(Running* running) {
    for (const auto& client : clients_) {
        for (std::size_t i = 0; i < running->load.depth; ++i) {
            reactor_->spawn(running->gate, call_again_and_again(client.get(), running));
        }
    }
    co_await sleep(running->load.warm_up);
    const Duration server_before = server_.cpu_time();
    const Duration own_before = own_cpu_time();
    const std::uint64_t done_before = running->done;
    const Instant start = kClock.now();
    co_await sleep(running->load.measured);
    const auto took = static_cast<double>((kClock.now() - start).count());
    const auto done = static_cast<double>(running->done - done_before);
    const auto own = static_cast<double>((own_cpu_time() - own_before).count());
    const auto server = static_cast<double>((server_.cpu_time() - server_before).count());
    if (done == 0) fail("no call ended in time");
    running->cost = {.per_s = done / took * 1e9,
                     .server_cpu_us = server / done / 1000,
                     .client_cpu_us = own / done / 1000};
    running->enough = true;
    co_await running->gate.close(*reactor_);
}

Task<void> FabricStage::call_again_and_again(fabric::Client* client, Running* running) {
    const Load& load = running->load;
    std::vector<std::byte> payload(load.payload_bytes, std::byte{'x'});
    std::vector<std::byte> reply(kCallMemoryBytes);
    std::vector<std::byte> source(load.source_bytes, std::byte{'s'});
    std::vector<std::byte> target(load.target_bytes);
    fabric::CallRequest request;
    request.body = load.body;
    request.type = &fop::kFopTypes[load.body.index() - 1];
    request.payload = payload;
    request.reply_into = reply;
    request.source = source;
    request.target = target;
    while (!running->enough) {
        const auto answer = co_await client->call(request);
        if (!answer) fail("call: " + describe(answer.error()));
        if (answer->status != fop::Status::kDone) fail("the server refused a call");
        ++running->done;
    }
}

}  // namespace fopd::bench

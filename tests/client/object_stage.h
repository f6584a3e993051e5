#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/object_client.h"
#include "core/virtual_world.h"
#include "fop/hello.h"
#include "tests/catch.h"
#include "tests/client/fake_store.h"
#include "tests/fabric/rpc_stage.h"

namespace fopd::client::testing {

inline const fop::Key kKey = fabric::testing::key_of(1);
inline const fop::Key kOtherKey = fabric::testing::key_of(2);
inline constexpr ObjectClient::Wait kNoWait{};
inline constexpr auto kDurable = fop::Durability::kDurable;
inline constexpr auto kBuffered = fop::Durability::kBuffered;

// One life of a node with two localities.
class Life final : fabric::RequestUser {
public:
    Life(core::VirtualWorld& world, fabric::Transport& transport, FakeStore& store)
        : store_(store), reactor_(world.make_reactor()), entropy_(store.incarnation * 31 + 1) {
        store.serve_on(*reactor_, gate_);
        for (std::uint16_t i = 0; i < FakeStore::kSlotCount; ++i) {
            auto& locality = localities_.emplace_back(
                std::make_unique<Locality>(*reactor_, entropy_, store, i, store.incarnation));
            REQUIRE(locality->host.open(transport).has_value());
            REQUIRE(locality->server.use_memory(store.memory).has_value());
            const fop::Key& key = store.refuses_clients ? kOtherKey : kKey;
            locality->server.admit(
                {.keys = fabric::testing::ring_of({fabric::testing::principal("tester", {key})})});
        }
        auto made =
            transport.listen(*reactor_, *fabric::parse_address("mem://server:1"), *this, {});
        REQUIRE(made.has_value());
        acceptor_ = std::move(*made);
    }
    // As a process that is killed.
    ~Life() {
        reactor_->drop_coroutines();
        acceptor_.reset();
        localities_.clear();
    }
    std::size_t sessions(std::size_t locality) {
        return localities_[locality]->server.sessions().size();
    }

private:
    struct Locality {
        Locality(core::Reactor& reactor, core::Entropy& entropy, FakeStore& store,
                 std::uint16_t number, std::uint64_t incarnation)
            : host(reactor, events, entropy, fabric::testing::server_host_options()),
              server(host, store, {.locality = number, .incarnation = incarnation}) {}
        fabric::testing::NotedEvents events;
        fabric::SessionHost host;
        fabric::Server server;
    };

    void on_request(std::unique_ptr<fabric::ConnectionRequest> request) override {
        const auto hello = fop::decode_connect_hello(request->hello());
        REQUIRE(hello.has_value());
        const std::size_t number = hello->locality == fop::kAnyLocality ? 0 : hello->locality;
        if (store_.away.contains(number)) return;
        localities_[number]->server.accept(std::move(request));
    }
    void on_silent(std::uint32_t) override {}

    FakeStore& store_;
    std::unique_ptr<core::Reactor> reactor_;
    core::SeededEntropy entropy_;
    core::Gate gate_;
    std::vector<std::unique_ptr<Locality>> localities_;
    std::unique_ptr<fabric::Acceptor> acceptor_;
};

class Stage {
public:
    explicit Stage(ObjectClientOptions options = {}) {
        life.emplace(world, transport, store);
        REQUIRE(host.open(transport).has_value());
        options.server = *fabric::parse_address("mem://server:1");
        options.credentials = fabric::testing::credentials(kKey);
        client.emplace(host, std::move(options));
        client->start();
    }
    ~Stage() {
        if (!closed) close();
        CHECK(gate.count() == 0);
        client.reset();
        CHECK(world.run(*reactor, host.close()));
    }
    void close() {
        closed = true;
        CHECK(world.run(*reactor, client->close()));
        world.run_for(10ms);
    }
    void crash() {
        life.reset();
        store.crash();
        store.without_reply.clear();
        store.ignored.clear();
        life.emplace(world, transport, store);
    }
    template <typename T>
    Outcome<T> run(Task<Outcome<T>> task) {
        auto outcome = world.run(*reactor, std::move(task));
        REQUIRE(outcome.has_value());
        return std::move(*outcome);
    }
    template <typename T>
    T done(Task<Outcome<T>> task) {
        auto outcome = run(std::move(task));
        if (!outcome) {
            FAIL(fop::to_string(outcome.error().status) << ": " << outcome.error().words);
        }
        if constexpr (!std::is_void_v<T>) return std::move(*outcome);
    }
    template <typename T>
    fop::Status status(Task<Outcome<T>> task) {
        const auto outcome = run(std::move(task));
        return outcome ? fop::Status::kDone : outcome.error().status;
    }
    // Begins it, lets the server work until it comes to a fop of this type, which it does not run
    // or does not answer, and takes the server's life.
    enum class When : std::uint8_t { kBefore, kAfter };
    template <typename T>
    Outcome<T> over_a_crash(When when, std::string type, Task<Outcome<T>> task) {
        (when == When::kBefore ? store.ignored : store.without_reply) = std::move(type);
        std::optional<Outcome<T>> outcome;
        reactor->spawn(gate, keep(std::move(task), &outcome));
        world.run_for(100ms);
        REQUIRE_FALSE(outcome.has_value());
        crash();
        store.try_again = try_again_after_crash;
        if (look_after_crash) look_after_crash();
        world.run_for(30s);
        REQUIRE(outcome.has_value());
        return std::move(*outcome);
    }

    // Begins it; the outcome is there when it has ended.
    template <typename T>
    std::unique_ptr<std::optional<Outcome<T>>> begin(Task<Outcome<T>> task) {
        auto outcome = std::make_unique<std::optional<Outcome<T>>>();
        reactor->spawn(gate, keep(std::move(task), outcome.get()));
        world.run_for(10ms);
        return outcome;
    }
    // Looks after each millisecond until it has ended.
    template <typename T, typename Look>
    Outcome<T> run_watched(Task<Outcome<T>> task, Look look) {
        std::optional<Outcome<T>> outcome;
        reactor->spawn(gate, keep(std::move(task), &outcome));
        for (int i = 0; i < 100'000 && !outcome; ++i) {
            world.run_for(1ms);
            look();
        }
        REQUIRE(outcome.has_value());
        return std::move(*outcome);
    }

    fop::Fid create(std::string name) {
        return done(client->create({.name = std::move(name)}, kNoWait));
    }
    void write(fop::Fid fid, std::uint64_t offset, std::string_view text,
               fop::Durability durability) {
        done(client->write({.fid = fid,
                            .offset = offset,
                            .from = std::as_bytes(std::span(text)),
                            .durability = durability},
                           kNoWait));
    }
    std::string read(fop::Fid fid, std::uint64_t offset = 0, std::size_t length = 100) {
        std::string into(length, '?');
        const auto bytes =
            done(client->read(fid, offset, std::as_writable_bytes(std::span(into)), kNoWait));
        return into.substr(0, bytes);
    }

    fabric::testing::ReplayedWorld world{7};
    fabric::MemTransport transport{{.seed = 7, .delay = fabric::kSimulatedDelay}};
    FakeStore store;
    std::optional<Life> life;
    std::unique_ptr<core::Reactor> reactor = world.make_reactor();
    fabric::testing::NotedEvents events;
    core::SeededEntropy entropy{99};
    fabric::SessionHost host{*reactor, events, entropy, fabric::testing::client_host_options()};
    std::optional<ObjectClient> client;
    core::Gate gate;
    bool closed = false;
    int try_again_after_crash = 0;  // See FakeStore.
    std::function<void()> look_after_crash;

private:
    template <typename T>
    static Task<void> keep(Task<Outcome<T>> task, std::optional<Outcome<T>>* outcome) {
        auto result = co_await std::move(task);
        outcome->emplace(std::move(result));
    }
};

inline std::vector<std::byte> pattern(std::size_t count) {
    core::Random random(count);
    std::vector<std::byte> bytes(count);
    for (std::byte& each : bytes) each = static_cast<std::byte>(random.below(256));
    return bytes;
}

}  // namespace fopd::client::testing

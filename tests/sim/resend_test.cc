// Goal: whatever becomes of the reply to a change, the change is made once: what comes again undoes
// nothing that another client was told of since. Method: a whole node and two processes with
// libfopd's objects; the first one's reply does not arrive, the other changes the same, and then
// the first one's connection is lost: alone, or because the node was killed, or for so long that no
// locality knows the client any more.
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "client/object_client.h"
#include "core/entropy.h"
#include "core/gate.h"
#include "fabric/mem/mem_transport.h"
#include "sim/client_host.h"
#include "sim/object_user.h"
#include "sim/simulated_node.h"
#include "tests/catch.h"
#include "tests/replay.h"

namespace fopd::sim {

namespace {

using client::ObjectClient;

constexpr std::uint64_t kSeed = 41;
constexpr std::string_view kNode = "node";
constexpr Duration kCallMax = 1min;

// A process of a client. It goes as one that is killed.
class Caller {
public:
    Caller(core::VirtualWorld& world, fabric::MemTransport& transport, std::string name)
        : world_(world),
          reactor_(world.make_reactor()),
          events_(world),
          entropy_(core::mix(kSeed, static_cast<unsigned char>(name.front()))),
          host_(*reactor_, events_, entropy_, client_host_options(name)) {
        const auto opened = host_.open(transport);
        REQUIRE(opened.has_value());
        client::ObjectClientOptions options;
        options.server = *fabric::parse_address("mem://node:1");
        objects_ = std::make_unique<ObjectClient>(host_, std::move(options));
        objects_->start();
    }
    ~Caller() { reactor_->drop_coroutines(); }

    ObjectClient& objects() { return *objects_; }
    ObjectClient::Wait wait() const { return {.deadline = after(world_.now(), 40min)}; }
    template <typename T>
    T done(Task<client::Outcome<T>> task) {
        auto outcome = world_.run(*reactor_, std::move(task));
        REQUIRE(outcome.has_value());
        if (!*outcome) FAIL(outcome->error().words);
        return **outcome;
    }
    void must(Task<client::Outcome<void>> task) {
        const auto outcome = world_.run(*reactor_, std::move(task));
        REQUIRE(outcome.has_value());
        if (!*outcome) FAIL(outcome->error().words);
    }
    // Goes on by itself.
    void begin(Task<client::Outcome<void>> task) {
        reactor_->spawn(calls_, note(this, std::move(task)));
    }
    bool has_ended() const { return ended_; }
    const std::string& problem() const { return problem_; }

private:
    static Task<void> note(Caller* self, Task<client::Outcome<void>> task) {
        const auto outcome = co_await std::move(task);
        self->ended_ = true;
        if (!outcome) self->problem_ = outcome.error().words;
    }

    core::VirtualWorld& world_;
    core::Gate calls_;
    std::unique_ptr<core::Reactor> reactor_;
    RecordedEvents events_;
    core::SeededEntropy entropy_;
    fabric::SessionHost host_;
    std::unique_ptr<ObjectClient> objects_;
    bool ended_ = false;
    std::string problem_;
};

class Stage : fopd::testing::Replay {
public:
    Stage() : Replay(kSeed), world(kSeed), node_(world, options()) {
        node_.start();
        become_ready();
    }
    ~Stage() { node_.crash(); }

    void restart() {
        node_.crash();
        node_.start();
        become_ready();
    }

    core::VirtualWorld world;
    fabric::MemTransport transport{{.seed = kSeed, .delay = fabric::kSimulatedDelay}};

private:
    SimulatedNodeOptions options() {
        SimulatedNodeOptions made;
        made.name = kNode;
        made.localities = 2;
        made.network = &transport;
        made.disks.push_back({.name = "d0", .size_bytes = 32UL << 20});
        return made;
    }
    void become_ready() {
        while (!node_.running() || node_.node().state() != daemon::NodeState::kReady) {
            REQUIRE(world.step());
        }
    }

    SimulatedNode node_;
};

std::vector<std::byte> some_bytes(std::size_t count, std::uint8_t seed) {
    std::vector<std::byte> bytes(count);
    for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 7 + seed);
    return bytes;
}

// How the first one comes to ask again.
enum class End : std::uint8_t { kLost, kKilled, kForgotten };

// An object of the other one's, and a change by the first one whose reply does not arrive.
struct Resend {
    Stage stage;
    Caller first{stage.world, stage.transport, "first"};
    Caller other{stage.world, stage.transport, "other"};
    fop::Fid fid{};

    Resend() {
        fid = other.done(other.objects().create({.name = "shared", .mode = 0600}, other.wait()));
        // It has its session before it is cut off.
        REQUIRE(first.done(first.objects().stat(fid, first.wait())).size_bytes == 0);
    }

    void begin_unheard(Task<client::Outcome<void>> change) {
        network().block(back_);
        first.begin(std::move(change));
        stage.world.run_for(1s);
        REQUIRE_FALSE(first.has_ended());
    }
    void come_again(End end) {
        if (end == End::kForgotten) stage.world.run_for(7min);
        if (end == End::kKilled) stage.restart();
        network().lose_connections(there_, fabric::LossNotice::kBoth);
        network().unblock(back_);
        stage.world.run_for(kCallMax);
        REQUIRE(first.has_ended());
        CHECK(first.problem().empty());
    }
    // By the other one.
    std::uint64_t size() { return other.done(other.objects().stat(fid, other.wait())).size_bytes; }
    std::vector<std::byte> read() {
        std::vector<std::byte> bytes(size());
        REQUIRE(other.done(other.objects().read(fid, 0, bytes, other.wait())) == bytes.size());
        return bytes;
    }
    void write(std::span<const std::byte> bytes) {
        other.must(other.objects().write({.fid = fid, .from = bytes}, other.wait()));
    }

private:
    fabric::MemNetwork& network() { return stage.transport.network(); }

    const fabric::MemRoute there_{.from = "first", .to = kNode};
    const fabric::MemRoute back_{.from = kNode, .to = "first"};
};

}  // namespace

TEST_CASE("sim resend: a retried truncate does not cut off a later append", "[sim]") {
    const End end = GENERATE(End::kLost, End::kKilled, End::kForgotten);
    CAPTURE(static_cast<int>(end));
    Resend resend;
    resend.write(some_bytes(20'000, 1));
    Caller& first = resend.first;
    Caller& other = resend.other;

    resend.begin_unheard(first.objects().truncate(resend.fid, 5000, first.wait()));
    REQUIRE(resend.size() == 5000);
    const auto more = some_bytes(3000, 2);
    REQUIRE(other.done(other.objects().append(resend.fid, more, other.wait())) == 5000);
    resend.come_again(end);

    CHECK(resend.size() == 8000);
    const auto bytes = resend.read();
    CHECK(std::ranges::equal(std::span(bytes).subspan(5000), more));
}

TEST_CASE("sim resend: a retried write does not overwrite another client's", "[sim]") {
    const End end = GENERATE(End::kLost, End::kKilled, End::kForgotten);
    CAPTURE(static_cast<int>(end));
    Resend resend;
    Caller& first = resend.first;
    const auto small = some_bytes(3000, 1);
    const auto others = some_bytes(20'000, 2);

    resend.begin_unheard(first.objects().write({.fid = resend.fid, .from = small}, first.wait()));
    REQUIRE(resend.size() == small.size());
    resend.write(others);
    resend.come_again(end);

    CHECK(resend.read() == others);
}

}  // namespace fopd::sim

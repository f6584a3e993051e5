// Goal: sessions that take nothing of what was sent to them leave buffers to send from to the
// others, those of one principal to other principals, and all of them to handshakes. The same for
// transfers whose peers move no bytes, and for the memory of requests.
#include <deque>
#include <string>

#include "tests/catch.h"
#include "tests/fabric/send_stage.h"

namespace fopd::fabric::testing {

namespace {

constexpr std::size_t kStuck = 8;

}  // namespace

TEST_CASE("fabric send buffers: sessions that take nothing leave some to the others", "[fabric]") {
    std::deque<Echoed> unanswered(kStuck * 64);
    std::deque<Echoed> answered(20);
    std::deque<Echoed> early_answers(kStuck * 400);
    SendStage stage;
    std::vector<std::string> hosts;
    std::vector<Client*> stuck;
    for (std::size_t i = 0; i < kStuck; ++i) {
        hosts.push_back("stuck" + std::to_string(i));
        stuck.push_back(&stage.add(hosts.back()));
    }
    Client& early = stage.add("early");
    stage.run_for(50ms);
    // They are given more credits the more they do.
    for (std::size_t i = 0; i < early_answers.size(); ++i) {
        stage.ask(*stuck[i % kStuck], early_answers[i]);
    }
    stage.run_for(1s);
    const std::size_t before = stage.echoed();
    REQUIRE(before == early_answers.size());
    for (const std::string& host : hosts) stage.network().block({.from = "server", .to = host});
    for (std::size_t i = 0; i < unanswered.size(); ++i)
        stage.ask(*stuck[i % kStuck], unanswered[i]);
    stage.run_for(200ms);
    REQUIRE(stage.echoed() > before + 2 * kSendBuffers);
    for (const Echoed& each : unanswered) REQUIRE_FALSE(each.done);

    // A session that was there, and one that comes now.
    Client& late = stage.add("late");
    stage.run_for(50ms);
    CHECK(early.open());
    CHECK(late.open());
    for (std::size_t i = 0; i < answered.size(); ++i) {
        stage.ask(i % 2 == 0 ? early : late, answered[i]);
        stage.run_for(5ms);
        CHECK(answered[i].done);
    }

    for (const std::string& host : hosts) stage.network().unblock({.from = "server", .to = host});
    stage.run_for(2s);
    for (const Echoed& each : unanswered) CHECK(each.done);
}

namespace {

// Clients may have as much under way from the start as it takes to fill the network.
HostOptions generous_options() {
    HostOptions options = server_host_options();
    options.message_credits_floor = options.message_credits_max = 64;
    options.fop_credits_floor = options.fop_credits_max = 64;
    return options;
}

// Clients of one principal, more than there are buffers, on hosts that take nothing any more.
class Greedy {
public:
    static constexpr std::size_t kCount = kSendBuffers + 8;
    // So many answers fill what the network holds of a connection: the next message stays in its
    // buffer.
    static constexpr std::size_t kFilling = 33;

    explicit Greedy(SendStage& stage, std::uint8_t key = 2) : stage_(stage) {
        stage.ask_little();
        std::vector<std::string> hosts;
        for (std::size_t i = 0; i < kCount; ++i) {
            hosts.push_back("greedy" + std::to_string(key) + "-" + std::to_string(i));
            clients_.push_back(&stage.add(hosts.back(), key_of(key)));
        }
        stage.run_for(100ms);
        for (const Client* each : clients_) REQUIRE(each->open());
        for (const std::string& host : hosts) stage.network().block({.from = "server", .to = host});
    }
    void ask(std::size_t each_asks) {
        for (std::size_t i = 0; i < kCount * each_asks; ++i) {
            stage_.ask(*clients_[i % kCount], unanswered_.emplace_back());
        }
        const std::size_t before = stage_.echoed();
        stage_.run_for(100ms);
        REQUIRE(stage_.echoed() == before + kCount * each_asks);
    }

private:
    SendStage& stage_;
    std::vector<Client*> clients_;
    std::deque<Echoed> unanswered_;
};

}  // namespace

TEST_CASE("fabric send buffers: many sessions of one principal leave some to another principal",
          "[fabric]") {
    std::deque<Echoed> answered(20);
    std::optional<Greedy> greedy;
    SendStage stage(generous_options());
    greedy.emplace(stage);
    Client& other = stage.add("other");
    stage.run_for(50ms);
    greedy->ask(Greedy::kFilling);
    greedy->ask(1);

    for (Echoed& each : answered) {
        stage.ask(other, each);
        stage.run_for(5ms);
        CHECK(each.done);
    }
    CHECK(stage.ended() == 0);
}

TEST_CASE(
    "fabric send buffers: what keeps one principal's sessions going leaves room to handshakes",
    "[fabric]") {
    std::deque<Echoed> answered(1);
    std::optional<Greedy> greedy;
    SendStage stage(generous_options());
    greedy.emplace(stage);
    greedy->ask(Greedy::kFilling);
    // Idle clients ask for a sign of life, which they do not take.
    stage.run_for(15s + 200ms);

    Client& late = stage.add("late");
    stage.run_for(50ms);
    CHECK(late.open());
    stage.ask(late, answered[0]);
    stage.run_for(5ms);
    CHECK(answered[0].done);

    // Those of its sessions that wait for room have the slowest of its sessions ended.
    CHECK(stage.ended() == 0);
    stage.run_for(2s);
    CHECK(stage.ended() > 0);
    CHECK(late.open());
}

TEST_CASE("fabric send buffers: replies of fops leave room to control messages", "[fabric]") {
    std::deque<Echoed> answered(1);
    std::deque<Greedy> greedy;
    SendStage stage(generous_options());
    Client& other = stage.add("other");
    // Half a lease after its last message it asks for a sign of life.
    stage.run_for(14s);
    REQUIRE(other.open());
    // Of what one principal leaves the next one takes the most, and the third one the rest.
    for (std::uint8_t key = 2; key <= 4; ++key) greedy.emplace_back(stage, key);
    for (Greedy& each : greedy) each.ask(Greedy::kFilling);
    const std::uint64_t before = stage.messages_to(0);
    for (Greedy& each : greedy) each.ask(1);
    REQUIRE(stage.messages_to(0) == before);

    stage.run_for(200ms);
    CHECK(stage.messages_to(0) == before + 1);
    stage.ask(other, answered[0]);
    stage.run_for(100ms);
    CHECK_FALSE(answered[0].done);  // There is no room for another reply.
    CHECK(stage.ended() == 0);
    stage.run_for(3s);
    CHECK(answered[0].done);
    CHECK(other.open());
}

TEST_CASE("fabric credits: many sessions of one principal leave some to another principal",
          "[fabric]") {
    constexpr std::size_t kSessions = 40;
    constexpr std::size_t kOfEach = 400;
    HostOptions options = server_host_options();
    options.fop_credits_total = 512;  // A tenth of what they could use.
    std::deque<Echoed> echoes((kSessions + 1) * kOfEach);
    SendStage stage(options);
    stage.ask_little();
    std::vector<Client*> clients;
    for (std::size_t i = 0; i < kSessions; ++i) {
        clients.push_back(&stage.add("greedy" + std::to_string(i), key_of(2)));
    }
    stage.run_for(100ms);
    for (std::size_t i = 0; i < kSessions * kOfEach; ++i) {
        stage.ask(*clients[i % kSessions], echoes[i]);
    }
    stage.run_for(1s);
    Client& other = stage.add("other");
    stage.run_for(50ms);
    for (std::size_t i = 0; i < kOfEach; ++i) stage.ask(other, echoes[kSessions * kOfEach + i]);
    stage.run_for(1s);

    CHECK(std::ranges::all_of(echoes, &Echoed::done));
    std::uint32_t of_greedy = 0;
    for (const SessionInfo& each : stage.sessions()) {
        if (each.principal == "tester") CHECK(each.fop_credits == 64);
        if (each.principal == "greedy") of_greedy += each.fop_credits;
    }
    CHECK(of_greedy > kSessions * 8 + 512 / 2);
}

TEST_CASE("fabric requests: many sessions of one principal leave memory to another principal",
          "[fabric]") {
    constexpr std::size_t kSessions = 10;
    constexpr std::size_t kOfEach = 8;  // As many as a session may always have in flight.
    constexpr std::uint64_t kBytesMax = 256U << 10;
    std::deque<Echoed> echoes(kSessions * kOfEach);
    Echoed of_other;
    Echoed again;
    SendStage stage(server_host_options(), {.request_bytes_max = kBytesMax});
    std::vector<Client*> clients;
    for (std::size_t i = 0; i < kSessions; ++i) {
        clients.push_back(&stage.add("greedy" + std::to_string(i), key_of(2)));
    }
    stage.run_for(100ms);
    stage.hold();
    for (std::size_t i = 0; i < echoes.size(); ++i) stage.ask(*clients[i % kSessions], echoes[i]);
    stage.run_for(1s);

    CHECK(stage.held() * 8000 > kBytesMax / 2);
    CHECK(stage.request_bytes() < kBytesMax - 20'000);
    const std::size_t of_greedy = stage.held();
    stage.ask(stage.add("other"), of_other);
    stage.run_for(100ms);
    CHECK(stage.held() == of_greedy + 1);
    CHECK(stage.counts().lacked_requests.get() == echoes.size() - of_greedy);
    CHECK(stage.ended() == 0);

    stage.answer_held();
    stage.run_for(100ms);
    CHECK(of_other.done);
    CHECK(static_cast<std::size_t>(std::ranges::count_if(echoes, &Echoed::done)) == of_greedy);
    CHECK(stage.request_bytes() == 0);
    stage.ask(*clients.front(), again);
    stage.run_for(100ms);
    CHECK(again.done);
}

TEST_CASE("fabric requests: those of the control lane count for their principal, too", "[fabric]") {
    constexpr std::size_t kSessions = 50;
    constexpr std::size_t kOfEach = 4;
    constexpr std::uint64_t kBytesMax = 256U << 10;
    std::deque<bool> pinged(kSessions * kOfEach);
    std::deque<Echoed> of_others(2);
    SendStage stage(server_host_options(), {.request_bytes_max = kBytesMax});
    std::vector<Client*> clients;
    for (std::size_t i = 0; i < kSessions; ++i) {
        clients.push_back(&stage.add("greedy" + std::to_string(i), key_of(2)));
    }
    Client& other = stage.add("other");
    stage.run_for(100ms);
    stage.hold();
    for (std::size_t i = 0; i < pinged.size(); ++i) stage.ping(*clients[i % kSessions], pinged[i]);
    stage.run_for(1s);

    const std::size_t of_greedy = stage.held();
    CHECK(of_greedy > kSessions);
    CHECK(stage.request_bytes() < kBytesMax - 20'000);
    CHECK(stage.counts().lacked_requests.get() == pinged.size() - of_greedy);
    for (Echoed& each : of_others) stage.ask(other, each);
    stage.run_for(100ms);
    CHECK(stage.held() == of_greedy + of_others.size());

    stage.answer_held();
    stage.run_for(100ms);
    CHECK(std::ranges::all_of(of_others, &Echoed::done));
    CHECK(static_cast<std::size_t>(std::ranges::count(pinged, true)) == of_greedy);
    CHECK(stage.request_bytes() == 0);
}

TEST_CASE("fabric replies: who takes none is ended before who takes them, with the same key",
          "[fabric]") {
    constexpr std::size_t kOfEach = 8;  // As many as a session may always have in flight.
    constexpr std::size_t kOfReader = 64;
    constexpr std::uint64_t kBytes = 8000;
    std::deque<Echoed> untaken(kStuck * kOfEach);
    std::deque<Echoed> early(400);
    std::deque<Echoed> answered(kOfReader);
    // What the stuck sessions have fits, or what the reader has.
    SendStage stage(server_host_options(), {.unsent_bytes_max = 700U << 10});
    stage.ask_little();
    // A message to these takes one reply, and the server may send two before it hears from them.
    const auto options = [](const std::string& host, std::uint16_t credits) {
        HostOptions of_client = client_host_options(host);
        of_client.machine.receive_buffer_bytes = 12U << 10;
        of_client.message_credits_floor = of_client.message_credits_max = credits;
        return of_client;
    };
    Client& reader = stage.add(key_of(2), options("reader", 70));
    std::vector<std::string> hosts;
    std::vector<Client*> stuck;
    for (std::size_t i = 0; i < kStuck; ++i) {
        hosts.push_back("stuck" + std::to_string(i));
        stuck.push_back(&stage.add(key_of(2), options(hosts.back(), 3)));
    }
    stage.run_for(100ms);
    // It is given more credits the more it does.
    for (Echoed& each : early) stage.ask(reader, each);
    stage.run_for(1s);
    REQUIRE(std::ranges::all_of(early, &Echoed::done));
    stage.hold();
    for (std::size_t i = 0; i < untaken.size(); ++i) stage.ask(*stuck[i % kStuck], untaken[i]);
    stage.run_for(10ms);
    REQUIRE(stage.held() == untaken.size());
    for (const std::string& host : hosts) stage.network().block({.from = "server", .to = host});
    stage.answer_held_with_much();
    stage.run_for(10ms);
    const std::uint64_t of_stuck = stage.unsent_bytes();
    REQUIRE(of_stuck > kStuck * (kOfEach - 3) * kBytes);

    // All of them in one turn, in which they cannot all leave.
    stage.hold();
    for (Echoed& each : answered) stage.ask(reader, each);
    stage.run_for(10ms);
    REQUIRE(stage.held() == kOfReader);
    stage.answer_held_with_much();
    stage.run_for(100ms);

    CHECK(std::ranges::all_of(answered, &Echoed::done));
    CHECK(reader.open());
    CHECK(reader.reconnects() == 0);
    CHECK(stage.ended() > 0);
    CHECK(stage.ended() <= kStuck);
    CHECK(stage.counts().ended.get() == stage.ended());
    CHECK(stage.unsent_bytes() < of_stuck);

    // The others ask again when they can.
    for (const std::string& host : hosts) stage.network().unblock({.from = "server", .to = host});
    stage.run_for(90s);
    CHECK(std::ranges::all_of(untaken, &Echoed::done));
    CHECK(stage.unsent_bytes() == 0);
}

TEST_CASE("fabric transfers: many sessions of one principal leave some to another principal",
          "[fabric]") {
    constexpr std::size_t kSessions = 48;
    constexpr std::size_t kOfEach = 16;
    std::deque<BulkEchoed> unmoved(kSessions * kOfEach);
    std::deque<BulkEchoed> moved(20);
    SendStage stage(generous_options());
    std::vector<std::string> hosts;
    std::vector<Client*> greedy;
    for (std::size_t i = 0; i < kSessions; ++i) {
        hosts.push_back("greedy" + std::to_string(i));
        greedy.push_back(&stage.add(hosts.back(), key_of(2)));
    }
    Client& other = stage.add("other");
    stage.run_for(100ms);
    // What they ask arrives, but the transfers that the server starts stand still.
    for (const std::string& host : hosts) stage.network().block({.from = "server", .to = host});
    for (std::size_t i = 0; i < unmoved.size(); ++i) stage.move(*greedy[i % kSessions], unmoved[i]);
    stage.run_for(100ms);

    for (BulkEchoed& each : moved) {
        stage.move(other, each);
        stage.run_for(5ms);
        CHECK(each.done);
    }
    CHECK(std::ranges::none_of(unmoved, &BulkEchoed::done));

    for (const std::string& host : hosts) stage.network().unblock({.from = "server", .to = host});
    stage.run_for(2s);
    for (const BulkEchoed& each : unmoved) {
        CHECK(each.done);
        CHECK(each.back == each.from);
    }
}

}  // namespace fopd::fabric::testing

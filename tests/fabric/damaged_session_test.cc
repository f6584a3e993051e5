// Goal: a network that changes a session at any of its bytes brings no wrong answer. Each call ends
// with the right bytes or an error, and the next session works.
// Method: a session over `tcp` in the simulated world is recorded: its handshake, an echo within
// messages, and one by transfers. Then it is made again for each of its bytes and each kind of
// damage. Connections that a client makes after the damage are whole.

#include <algorithm>
#include <string>
#include <vector>

#include "core/copy_bytes.h"
#include "core/crc32c.h"
#include "fabric/mem/mem_sockets.h"
#include "fabric/tcp/frame.h"
#include "fabric/tcp/record_reader.h"
#include "fabric/tcp/tcp_transport.h"
#include "tests/fabric/damaged_sockets.h"
#include "tests/fabric/rpc_calls.h"

namespace fopd::fabric::testing::damaged_session_test {

namespace {

using rpc::EchoResult;
using DamageKind = Damage::Kind;
using Way = Damage::Way;

constexpr std::array kWays{Way::kFromClient, Way::kFromServer};
constexpr Duration kTimeout = 10s;
// A call that is given up may wait a little for the server to let its memory go.
constexpr Duration kGrace = 5s;
constexpr std::string_view kWords = "forty bytes that travel within a message";
constexpr std::size_t kBulkBytes = 90;
constexpr char kGuard = '#';

class DamageStage {
public:
    DamageStage(std::uint64_t seed, fop::Protection protection)
        : random_(seed), world_(seed), sockets_(world_, network_, seed), protection_(protection) {
        const Address address = sockets_.address_of("server", 1);
        server_options_.protection = client_options_.protection = protection;
        // Each damaged handshake keeps its place for a while.
        server_.emplace(*transport_, *server_reactor_,
                        Admission{.keys = ring_of({principal("tester", {rpc::kKey})})},
                        server_options_, 1, format_address(address),
                        ServerOptions{.handshakes_max = 1U << 16});
        options_.server = address;
        options_.credentials = credentials(rpc::kKey);
        REQUIRE(host_.open(*transport_).has_value());
    }
    ~DamageStage() {
        CHECK(world_.run(*client_reactor_, host_.close()));
        CHECK(world_.run(*server_reactor_, server_->stop()));
    }

    // Makes a session with this damage, and two calls.
    void run(const std::optional<Damage>& damage) {
        damaged_.begin(damage);
        ++run_count;
        Client client(host_, options_);
        EchoResult words;
        EchoResult bulk;
        from_.assign(kBulkBytes, 'f');
        into_.assign(kBulkBytes + 2, kGuard);
        core::Gate gate;
        const Instant end = after(world_.now(), kTimeout);
        client_reactor_->spawn(gate, call(&client, &words, &bulk, end));
        const auto both_end = [&] { return words.done && bulk.done; };
        while (!both_end() && world_.step(after(end, kGrace))) {
        }
        const std::string wrong = problem_of(words, words.text == kWords) +
                                  problem_of_bulk(bulk, client.reconnects() > 0);
        CHECK(world_.run(*client_reactor_, client.close()));
        damaged_count += damaged_.has_damaged();
        REQUIRE(wrong == "");
    }

    // The session as it is without damage.
    void record() {
        run({});
        REQUIRE(done_count == 2);
        for (const Way way : kWays) {
            Bytes& bytes = recorded(way);
            bytes = damaged_.sent(way);
            // The lengths of later sessions are the same, or a little shorter.
            REQUIRE(bytes.size() > 500);
        }
    }
    Bytes& recorded(Way way) { return recorded_[way == Way::kFromServer]; }
    // Where frames and records of the recorded session begin; the last one is its end.
    std::vector<std::size_t> boundaries(Way way) {
        std::vector<std::size_t> begins{0};
        const std::span<const std::byte> all(recorded(way));
        while (begins.back() < all.size()) {
            const auto rest = all.subspan(begins.back());
            begins.push_back(begins.back() + std::min(length_of_first(rest), rest.size()));
        }
        return begins;
    }

    void end_checks() {
        run({});
        world_.run_for(60s);
        REQUIRE(server_->host.session_count() == 0);
        REQUIRE(server_->host.at_rest());
        REQUIRE(server_->server.held() == 0);
        // Most calls are made again over the next connection.
        INFO(run_count << " sessions, " << damaged_count << " damaged; " << done_count
                       << " calls done");
        REQUIRE(done_count > run_count);
        // Not those that end before the damage, and exchanges of bytes that are the same.
        REQUIRE(damaged_count > run_count * 9 / 10);
    }

    core::Random& random() { return random_; }

    std::size_t run_count = 0;
    std::size_t damaged_count = 0;
    std::size_t done_count = 0;

private:
    Task<void> call(Client* client, EchoResult* words, EchoResult* bulk, Instant end) {
        client->start();
        co_await rpc::echo(client, std::string(kWords), words, end);
        const CallRequest request{.type = &rpc::type("bulk_echo"),
                                  .body = fop::BulkEcho{.bytes = kBulkBytes},
                                  .source = std::as_writable_bytes(std::span(from_)),
                                  .target = target(),
                                  .deadline = end};
        bulk->answer = co_await client->call(request);
        bulk->done = true;
    }
    std::span<std::byte> target() {
        return std::as_writable_bytes(std::span(into_)).subspan(1, kBulkBytes);
    }

    // Empty: it ended as it may.
    std::string problem_of(const EchoResult& result, bool is_right) {
        if (!result.done) return "a call does not end; ";
        if (!result.answer) {
            constexpr std::array kLawful{Errc::kTimedOut, Errc::kClosed, Errc::kDenied,
                                         Errc::kCorrupt, Errc::kUnsupported};
            const Error& error = result.answer.error();
            const bool is_lawful = std::ranges::find(kLawful, error.code) != kLawful.end();
            return is_lawful ? std::string() : "a call ended with: " + describe(error) + "; ";
        }
        if (result.answer->status != fop::Status::kDone) return {};
        ++done_count;
        return is_right ? std::string() : "a call has a wrong answer; ";
    }
    // The bytes of a transfer are not sealed; their sum in the reply is. Encrypted, they arrive or
    // are lost with the session. The reply may be remembered, and be had from the next one.
    std::string problem_of_bulk(const EchoResult& result, bool has_reconnected) {
        bool is_right = true;
        if (result.done && result.answer && result.answer->status == fop::Status::kDone) {
            const auto* const reply = std::get_if<fop::BulkEchoReply>(&result.answer->body);
            if (reply == nullptr) return "a call has another call's answer; ";
            const bool is_told =
                reply->crc != core::crc32c(bytes_of(from_)) || reply->crc != core::crc32c(target());
            if (is_told && protection_ == fop::Protection::kEncrypt && !has_reconnected) {
                return "encrypted bytes have changed; ";
            }
            is_right = is_told || text_of(target()) == from_;
        }
        const bool is_untouched = from_ == std::string(kBulkBytes, 'f') &&
                                  into_.front() == kGuard && into_.back() == kGuard;
        return problem_of(result, is_right) +
               (is_untouched ? "" : "memory that was not lent has changed; ");
    }

    static std::size_t length_of_first(std::span<const std::byte> bytes) {
        if (bytes.size() < kRecordLabelBytes) return bytes.size();
        if (bytes.size() >= kFrameHeaderBytes) {
            const auto frame = decode_frame(bytes.first<kFrameHeaderBytes>());
            if (frame) return kFrameHeaderBytes + frame->body_bytes();
        }
        std::size_t plain = 0;
        for (std::size_t i = kRecordLabelBytes; i > 0; --i) {
            plain = plain << 8 | std::to_integer<std::size_t>(bytes[i - 1]);
        }
        return kRecordLabelBytes + plain + fop::RecordCipher::kTagBytes;
    }

    core::Random random_;
    ReplayedWorld world_;
    MemNetwork network_{{.seed = 7, .delay = kSimulatedDelay}};
    MemSockets sockets_;
    DamagedSockets damaged_{sockets_};
    core::NullEventSink no_events_;
    std::unique_ptr<Transport> transport_ =
        make_tcp_transport(no_events_, {.random_key = &next_key, .sockets = &damaged_});
    const fop::Protection protection_;
    HostOptions server_options_ = server_host_options();
    HostOptions client_options_ = client_host_options();
    std::unique_ptr<core::Reactor> server_reactor_ = world_.make_reactor();
    std::unique_ptr<core::Reactor> client_reactor_ = world_.make_reactor();
    std::optional<ServerSide> server_;
    NotedEvents events_;
    core::SeededEntropy entropy_{99};
    SessionHost host_{*client_reactor_, events_, entropy_, [this] {
                          client_options_.protection = protection_;
                          return client_options_;
                      }()};
    ClientOptions options_;
    std::string from_;
    std::string into_;
    std::array<Bytes, 2> recorded_;
};

fop::Protection any_protection() {
    const auto protection = GENERATE(fop::Protection::kSeal, fop::Protection::kEncrypt);
    CAPTURE(protection == fop::Protection::kEncrypt);
    return protection;
}

}  // namespace

TEST_CASE("fabric damage: a bit may flip in any byte of a session", "[fabric]") {
    DamageStage stage(11, any_protection());
    stage.record();
    for (const Way way : kWays) {
        for (std::size_t at = 0; at < stage.recorded(way).size(); ++at) {
            CAPTURE(way == Way::kFromServer, at);
            stage.run(Damage{.kind = DamageKind::kFlip,
                             .way = way,
                             .at = at,
                             .bit = static_cast<unsigned>(stage.random().below(8))});
        }
    }
    stage.end_checks();
}

TEST_CASE("fabric damage: a session may end before any of its bytes", "[fabric]") {
    DamageStage stage(12, any_protection());
    stage.record();
    for (const Way way : kWays) {
        for (std::size_t at = 0; at < stage.recorded(way).size(); ++at) {
            CAPTURE(way == Way::kFromServer, at);
            stage.run(Damage{.kind = DamageKind::kCut, .way = way, .at = at});
        }
    }
    stage.end_checks();
}

TEST_CASE("fabric damage: frames may be lost, come twice, change places or be of another session",
          "[fabric]") {
    DamageStage stage(13, any_protection());
    stage.record();
    for (const Way way : kWays) {
        const std::vector<std::size_t> begins = stage.boundaries(way);
        REQUIRE(begins.size() > 5);
        for (std::size_t i = 0; i + 1 < begins.size(); ++i) {
            const std::size_t at = begins[i];
            const std::size_t count = begins[i + 1] - at;
            CAPTURE(way == Way::kFromServer, at, count);
            stage.run(Damage{.kind = DamageKind::kDrop, .way = way, .at = at, .count = count});
            stage.run(Damage{.kind = DamageKind::kExchange, .way = way, .at = at, .count = count});
            // The frame before, which has as many bytes.
            if (i > 0) {
                stage.run(Damage{.kind = DamageKind::kRepeat,
                                 .way = way,
                                 .at = at,
                                 .count = at - begins[i - 1]});
            }
            // Each frame of the recorded session.
            for (std::size_t other = 0; other + 1 < begins.size(); ++other) {
                const auto begin = stage.recorded(way).begin();
                stage.run(Damage{
                    .kind = DamageKind::kInsert,
                    .way = way,
                    .at = at,
                    .inserted = Bytes(begin + static_cast<std::ptrdiff_t>(begins[other]),
                                      begin + static_cast<std::ptrdiff_t>(begins[other + 1]))});
            }
        }
    }
    stage.end_checks();
}

TEST_CASE("fabric damage: bytes may be lost, come twice, change places or be foreign anywhere",
          "[fabric]") {
    DamageStage stage(14, any_protection());
    stage.record();
    core::Random& random = stage.random();
    for (const Way way : kWays) {
        for (int i = 0; i < 500; ++i) {
            Damage damage{.way = way, .at = random.below(stage.recorded(way).size())};
            constexpr std::array kKinds{DamageKind::kDrop, DamageKind::kRepeat, DamageKind::kInsert,
                                        DamageKind::kExchange};
            damage.kind = kKinds[random.below(kKinds.size())];
            constexpr std::array<std::size_t, 3> kCounts{1, 32, 200};
            damage.count = kCounts[random.below(kCounts.size())];
            damage.inserted.resize(damage.count);
            for (std::byte& each : damage.inserted)
                each = static_cast<std::byte>(random.below(256));
            CAPTURE(way == Way::kFromServer, damage.at, damage.count,
                    static_cast<int>(damage.kind));
            stage.run(damage);
        }
    }
    stage.end_checks();
}

}  // namespace fopd::fabric::testing::damaged_session_test

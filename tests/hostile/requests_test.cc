#include <deque>
#include <string>
#include <vector>

#include "fop/descriptor.h"
#include "fop/token.h"
#include "tests/hostile/stage.h"

// Goal: what is wrong with a request costs that request, and one that reaches for memory it was
// not lent reaches nothing. Method: as for the handshake; the memory is the hostile process's own.

using namespace fopd;
using namespace fopd::fabric;
using namespace fopd::fabric::testing;

namespace {

fop::Status status_of(RawPeer& peer, const fop::Request& request) {
    peer.send(peer.requests({request}));
    const auto answer = peer.answer(request.id);
    REQUIRE(answer.has_value());
    return answer->status;
}

void expect_echo(RawPeer& peer) {
    REQUIRE(status_of(peer, echo_request(999)) == fop::Status::kDone);
}

// Memory lent for one bulk_echo.
struct Lent {
    explicit Lent(RawPeer& to, std::uint64_t operation, std::size_t size_bytes = 4096)
        : peer(to),
          from(peer.process().memory(std::string(size_bytes, 'f'))),
          into(peer.process().memory(std::string(size_bytes, '.'))),
          opened_from(peer.process().open(from, Access::kRead)),
          opened_into(peer.process().open(into, Access::kWrite)) {
        source = {.use = fop::DescriptorUse::kPeerReads,
                  .session = peer.session_id(),
                  .operation = operation,
                  .address = opened_from.address,
                  .key = opened_from.key,
                  .bytes = size_bytes};
        target = {.use = fop::DescriptorUse::kPeerWrites,
                  .session = peer.session_id(),
                  .operation = operation,
                  .address = opened_into.address,
                  .key = opened_into.key,
                  .bytes = size_bytes};
    }
    ~Lent() {
        peer.process().close(opened_from);
        peer.process().close(opened_into);
    }
    Lent(const Lent&) = delete;
    Lent& operator=(const Lent&) = delete;

    fop::Request request(std::uint64_t id, std::uint64_t bytes) const {
        const fop::MacKey& key = peer.session().keys.descriptor;
        return {.id = id,
                .type = 3,
                .body = fop::BulkEcho{.source = fop::seal(source, key),
                                      .target = fop::seal(target, key),
                                      .bytes = bytes}};
    }

    RawPeer& peer;
    Memory& from;
    Memory& into;
    RemoteMemory opened_from;
    RemoteMemory opened_into;
    fop::Descriptor source;
    fop::Descriptor target;
};

}  // namespace

TEST_CASE("hostile request: of a type nobody knows is answered, and the next one too",
          "[hostile]") {
    HostileStage stage(any_hostile_kind());
    RawPeer& peer = stage.open_peer();

    peer.send(peer.requests({{.id = 1, .type = 60'000, .body = fop::Echo{}},
                             {.id = 2, .type = 0, .body = {}},
                             echo_request(3)}));

    REQUIRE(peer.answer(1)->status == fop::Status::kUnknownFop);
    REQUIRE(peer.answer(2)->status == fop::Status::kUnknownFop);
    REQUIRE(peer.answer(3)->status == fop::Status::kDone);
}

TEST_CASE("hostile request: with another type's body is malformed", "[hostile]") {
    HostileStage stage(any_hostile_kind());
    RawPeer& peer = stage.open_peer();

    REQUIRE(status_of(peer, {.id = 1, .type = 1, .body = fop::Echo{}}) == fop::Status::kMalformed);
    REQUIRE(status_of(peer, {.id = 2, .type = 3, .body = {}}) == fop::Status::kMalformed);
    REQUIRE(status_of(peer, {.id = 3, .type = 1, .payload = bytes_of("x"), .body = fop::Ping{}}) ==
            fop::Status::kMalformed);
    expect_echo(peer);
}

TEST_CASE("hostile request: without a number is malformed, and costs no other", "[hostile]") {
    HostileStage stage(any_hostile_kind());
    RawPeer& peer = stage.open_peer();

    REQUIRE(status_of(peer, ping_request(0)) == fop::Status::kMalformed);
    expect_echo(peer);
}

TEST_CASE("hostile request: a payload that is too large is said to be", "[hostile]") {
    HostileStage stage(any_hostile_kind(), {.inline_max = 4096});
    RawPeer& peer = stage.open_peer();
    const std::string large(4097, 'x');

    REQUIRE(status_of(peer, echo_request(1, large)) == fop::Status::kTooLarge);

    expect_echo(peer);
}

TEST_CASE("hostile request: a message larger than a buffer ends its connection", "[hostile]") {
    HostileStage stage(any_hostile_kind());
    RawPeer& peer = stage.open_peer();

    peer.send(peer.requests({echo_request(1, std::string(60'000, 'x'))}));

    REQUIRE(peer.wait_closed());
    REQUIRE(stage.wait_count(&HostStatistics::lost, 1));
}

TEST_CASE("hostile request: a payload that was spoilt is found out", "[hostile]") {
    HostileStage stage(any_hostile_kind());
    RawPeer& peer = stage.open_peer();
    std::string message = peer.requests({echo_request(1), echo_request(2)});
    message[fop::kPrefixBytes] = 'j';  // Not under the MAC.

    peer.send(message);

    REQUIRE(peer.answer(1)->status == fop::Status::kCorrupt);
    REQUIRE(peer.answer(2)->status == fop::Status::kDone);
}

TEST_CASE("hostile request: an answer that its sender cannot take is too large", "[hostile]") {
    HostileStage stage(any_hostile_kind());
    RawPeer& peer =
        stage.peer(RawPeer::Options{.credentials = credentials(HostileStage::good_key()),
                                    .offer = {.message_bytes_max = 2048, .message_credits = 100}});
    REQUIRE(peer.open());

    REQUIRE(status_of(peer, echo_request(1, std::string(8000, 'x'))) == fop::Status::kTooLarge);

    expect_echo(peer);
}

TEST_CASE("hostile request: what moves memory needs rights for it", "[hostile]") {
    HostileStage stage(any_hostile_kind());
    RawPeer& peer = stage.peer(HostileStage::poor_key());
    REQUIRE(peer.open());
    const Lent lent(peer, 1);

    REQUIRE(status_of(peer, lent.request(1, 4096)) == fop::Status::kDenied);

    REQUIRE(lent.into.bytes == std::string(4096, '.'));
    REQUIRE(status_of(peer, {.id = 2, .type = 1, .body = fop::Ping{}}) == fop::Status::kDone);
}

TEST_CASE("hostile request: more than a bulk echo may move is malformed", "[hostile]") {
    HostileStage stage(any_hostile_kind());
    RawPeer& peer = stage.open_peer();
    const Lent lent(peer, 1);
    const std::uint64_t bytes = GENERATE(fop::kBulkEchoBytesMax + 1, 1ULL << 63, ~0ULL);

    REQUIRE(status_of(peer, lent.request(1, bytes)) == fop::Status::kMalformed);

    expect_echo(peer);
}

TEST_CASE("hostile request: a descriptor is good for what it was sealed for alone", "[hostile]") {
    HostileStage stage(any_hostile_kind());
    RawPeer& peer = stage.open_peer();
    RawPeer& other = stage.open_peer();
    const std::string what =
        GENERATE("nothing wrong", "forged", "of another operation", "of another session",
                 "sealed by another session", "the wrong way round", "too short", "no layout",
                 "past the end of the numbers");
    CAPTURE(what);
    Lent lent(peer, 1);
    std::uint64_t bytes = 4096;
    fop::Status expected = fop::Status::kDenied;
    if (what == "nothing wrong") expected = fop::Status::kDone;
    if (what == "of another operation") lent.source.operation = 2;
    if (what == "of another session") lent.source.session = other.session_id();
    if (what == "the wrong way round") lent.source.use = fop::DescriptorUse::kPeerWrites;
    if (what == "too short") lent.source.bytes = bytes - 1;
    fop::Request request = lent.request(1, bytes);
    auto& body = std::get<fop::BulkEcho>(request.body);
    if (what == "forged") body.source[30] ^= std::byte{1};
    if (what == "sealed by another session") {
        body.source = fop::seal(lent.source, other.session().keys.descriptor);
    }
    if (what == "no layout") body.source = {};
    if (what == "past the end of the numbers") {
        body.source[47] = body.source[39] = std::byte{0xff};
    }

    const fop::Status status = status_of(peer, request);

    if (what == "past the end of the numbers") {
        REQUIRE((status == fop::Status::kDenied || status == fop::Status::kMalformed));
    } else {
        REQUIRE(status == expected);
    }
    const bool moved = lent.into.bytes != std::string(4096, '.');
    REQUIRE(moved == (expected == fop::Status::kDone));
    expect_echo(peer);
}

TEST_CASE("hostile request: memory that was never opened costs the session alone", "[hostile]") {
    HostileStage stage(any_hostile_kind());
    RawPeer& peer = stage.open_peer();
    Lent lent(peer, 1);
    const bool of_key = GENERATE(true, false);
    CAPTURE(of_key);
    if (of_key) {
        lent.source.key ^= 0x5555;
    } else {
        lent.source.bytes = 1U << 20;
    }

    peer.send(peer.requests({lent.request(1, of_key ? 4096 : 1U << 20)}));

    // A transport may answer, or end the connection.
    const auto answer = peer.answer(1);
    if (answer) REQUIRE(answer->status != fop::Status::kDone);
    stage.settle();
    REQUIRE(stage.fops_held() <= 1);
}

TEST_CASE("hostile request: more bytes than anybody has are refused", "[hostile]") {
    HostileStage stage(any_hostile_kind());
    RawPeer& peer = stage.open_peer();
    const Lent lent(peer, 1);

    REQUIRE(status_of(peer, lent.request(1, UINT64_MAX)) != fop::Status::kDone);

    expect_echo(peer);
}

TEST_CASE("hostile request: a token that is none lends nothing", "[hostile]") {
    HostileStage stage(any_hostile_kind());
    RawPeer& peer = stage.open_peer(HostileStage::poor_key());
    const std::string what =
        GENERATE("garbage", "cut short", "changed", "of another issuer", "expired",
                 "somebody else's", "without the right", "of an object", "of a pool", "good");
    CAPTURE(what);
    fop::Token token{.rights = fop::kAdmin, .not_after = 1'000'000'000'000};
    if (what == "expired") token.not_after = -5;
    if (what == "somebody else's") token.principal = "turned";
    if (what == "without the right") token.rights = fop::kRead | fop::kWrite;
    if (what == "of an object") token.object = fop::token_object({.high = 1, .low = 2});
    if (what == "of a pool") token.pool = "fast";
    std::vector<std::byte> bytes = HostileStage::issuer().sign(token);
    if (what == "garbage") bytes.assign(200, std::byte{0x5a});
    if (what == "cut short") bytes.resize(bytes.size() - 1);
    if (what == "changed") bytes[20] ^= std::byte{1};
    if (what == "of another issuer") bytes = fop::Issuer(key_of(78)).sign(token);
    fop::Request request = echo_request(1);
    request.token = bytes;

    REQUIRE(status_of(peer, request) ==
            (what == "good" ? fop::Status::kDone : fop::Status::kDenied));

    REQUIRE(status_of(peer, echo_request(2)) == fop::Status::kDenied);
    request.id = 3;
    REQUIRE(status_of(stage.open_peer(), request) == fop::Status::kDone);
}

TEST_CASE("hostile request: one id for many costs nobody but who does it", "[hostile]") {
    HostileStage stage(any_hostile_kind());
    RawPeer& peer = stage.open_peer();
    const Lent lent(peer, 1);

    peer.send(peer.requests(
        {lent.request(1, 4096), lent.request(1, 4096), echo_request(1), lent.request(1, 4096)}));

    REQUIRE(peer.answer(1).has_value());
    expect_echo(peer);
}

TEST_CASE("hostile request: who talks, but lets no memory be reached, ends with the lease",
          "[hostile]") {
    HostileStage stage(kAllKinds[0]);
    RawPeer& peer = stage.open_peer();
    const Lent lent(peer, 1);
    ReplayedWorld& world = *stage.world();
    auto& network = dynamic_cast<MemTransport&>(stage.transport()).network();
    network.block({.from = "server", .to = "hostile"});

    peer.send(peer.requests({lent.request(1, 4096)}));
    world.run_for(2500ms);
    peer.send(peer.control({.pong = 1}));
    world.run_for(1s);
    const std::uint64_t expired = stage.count(&HostStatistics::expired);
    network.unblock({.from = "server", .to = "hostile"});

    REQUIRE(expired == 1);
    REQUIRE(peer.wait_closed());
    stage.settle();
    REQUIRE(stage.fops_held() <= 1);
}

TEST_CASE("hostile request: many who let no memory be reached do not stop the others",
          "[hostile]") {
    HostileStage stage(kAllKinds[0]);
    std::vector<RawPeer*> peers;
    for (int i = 0; i < 5; ++i) peers.push_back(&stage.open_peer());
    auto& network = dynamic_cast<MemTransport&>(stage.transport()).network();
    network.block({.from = "server", .to = "hostile"});
    std::deque<Lent> lent;
    for (RawPeer* const peer : peers) {
        std::vector<fop::Request> requests;
        for (std::uint64_t id = 1; id <= 8; ++id) {
            requests.push_back(lent.emplace_back(*peer, id).request(id, 4096));
        }
        peer->send(peer->requests(requests));
    }
    stage.settle();
    const std::size_t held = stage.fops_held();

    const bool moved = stage.bystander().move_bulk();
    network.unblock({.from = "server", .to = "hostile"});

    REQUIRE(held >= 40);
    REQUIRE(moved);
    for (RawPeer* const peer : peers) REQUIRE(peer->answer(8).has_value());
}

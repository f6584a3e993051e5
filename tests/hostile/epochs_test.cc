#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/random.h"
#include "eh/peers/message.h"
#include "tests/hostile/stage.h"

// Goal: only a daemon that has the key of the peers and is in eh.members takes part in epochs, and
// what makes no sense in its messages changes nothing. Method: as in greetings_test.cc.

using namespace fopd;
using namespace fopd::fabric;
using namespace fopd::fabric::testing;

namespace {

fop::Credentials daemon_named(std::string name) {
    return {
        .kind = fop::AuthKind::kPeer, .key = HostileStage::peers_key(), .name = std::move(name)};
}

// The daemon is the root, and b may join. The first epoch waits for b.
HostileOptions as_member() {
    HostileOptions options;
    options.epochs.kind = eh::EpochSettings::Kind::kPeers;
    options.epochs.expect = 2;
    options.epochs.bootstrap_timeout = 24h;
    options.epochs.store.root = HostileStage::kMemberName;
    options.epochs.members = {
        {.name = std::string(HostileStage::kMemberName), .address = *parse_address("mem://a:1")},
        {.name = "b", .address = *parse_address("mem://b:1")}};
    return options;
}

void wait_joined(HostileStage& stage) {
    REQUIRE(stage.server_loop().wait([&] { return stage.epochs().view != 0; }));
}

std::vector<std::byte> beat() {
    return eh::peers::encode({.body = eh::peers::Beat{}});
}

RawPeer::Answer answer_to(RawPeer& peer, std::uint64_t id, std::span<const std::byte> message) {
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(message.data());
    peer.send(peer.requests(
        {{.id = id,
          .type = fop::find_fop_type("epoch")->number,
          .body = fop::EpochMessage{.from = "mem://b:1", .message = {bytes, message.size()}}}}));
    const auto answer = peer.answer(id);
    REQUIRE(answer.has_value());
    return *answer;
}

void expect_served(RawPeer& peer, std::uint64_t id) {
    peer.send(peer.requests({ping_request(id)}));
    const auto answer = peer.answer(id);
    REQUIRE(answer.has_value());
    REQUIRE(answer->status == fop::Status::kDone);
}

}  // namespace

TEST_CASE("hostile epochs: a client sends no messages of epochs, with a key or without",
          "[hostile]") {
    const bool has_key = GENERATE(true, false);
    const bool is_member = GENERATE(true, false);
    CAPTURE(has_key, is_member);
    HostileOptions options = is_member ? as_member() : HostileOptions{};
    options.open_to_all = !has_key;
    HostileStage stage(any_hostile_kind(), options);
    // Without a key it says the name of a member.
    RawPeer& peer = has_key ? stage.peer() : stage.peer(fop::Credentials{.name = "b"});
    REQUIRE(peer.open());

    REQUIRE(answer_to(peer, 1, beat()).status == fop::Status::kDenied);

    expect_served(peer, 2);
}

TEST_CASE("hostile epochs: a daemon that has epochs of its own knows no messages of them",
          "[hostile]") {
    HostileStage stage(any_hostile_kind());
    RawPeer& peer = stage.peer(daemon_named("b"));
    REQUIRE(peer.open());

    REQUIRE(answer_to(peer, 1, beat()).status == fop::Status::kUnknownFop);

    expect_served(peer, 2);
}

TEST_CASE("hostile epochs: the key of the peers is not enough without a name in eh.members",
          "[hostile]") {
    HostileStage stage(any_hostile_kind(), as_member());
    wait_joined(stage);
    RawPeer& stranger = stage.peer(daemon_named("z"));
    RawPeer& member = stage.peer(daemon_named("b"));
    for (RawPeer* const each : {&stranger, &member}) REQUIRE(each->open());

    const RawPeer::Answer refused = answer_to(stranger, 1, beat());

    REQUIRE(refused.status == fop::Status::kDenied);
    REQUIRE(refused.words == "the sender is not in eh.members");
    REQUIRE(answer_to(member, 1, beat()).status == fop::Status::kDone);
    expect_served(stranger, 2);
}

TEST_CASE("hostile epochs: only the first locality takes messages of epochs", "[hostile]") {
    HostileOptions options = as_member();
    options.server.locality = 1;
    HostileStage stage(any_hostile_kind(), options);
    RawPeer& peer = stage.peer(daemon_named("b"));
    REQUIRE(peer.open());

    const RawPeer::Answer refused = answer_to(peer, 1, beat());

    REQUIRE(refused.status == fop::Status::kDenied);
    REQUIRE(refused.words == "epoch messages go to the first locality");
    expect_served(peer, 2);
}

TEST_CASE("hostile epochs: a member's garbage is counted and changes nothing", "[hostile]") {
    HostileStage stage(any_hostile_kind(), as_member());
    wait_joined(stage);
    RawPeer& member = stage.peer(daemon_named("b"));
    REQUIRE(member.open());
    const eh::peers::EpochStatus before = stage.epochs();
    core::Random random(3);
    std::vector<std::vector<std::byte>> garbage;
    for (std::size_t i = 0; i < 100; ++i) {
        std::vector<std::byte> bytes(1 + random.below(fop::kEpochMessageBytesMax));
        for (std::byte& each : bytes) each = static_cast<std::byte>(random.next());
        garbage.push_back(std::move(bytes));
    }
    // A message that lacks its end, or goes on after it.
    std::vector<std::byte> longer = beat();
    for (std::size_t size = 1; size < longer.size(); ++size)
        garbage.emplace_back(longer.begin(), longer.begin() + static_cast<std::ptrdiff_t>(size));
    longer.push_back(std::byte{0});
    garbage.push_back(longer);

    std::uint64_t id = 0;
    for (const auto& each : garbage)
        REQUIRE(answer_to(member, ++id, each).status == fop::Status::kDone);
    stage.settle();

    REQUIRE(stage.epoch_figure("fopd_epoch_messages_dropped") ==
            static_cast<double>(garbage.size()));
    const eh::peers::EpochStatus status = stage.epochs();
    REQUIRE(status.view == before.view);
    REQUIRE(status.epoch == before.epoch);
    REQUIRE(stage.epoch_figure("fopd_epoch_members") == 1);
    REQUIRE(answer_to(member, ++id, beat()).status == fop::Status::kDone);
}

TEST_CASE("hostile epochs: an empty message and one that is too long are malformed", "[hostile]") {
    HostileStage stage(any_hostile_kind(), as_member());
    wait_joined(stage);
    RawPeer& member = stage.peer(daemon_named("b"));
    REQUIRE(member.open());
    const std::vector<std::byte> too_long(fop::kEpochMessageBytesMax + 1);

    REQUIRE(answer_to(member, 1, {}).status == fop::Status::kMalformed);
    REQUIRE(answer_to(member, 2, too_long).status == fop::Status::kMalformed);

    REQUIRE(stage.epoch_figure("fopd_epoch_messages_dropped") == 0);
}

TEST_CASE("hostile epochs: a peer that is in no view speaks for no member", "[hostile]") {
    using namespace fopd::eh::peers;
    HostileStage stage(any_hostile_kind(), as_member());
    wait_joined(stage);
    RawPeer& peer = stage.peer(daemon_named("b"));
    REQUIRE(peer.open());
    const EpochStatus before = stage.epochs();
    const std::vector<std::byte> odd(3);
    std::vector<Body> bodies;
    bodies.emplace_back(Ready{.count = 1, .data = odd});
    bodies.emplace_back(First{});
    bodies.emplace_back(Start{.epoch = 900, .count = 2, .data = odd});
    bodies.emplace_back(Abort{.next_round = 9});

    std::uint64_t id = 0;
    for (const Body& body : bodies) {
        for (const bool is_foreign : {false, true}) {
            const Message message{.view = before.view,
                                  .round = 1,
                                  .incarnation = 1,
                                  .is_foreign = is_foreign,
                                  .body = body};
            // Twice, as if somebody replayed it.
            for (int i = 0; i < 2; ++i)
                REQUIRE(answer_to(peer, ++id, encode(message)).status == fop::Status::kDone);
        }
    }
    stage.settle();

    REQUIRE(stage.epoch_figure("fopd_epoch_messages_dropped") == static_cast<double>(id));
    const EpochStatus status = stage.epochs();
    REQUIRE(status.view == before.view);
    REQUIRE(status.epoch == before.epoch);
    REQUIRE(stage.epoch_figure("fopd_epoch_members") == 1);
}

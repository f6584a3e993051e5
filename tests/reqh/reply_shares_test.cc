// Goal: however many clients a principal invents, what is remembered of their changes is bounded,
// and other principals have room for theirs; what is remembered is remembered until its time is
// over. Method: a small disk, on which changes come from ever new clients.
#include "objects/reply_shares.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "objects/home_volume.h"
#include "tests/catch.h"
#include "tests/reqh/store_stage.h"

namespace fopd::reqh::testing {

namespace {

// Of a small disk, of which one principal may have half.
constexpr std::size_t kPlaces = objects::ReplyShares::kMin;
constexpr std::size_t kShare = kPlaces / 2;

StageOptions small_node() {
    return {.disk_bytes = 64UL << 20, .upkeep = {.interval = 5s, .replies_kept = 60s}};
}

// The first change of a client that nobody has heard of before.
FopSpec first_change(std::uint64_t client, std::string_view principal,
                     std::uint64_t number = 1024) {
    FopSpec spec{.type = type_of("create"),
                 .body = fop::Create{.slot = kFirstSlot, .mode = 0600},
                 .principal = std::string(principal),
                 .number = number};
    for (std::size_t i = 0; i < sizeof client; ++i) {
        spec.client[i] = static_cast<std::byte>(client >> 8 * i);
    }
    return spec;
}

// How many of `count` new clients, from `first` on, are served; the others are to come again.
std::size_t served(StoreStage& node, std::uint64_t first, std::size_t count,
                   std::string_view principal) {
    std::vector<FakeFop*> sent;
    for (std::size_t i = 0; i < count; ++i) {
        sent.push_back(&node.send(first_change(first + i, principal)));
    }
    std::size_t done = 0;
    for (FakeFop* fop : sent) {
        node.wait_for(*fop);
        const bool is_done = fop->status() == fop::Status::kDone;
        if (is_done) ++done;
        if (!is_done) REQUIRE(fop->status() == fop::Status::kTryAgain);
    }
    return done;
}

fop::Fid fid_made(const FakeFop& fop) {
    REQUIRE(fop.status() == fop::Status::kDone);
    return std::get<fop::CreateReply>(fop.answer->body).fid;
}

}  // namespace

TEST_CASE("reqh reply shares: a principal with ever new clients has its share, others have theirs",
          "[reqh]") {
    StoreStage node(small_node());
    const fop::Fid first = fid_made(node.call(first_change(1, "mallory")));
    const std::size_t done = 1 + served(node, 2, kPlaces, "mallory");
    CHECK(done <= kShare);
    CHECK(done >= kShare / 2);
    CHECK(node.reply_count() == done);
    CHECK(node.quota().account_of("mallory").used().objects == done);

    // Its clients that are remembered are as before.
    CHECK(fid_made(node.call(first_change(1, "mallory"))) == first);
    CHECK(node.call(first_change(1, "mallory", 2048)).status() == fop::Status::kDone);
    CHECK(node.reply_count() == done);
    CHECK(node.call(first_change(1, "mallory", 2049)).status() == fop::Status::kTryAgain);

    const std::size_t others = served(node, 1, kPlaces, "alice");
    CHECK(others >= kShare / 4);
    CHECK(served(node, 1, 10, "bob") == 10);
    CHECK(node.reply_count() < kPlaces);
    CHECK(node.stores().find(kFirstSlot)->reply_shares().count() == node.reply_count());
    CHECK(node.event_count("reqh.too_many_replies") == 1);

    // Those that nobody may ask for any more make room.
    node.run_for(75s);
    CHECK(node.reply_count() == 0);
    CHECK(node.stores().find(kFirstSlot)->reply_shares().count() == 0);
    CHECK(served(node, 100'000, 500, "mallory") == 500);
}

TEST_CASE("reqh reply shares: alone one has a half, the next one a quarter", "[reqh]") {
    objects::ReplyShares shares({}, 0);
    const auto client = [](std::uint64_t number) {
        store::ClientId id;
        std::memcpy(id.bytes.data(), &number, sizeof number);
        return id;
    };
    const auto taken = [&](std::uint64_t first, std::string_view principal) {
        std::uint64_t count = 0;
        while (shares.take(client(first + count), principal)) ++count;
        return count;
    };
    CHECK(taken(1, "principal a") == kPlaces / 2);
    CHECK(taken(100'000, "principal b") == kPlaces / 4);
    CHECK(taken(200'000, "principal c") == kPlaces / 8);
    CHECK(shares.count() == kPlaces / 8 * 7);
    CHECK(shares.refused_count() == 3);
    for (std::uint64_t i = 0; i < kPlaces / 2; ++i) shares.give_back(client(1 + i));
    CHECK(shares.take(client(300'000), "principal c"));
    // It stays that principal's.
    CHECK(shares.take(client(300'000), "unauthenticated"));
    CHECK(shares.count() == kPlaces / 8 * 3 + 2);
    CHECK(objects::ReplyShares({}, 1ULL << 40).max() == objects::ReplyShares::kMax);
}

TEST_CASE(
    "reqh reply shares: replies from before a start are nobody's until their client needs more",
    "[reqh]") {
    constexpr store::ClientId kFirst{{std::byte{1}}};
    constexpr store::ClientId kSecond{{std::byte{2}}};
    constexpr std::uint32_t kMany = kPlaces / 8 * 5;
    objects::ReplyShares shares({{.client = kFirst, .count = kMany}}, 0);
    CHECK(shares.count() == kMany);
    CHECK(shares.take(kSecond, "principal a"));
    // Now they are its own.
    CHECK_FALSE(shares.take(kFirst, "principal a"));
    CHECK_FALSE(shares.take(kSecond, "principal a"));
    CHECK(shares.take({{std::byte{3}}}, "principal b"));
    for (std::uint32_t i = 0; i < kMany; ++i) shares.give_back(kFirst);
    CHECK(shares.take(kSecond, "principal a"));
    CHECK(shares.count() == 3);
}

TEST_CASE("reqh reply shares: what was remembered before a start counts", "[reqh]") {
    StoreStage node(small_node());
    const std::size_t done = served(node, 1, kPlaces, "mallory");
    const fop::Fid first = fid_made(node.call(first_change(1, "mallory")));
    node.restart();
    CHECK(node.reply_count() == done);
    CHECK(node.stores().find(kFirstSlot)->reply_shares().count() == done);
    CHECK(fid_made(node.call(first_change(1, "mallory"))) == first);
    // Nobody knows whose the others are; no new ones are taken in their place.
    const std::size_t more = served(node, 100'000, kPlaces, "mallory");
    CHECK(more > 0);
    CHECK(done + more < kPlaces);
    CHECK(served(node, 1, 10, "alice") == 10);
    node.run_for(75s);
    CHECK(node.reply_count() == 0);
}

}  // namespace fopd::reqh::testing

#include <vector>

#include "store/object_map.h"
#include "tests/catch.h"
#include "tests/reqh/store_stage.h"

namespace fopd::reqh::testing {

namespace {

StageOptions hasty() {
    return {.upkeep = {.interval = 1s, .upload_timeout = 5s, .replies_kept = 3s}};
}

FopSpec create_again() {
    return {.type = type_of("create"),
            .body = fop::Create{.slot = kFirstSlot, .mode = 0600},
            .number = 1'000'000};
}

// A client keeps few of them.
void create_for_another(StoreStage& node, int which) {
    FopSpec spec = create_again();
    spec.client[0] = static_cast<std::byte>(1 + which / 256);
    spec.number += static_cast<std::uint64_t>(which);
    REQUIRE(node.call(spec).status() == fop::Status::kDone);
}

fop::Fid created(const FakeFop& fop) {
    REQUIRE(fop.status() == fop::Status::kDone);
    return std::get<fop::CreateReply>(fop.answer->body).fid;
}

FopSpec upload_begin() {
    return {.type = type_of("upload_begin"),
            .body = fop::UploadBegin{.slot = kFirstSlot, .mode = 0600}};
}

fop::Fid begun(const FakeFop& fop) {
    REQUIRE(fop.status() == fop::Status::kDone);
    return std::get<fop::UploadBeginReply>(fop.answer->body).fid;
}

// They are under way at the same time.
std::vector<fop::Fid> begin_uploads(StoreStage& node, std::size_t count) {
    std::vector<FakeFop*> sent;
    for (std::size_t i = 0; i < count; ++i) sent.push_back(&node.send(upload_begin()));
    std::vector<fop::Fid> fids;
    for (FakeFop* fop : sent) {
        node.wait_for(*fop);
        fids.push_back(begun(*fop));
    }
    return fids;
}

fop::Status write_nothing(StoreStage& node, fop::Fid fid) {
    return node.call({.type = type_of("upload_write"), .body = fop::UploadWrite{.fid = fid}})
        .status();
}

std::uint64_t object_count(StoreStage& node) {
    const FakeFop& fop = node.call({.type = type_of("statfs"), .body = fop::Statfs{}});
    return std::get<fop::StatfsReply>(fop.answer->body).objects;
}

}  // namespace

TEST_CASE("reqh upkeep: a disk that does not answer delays no other", "[reqh]") {
    StageOptions options = hasty();
    options.disks = 2;
    StoreStage node(options);
    for (const std::uint16_t slot : {kFirstSlot, static_cast<std::uint16_t>(kFirstSlot + 1)}) {
        FopSpec spec = create_again();
        std::get<fop::Create>(spec.body).slot = slot;
        spec.number += slot;
        REQUIRE(node.call(spec).status() == fop::Status::kDone);
    }
    const auto remembered = [&node](std::uint16_t slot) {
        return node.stores().find(slot)->reply_shares().count();
    };
    node.disk(0).faults().delay_min = node.disk(0).faults().delay_max = 10h;
    node.run_for(30s);

    CHECK(remembered(kFirstSlot + 1) == 0);
}

TEST_CASE("reqh volume: reservations count as memory of changes", "[reqh]") {
    constexpr std::uint64_t kOverlay = 256UL << 10;
    StoreStage node({.overlay_bytes = kOverlay});
    node.create();
    REQUIRE(node.volume().changed_bytes() > 0);
    std::vector<store::Reservation> rooms;
    for (;;) {
        core::Reactor& reactor = node.stores().parts().reactor;
        const core::WaitOptions wait{.deadline = after(node.world.now(), 1ms)};
        auto room = node.world.run(reactor, node.volume().reserve(4096, wait));
        REQUIRE(room.has_value());
        if (!room->has_value()) {
            CHECK(room->error().code == Errc::kTimedOut);
            break;
        }
        rooms.push_back(std::move(**room));
        REQUIRE(rooms.size() < 100);
    }
    CHECK(rooms.size() > 4);
    CHECK(node.volume().changed_bytes() + 4 * 4096 * rooms.size() <= kOverlay);
    rooms.clear();
    node.create();
}

TEST_CASE("reqh upkeep: replies are kept as long as a client may send again, and no longer",
          "[reqh]") {
    StoreStage node(hasty());
    const fop::Fid first = created(node.call(create_again()));
    node.run_for(2s);
    CHECK(created(node.call(create_again())) == first);
    // More than are forgotten at once.
    for (int i = 0; i < 1200; ++i) create_for_another(node, i);
    CHECK(node.reply_count() == 1201);
    node.run_for(6s);
    CHECK(node.reply_count() == 0);
    CHECK(created(node.call(create_again())) != first);
    CHECK(object_count(node) == 1202);
    node.restart();
    node.run_for(1s);
    CHECK(object_count(node) == 1202);
    CHECK(node.reply_count() == 1);
    node.run_for(6s);
    CHECK(node.reply_count() == 0);
}

TEST_CASE("reqh upkeep: a node that often starts anew forgets replies, too", "[reqh]") {
    StoreStage node(hasty());
    const fop::Fid first = created(node.call(create_again()));
    for (int life = 0; life < 4; ++life) {
        create_for_another(node, life);
        CHECK(created(node.call(create_again())) == first);
        node.run_for(700ms);
        create_for_another(node, 100 + life);
        node.restart();
    }
    node.run_for(1500ms);

    CHECK(node.reply_count() < 9);
    CHECK(created(node.call(create_again())) != first);
}

TEST_CASE("reqh upkeep: the space of an abandoned upload is freed", "[reqh]") {
    StoreStage node(hasty());
    const FakeFop& begun = node.call({.type = type_of("upload_begin"),
                                      .body = fop::UploadBegin{.slot = kFirstSlot, .mode = 0600}});
    REQUIRE(begun.status() == fop::Status::kDone);
    const fop::Fid fid = std::get<fop::UploadBeginReply>(begun.answer->body).fid;
    const std::uint64_t before = node.volume().space_use().free_blocks;
    const Bytes bytes = pattern(10 * objects::kBlock, 1);
    const fop::Range range{.offset = 0, .length = bytes.size()};
    const std::vector<std::uint32_t> checksums = checksums_of({range}, bytes);
    const FopSpec write{.type = type_of("upload_write"),
                        .body = fop::UploadWrite{.fid = fid,
                                                 .range = range,
                                                 .checksums = fop::List<std::uint32_t>(
                                                     checksums.data(), checksums.size())},
                        .payload_bytes = bytes};
    for (int i = 0; i < 3; ++i) {
        REQUIRE(node.call(write).status() == fop::Status::kDone);
        node.run_for(4s);
    }
    node.run_for(4s);
    CHECK(node.call(write).status() == fop::Status::kNotFound);
    CHECK(node.volume().space_use().free_blocks == before);
}

TEST_CASE("reqh upkeep: of very many uploads those that are due are given up, and only those",
          "[reqh]") {
    constexpr std::size_t kMany = 5000;
    StoreStage node({.disk_bytes = 64UL << 20,
                     .upkeep = {.interval = 2s, .upload_timeout = 20s, .replies_kept = 3s}});
    const auto uploads = [&node] { return node.quota().account_of("alice").used().objects; };
    const auto early = begin_uploads(node, kMany);
    node.run_for(10s);
    const auto late = begin_uploads(node, 100);
    REQUIRE(write_nothing(node, early.front()) == fop::Status::kDone);
    REQUIRE(write_nothing(node, early.back()) == fop::Status::kDone);
    CHECK(uploads() == kMany + late.size());

    node.run_for(15s);
    CHECK(uploads() == late.size() + 2);
    CHECK(write_nothing(node, early[1]) == fop::Status::kNotFound);
    CHECK(write_nothing(node, early.front()) == fop::Status::kDone);
    CHECK(write_nothing(node, late.front()) == fop::Status::kDone);
    node.run_for(10s);
    CHECK(uploads() == 2);
    node.run_for(15s);
    CHECK(uploads() == 0);
}

TEST_CASE("reqh upkeep: the time before a start does not count for an upload", "[reqh]") {
    StoreStage node({.upkeep = {.interval = 2s, .upload_timeout = 20s}});
    const auto fids = begin_uploads(node, 10);
    node.run_for(15s);
    node.restart();
    CHECK(node.quota().account_of("alice").used() == objects::Amount{.objects = 10});
    node.run_for(15s);
    CHECK(write_nothing(node, fids[3]) == fop::Status::kDone);
    node.run_for(10s);
    CHECK(node.quota().account_of("alice").used() == objects::Amount{.objects = 1});
}

}  // namespace fopd::reqh::testing

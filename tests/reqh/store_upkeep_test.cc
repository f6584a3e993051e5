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

std::uint64_t object_count(StoreStage& node) {
    const FakeFop& fop = node.call({.type = type_of("statfs"), .body = fop::Statfs{}});
    return std::get<fop::StatfsReply>(fop.answer->body).objects;
}

}  // namespace

TEST_CASE("reqh volume: what is reserved counts as memory that changes take", "[reqh]") {
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

TEST_CASE("reqh upkeep: replies are kept as long as somebody may ask again, and not longer",
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

TEST_CASE("reqh upkeep: an upload to which nobody writes any more leaves its room", "[reqh]") {
    StoreStage node(hasty());
    const FakeFop& begun = node.call({.type = type_of("upload_begin"),
                                      .body = fop::UploadBegin{.slot = kFirstSlot, .mode = 0600}});
    REQUIRE(begun.status() == fop::Status::kDone);
    const fop::Fid fid = std::get<fop::UploadBeginReply>(begun.answer->body).fid;
    const std::uint64_t before = node.volume().space_use().free_blocks;
    const Bytes bytes = pattern(10 * kBlock, 1);
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

}  // namespace fopd::reqh::testing

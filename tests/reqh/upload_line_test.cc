// Goal: an upload that finds no room on the disks before the tapes gets it in its turn, however
// many small ones come meanwhile; and it stops nobody when it has gone away. Method: as
// upload_room_test.cc; small uploads that begin and are given up play the room that becomes free.

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>

#include "objects/open_uploads.h"
#include "objects/room_line.h"
#include "tests/catch.h"
#include "tests/reqh/tape_node.h"

namespace fopd::reqh::testing::upload_line {

namespace {

using tape_fops::TapeStage;

// A client and its uploads to the second disk, which is at the second locality.
class Uploader {
public:
    Uploader(TapeStage& tape, std::string_view name, std::uint8_t number)
        : tape_(tape), name_(name), client_{std::byte{number}} {}

    FopSpec begin_spec(std::uint64_t blocks) const {
        FopSpec spec{
            .type = type_of("upload_begin"),
            .body = fop::UploadBegin{.size_bytes = blocks * kBlock, .slot = tape_.stage.slot(1)}};
        spec.pool = "cold";
        spec.principal = name_;
        spec.client = client_;
        return spec;
    }
    // False: there is no room.
    bool begin(std::uint64_t blocks) {
        const FakeFop& begun = tape_.stage.call(begin_spec(blocks));
        if (begun.status() == fop::Status::kStagingFull) return false;
        REQUIRE(begun.status() == fop::Status::kDone);
        open_.push_back(std::get<fop::UploadBeginReply>(begun.answer->body).fid);
        return true;
    }
    std::size_t count() const { return open_.size(); }
    void give_up_oldest() {
        FopSpec spec{.type = type_of("upload_abort"),
                     .body = fop::UploadAbort{.fid = open_.front()},
                     .principal = name_};
        spec.client = client_;
        REQUIRE(tape_.stage.call(std::move(spec)).status() == fop::Status::kDone);
        open_.pop_front();
    }

private:
    TapeStage& tape_;
    const std::string name_;
    const std::array<std::byte, 16> client_;
    std::deque<fop::Fid> open_;
};

// A node whose second disk is full of the small uploads of an owner: as soon as one goes, another
// one comes.
class SmallStream {
public:
    explicit SmallStream(TapeStage& tape) : bob_(tape, "bob", 0xb), tape_(tape) {
        while (bob_.begin(blocks())) {
        }
        REQUIRE(bob_.count() >= 8);
    }
    std::uint64_t room() const { return room_; }
    // Returns how many have begun.
    std::uint64_t pass_second() {
        std::uint64_t begun = 0;
        if (bob_.count() > 0) bob_.give_up_oldest();
        for (int i = 0; i < 4; ++i) {
            tape_.stage.run_for(250ms);
            begun += bob_.begin(blocks()) ? 1 : 0;
        }
        return begun;
    }

private:
    std::uint64_t blocks() const { return room_ / 10; }

    Uploader bob_;
    TapeStage& tape_;
    const std::uint64_t room_ = tape_.stage.volume(1).space_use().room_blocks();
};

objects::RoomLine& line_of(TapeStage& tape) {
    return tape.stage.stores(1).find(tape.stage.slot(1))->uploads().line();
}

}  // namespace

TEST_CASE("reqh upload line: a large upload gets its turn though small ones take what becomes free",
          "[reqh]") {
    TapeStage tape;
    Uploader alice(tape, "alice", 0xa);
    SmallStream stream(tape);
    std::uint64_t seconds = 0;
    std::uint64_t begun = 0;
    while (!alice.begin(stream.room() * 6 / 10)) {
        CAPTURE(seconds, begun);
        REQUIRE(seconds < 40);
        const std::uint64_t more = stream.pass_second();
        // Those that come later may pass at first.
        if (seconds < 5) CHECK(more == 1);
        begun += more;
        ++seconds;
    }
    // Its room is kept, as that of every upload; the small ones go on in the rest.
    std::uint64_t later = 0;
    for (int i = 0; i < 10; ++i) later += stream.pass_second();
    CHECK(later > 0);
    alice.give_up_oldest();
    later = 0;
    for (int i = 0; i < 10; ++i) later += stream.pass_second();
    CHECK(later >= 10);
}

TEST_CASE("reqh upload line: who has gone away stops nobody", "[reqh]") {
    TapeStage tape;
    Uploader alice(tape, "alice", 0xa);
    SmallStream stream(tape);
    const std::uint64_t large = stream.room() * 9 / 10;
    for (int i = 0; i < 14; ++i) {
        REQUIRE_FALSE(alice.begin(large));
        stream.pass_second();
    }
    CHECK(stream.pass_second() == 0);
    // Alice does not come again.
    tape.stage.run_for(objects::RoomLine::kStays);
    CHECK(stream.pass_second() > 0);
}

TEST_CASE("reqh upload line: nobody waits beyond the deadline, and the number is bounded",
          "[reqh]") {
    TapeStage tape;
    SmallStream stream(tape);
    const Uploader alice(tape, "alice", 0xa);
    tape.stage.run_for(objects::RoomLine::kStays);
    REQUIRE(line_of(tape).count(tape.stage.world.now()) == 0);
    FopSpec spec = alice.begin_spec(stream.room() * 7 / 10);
    spec.deadline = after(tape.stage.world.now(), 2s);
    REQUIRE(tape.stage.call(std::move(spec)).status() == fop::Status::kStagingFull);
    CHECK(line_of(tape).count(tape.stage.world.now()) == 1);
    tape.stage.run_for(2s);
    CHECK(line_of(tape).count(tape.stage.world.now()) == 0);

    for (std::uint64_t i = 0; i < objects::RoomLine::kPlacesMax + 20; ++i) {
        const FakeFop& refused = tape.stage.call(alice.begin_spec(stream.room() * 7 / 10 + i));
        REQUIRE(refused.status() == fop::Status::kStagingFull);
    }
    CHECK(line_of(tape).count(tape.stage.world.now()) <= objects::RoomLine::kPlacesMax / 2);
}

}  // namespace fopd::reqh::testing::upload_line

// Goal: the table of media reads back as it was written, and a damaged one is refused.

#include "library/media_table.h"

#include <string>

#include "tests/catch.h"

using namespace fopd;
using namespace fopd::library;

namespace {

MediaTable two_cartridges() {
    MediaTable table;
    Cartridge& first = *table.add("V00001L9");
    first.vsn = "V00001";
    first.pool = "cold";
    first.technology = "lto9";
    first.generation = 2;
    first.state = CartridgeState::kOk;
    first.capacity_bytes = 18'000'000'000'000;
    first.files = 12;
    first.end_block = 345;
    first.used_bytes = 6'789;
    first.mounts = 3;
    first.index_file = 10;
    first.index_block = 300;
    first.failures = 1;
    first.collection = "run 7";
    table.add("V00002L9");
    table.set_state(2, CartridgeState::kForeign, "its label is of \"another\" 100% node\n");
    return table;
}

}  // namespace

TEST_CASE("library media: a table reads back", "[library]") {
    const MediaTable table = two_cartridges();

    REQUIRE(table.text() ==
            "fopd-media 1\n"
            "next 3\n"
            "cartridge 1 V00001L9 state=ok vsn=V00001 pool=cold technology=lto9 serial= "
            "generation=2 capacity=18000000000000 files=12 end=345 index-file=10 "
            "index-block=300 used=6789 mounts=3 failures=1 "
            "reason= collection=run%207\n"
            "cartridge 2 V00002L9 state=foreign vsn= pool= technology= serial= generation=0 "
            "capacity=0 files=0 end=0 index-file=0 index-block=0 used=0 mounts=0 failures=0 "
            "reason=its%20label%20is%20of%20\"another\"%20100%25%20node%0a\n"
            "end 562dad46\n");
    const auto again = MediaTable::parse(table.text());
    REQUIRE(again.has_value());
    REQUIRE(*again == table);
    REQUIRE(MediaTable::parse(MediaTable().text()).value() == MediaTable());
}

TEST_CASE("library media: repacks, scrubs and drives that are down are kept", "[library]") {
    MediaTable table = two_cartridges();
    table.change(1)->repack = Repack::kRunning;
    table.change(1)->scrub_file = 7;
    table.change(1)->scrub_member = 4096;
    table.change(2)->node_on_tape.emplace().fill(std::byte{0xab});
    table.change(2)->rescue = Rescue::kPartly;
    table.change(2)->scrubbed_s = 1'800'000'000;
    table.change(2)->damaged_copies = 3;
    table.set_drive_down("SN 0002", true);
    table.set_drive_down("SN-0001", true);
    table.set_drive_down("SN-0003", true);
    table.set_drive_down("SN-0003", false);
    table.set_drive_down("SN-0004", false);
    const std::string text = table.text();
    CHECK(text.find("\ndrive-down serial=SN%200002\ndrive-down serial=SN-0001\n") !=
          std::string::npos);
    CHECK(text.find(" repack=running scrub=7 scrub-member=4096\n") != std::string::npos);
    CHECK(text.find(" scrubbed=1800000000 damaged=3\n") != std::string::npos);
    CHECK(text.find(" node-on-tape=abababababababababababababababab rescue=partly scrubbed=") !=
          std::string::npos);
    const auto again = MediaTable::parse(text);
    REQUIRE(again.has_value());
    CHECK(*again == table);
    CHECK(again->is_drive_down("SN-0001"));
    CHECK_FALSE(again->is_drive_down("SN-0003"));
    // A new label begins anew.
    table.change(2)->begin_generation(3, "cold");
    CHECK(table.find(2)->rescue == Rescue::kNone);
    CHECK_FALSE(table.find(2)->node_on_tape.has_value());
    table.change(1)->begin_generation(3, "cold");
    CHECK(table.find(1)->repack == Repack::kNone);
    CHECK(table.find(1)->scrub_file == 0);
}

TEST_CASE("library media: every changed byte and every cut is noticed", "[library]") {
    const std::string text = two_cartridges().text();

    for (std::size_t at = 0; at < text.size(); ++at) {
        CAPTURE(at);
        std::string changed = text;
        changed[at] = static_cast<char>(changed[at] ^ 1);
        REQUIRE_FALSE(MediaTable::parse(changed).has_value());
        REQUIRE(MediaTable::parse(text.substr(0, at)).error().code == Errc::kCorrupt);
    }
    REQUIRE(MediaTable::parse(text + "\n").error().code == Errc::kCorrupt);
    REQUIRE(MediaTable::parse(text + text).error().code == Errc::kCorrupt);
}

TEST_CASE("library media: the table of a later version is not called damaged", "[library]") {
    REQUIRE(MediaTable::parse("fopd-media 2\nwhatever\n").error().code == Errc::kUnsupported);
}

TEST_CASE("library media: an id is not used again", "[library]") {
    MediaTable table = two_cartridges();
    table.forget(2);
    const auto again = MediaTable::parse(table.text());
    REQUIRE(again.has_value());
    MediaTable later = *again;

    REQUIRE(later.add("V00003L9")->id == 3);
    REQUIRE(later.find(2) == nullptr);
    REQUIRE(later.find("V00002L9") == nullptr);
}

TEST_CASE("library media: a number on tape that is another one reads back", "[library]") {
    for (const CartridgeId number : {Cartridge::kUnknownNumber, CartridgeId{7}}) {
        MediaTable table = two_cartridges();
        for (const CartridgeId id : {1U, 2U}) table.change(id)->number_on_tape = number;
        REQUIRE(MediaTable::parse(table.text()).value() == table);
    }
    MediaTable own = two_cartridges();
    own.change(1)->number_on_tape = 1;
    REQUIRE_FALSE(MediaTable::parse(own.text()).has_value());
}

TEST_CASE("library media: a cartridge that is away keeps what it was", "[library]") {
    MediaTable table = two_cartridges();
    table.set_state(1, CartridgeState::kSuspect, "it is shorter");
    table.set_state(1, CartridgeState::kMissing, "it is not in the library");
    table.set_state(1, CartridgeState::kForeign, "its label is another one");
    table.change(2)->is_label_pending = true;
    CHECK(table.text().find(" before=suspect before-reason=it%20is%20shorter\n") !=
          std::string::npos);
    CHECK(table.text().find(" label=pending\n") != std::string::npos);
    auto again = MediaTable::parse(table.text());
    REQUIRE(again.has_value());
    REQUIRE(*again == table);
    CHECK(again->find(1)->state_before == CartridgeState::kSuspect);
    CHECK(again->find(1)->reason_before == "it is shorter");
    again->set_state(1, CartridgeState::kOk, "");
    CHECK_FALSE(again->find(1)->state_before.has_value());

    // Whoever puts it into a drive again may have helped it to load.
    std::string upside_down(kDoesNotLoad);
    upside_down += "it is upside down";
    table.set_state(2, CartridgeState::kFailed, upside_down);
    table.set_state(2, CartridgeState::kMissing, "");
    CHECK_FALSE(table.find(2)->state_before.has_value());
    table.change(1)->state = CartridgeState::kOk;
    CHECK_FALSE(MediaTable::parse(table.text()).has_value());
}

TEST_CASE("library media: what a barcode is", "[library]") {
    REQUIRE(is_barcode("V00001"));
    REQUIRE(is_barcode("V00001L9"));
    REQUIRE_FALSE(is_barcode(""));
    REQUIRE_FALSE(is_barcode("V0001"));
    REQUIRE_FALSE(is_barcode("V00 01"));
    REQUIRE_FALSE(is_barcode("v00001"));
    REQUIRE_FALSE(is_barcode(std::string(33, 'A')));
}

TEST_CASE("library media: a reason that is too long is shortened", "[library]") {
    MediaTable table = two_cartridges();
    table.set_state(1, CartridgeState::kFailed, std::string(1000, 'x'));

    REQUIRE(table.find(1)->reason.size() == MediaTable::kReasonBytesMax);
    REQUIRE(MediaTable::parse(table.text()).value() == table);
}

// Goal: a slot has one disk for good, and what is no table is not taken for one.

#include "daemon/slot_table.h"

#include <fstream>

#include "daemon/node_disk.h"
#include "tests/catch.h"
#include "tests/devices/label_samples.h"

using namespace fopd;
using namespace fopd::daemon;
using fopd::devices::testing::counting_id;

namespace {

SlotEntry entry(store::Slot slot, int first = 0) {
    return {.slot = slot,
            .disk = counting_id(static_cast<std::uint8_t>(first == 0 ? slot : first)),
            .pool = "fast"};
}

}  // namespace

TEST_CASE("daemon slots: a table reads back, in the order of the slots", "[daemon]") {
    SlotTable table;
    table.add(entry(7));
    table.add(entry(1));

    REQUIRE(table.text() ==
            "1 0102030405060708090a0b0c0d0e0f10 fast\n"
            "7 0708090a0b0c0d0e0f10111213141516 fast\n");
    const auto again = SlotTable::parse(table.text());
    REQUIRE(again.has_value());
    REQUIRE(again->entries() == table.entries());
    REQUIRE(again->find(7)->disk == counting_id(7));
    REQUIRE(again->find(counting_id(1))->slot == 1);
    REQUIRE(again->find(3) == nullptr);
    REQUIRE(SlotTable::parse("")->entries().empty());

    table.set_use(1, SlotUse::kEmpty);
    REQUIRE(table.text().starts_with("1 0102030405060708090a0b0c0d0e0f10 fast empty\n7 "));
    REQUIRE(SlotTable::parse(table.text())->entries() == table.entries());
    table.set_use(1, SlotUse::kWrittenOff);
    REQUIRE(table.text().starts_with("1 0102030405060708090a0b0c0d0e0f10 fast written-off\n7 "));
    REQUIRE(SlotTable::parse(table.text())->entries() == table.entries());
    table.set_use(1, SlotUse::kInUse);
    REQUIRE(table.text() == again->text());
}

TEST_CASE("daemon slots: a table has the names and paths of disks, where they are recorded",
          "[daemon]") {
    SlotTable table;
    table.add(entry(1));
    table.add(entry(2));
    table.set_device(1, "nvme-0", "");
    REQUIRE(table.text() ==
            "1 0102030405060708090a0b0c0d0e0f10 fast device=nvme-0\n"
            "2 02030405060708090a0b0c0d0e0f1011 fast\n");
    table.set_use(1, SlotUse::kWrittenOff);
    REQUIRE(table.text().starts_with(
        "1 0102030405060708090a0b0c0d0e0f10 fast device=nvme-0 written-off\n"));
    REQUIRE(SlotTable::parse(table.text())->entries() == table.entries());
    REQUIRE_FALSE(SlotTable::parse("1 0102030405060708090a0b0c0d0e0f10 fast device=\n"));
    REQUIRE_FALSE(SlotTable::parse("1 0102030405060708090a0b0c0d0e0f10  device=d0\n"));

    table.set_device(1, "nvme-0", "/mnt/my disk 100%\n empty");
    REQUIRE(
        table.text().starts_with("1 0102030405060708090a0b0c0d0e0f10 fast device=nvme-0 "
                                 "path=/mnt/my%20disk%20100%25%0a%20empty written-off\n"));
    REQUIRE(SlotTable::parse(table.text())->entries() == table.entries());
    table.set_damage(1, 1764028800, 3);
    REQUIRE(table.text().find(" scrubbed=1764028800 damaged=3 written-off\n") != std::string::npos);
    REQUIRE(SlotTable::parse(table.text())->entries() == table.entries());
    const std::string line = "1 0102030405060708090a0b0c0d0e0f10 fast";
    REQUIRE(SlotTable::parse(line + " later=1 device=d0\n")->find(1)->device == "d0");
    for (const std::string bad :
         {" damaged=", " damaged=x", " scrubbed=1.5", " later", "  empty", " =1", " device=d0 "}) {
        INFO(bad);
        REQUIRE_FALSE(SlotTable::parse(line + bad + "\n"));
    }
    for (const std::string bad : {"", "%", "%2", "%2g", "a b", "\x7f"}) {
        INFO(bad);
        REQUIRE_FALSE(SlotTable::parse(
            "1 0102030405060708090a0b0c0d0e0f10 fast device=d0 path=" + bad + "\n"));
    }
}

TEST_CASE("daemon slots: a slot is never given to a second disk", "[daemon]") {
    SlotTable table;
    REQUIRE(table.unused() == SlotTable::kFirst);
    table.add(entry(1));
    table.add(entry(4));
    REQUIRE(table.unused() == 5);
    table.add(entry(65535, 9));
    REQUIRE(table.unused() == 2);
}

TEST_CASE("daemon slots: a damaged table is refused", "[daemon]") {
    const std::string good = "1 0102030405060708090a0b0c0d0e0f10 fast\n";
    REQUIRE(SlotTable::parse(good).has_value());
    for (const std::string& bad :
         {good.substr(0, good.size() - 1), good + good, good + "\n", " " + good, "65536" + good,
          "-1" + good.substr(1), good.substr(0, 35) + "\n", std::string("x\n"),
          "2" + good.substr(1) + good, std::string("1 0102 fast\n"), std::string(100, '\0')}) {
        INFO(bad);
        REQUIRE_FALSE(SlotTable::parse(bad).has_value());
    }
}

TEST_CASE("daemon slots: the example of docs/formats/data_dir.md is a table", "[daemon]") {
    std::ifstream file("docs/formats/data_dir.md");
    std::string table;
    for (std::string line; std::getline(file, line);) {
        const bool is_entry = line.starts_with("    ") && line.find(" fast") != line.npos;
        if (is_entry) table += line.substr(4) + '\n';
    }
    const auto parsed = SlotTable::parse(table);
    REQUIRE(parsed.has_value());
    REQUIRE(parsed->entries().size() == 3);
    REQUIRE(parsed->find(3)->use == SlotUse::kWrittenOff);
    REQUIRE(parsed->text() == table);
}

TEST_CASE("daemon disks: segments are such that there are not too many of them", "[daemon]") {
    REQUIRE(segment_bytes_for(16ULL << 20) == 1U << 20);
    REQUIRE(segment_bytes_for(64ULL << 30) == 1U << 20);
    REQUIRE(segment_bytes_for((64ULL << 30) + 4096) == 2U << 20);
    REQUIRE(segment_bytes_for(1ULL << 40) == 16U << 20);
    REQUIRE(segment_bytes_for(4ULL << 40) == 64U << 20);
    REQUIRE(segment_bytes_for(100ULL << 40) == 64U << 20);
}

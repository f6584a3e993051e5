#include "fop/listing.h"

#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/fop/samples.h"

namespace fopd::fop {

TEST_CASE("fop listing: entries of each kind come back", "[fop]") {
    std::vector<std::byte> payload(kListingBytesMax);
    const std::string longest(480, 'n');
    const std::vector<ListEntry> objects{
        {.fid = {.high = 1, .low = 2}, .size_bytes = 3, .changed_ns = 4, .name = "a"},
        {.fid = {.high = ~0ULL, .low = ~0ULL}, .size_bytes = 1ULL << 60, .name = longest}};
    ListingWriter list(payload);
    for (const ListEntry& each : objects) REQUIRE(list.add(each));
    REQUIRE(*read_list(list.written()) == objects);

    const std::vector<ListedSlot> slots{
        {.slot = 1, .locality = 2, .in_default_pool = true, .free_bytes = 3, .pool = "fast"},
        {.slot = 0xffff, .state = ListedSlotState::kReadOnly, .pool = ""}};
    ListingWriter table(payload);
    for (const ListedSlot& each : slots) REQUIRE(table.add(each));
    REQUIRE(*read_slots(table.written()) == slots);

    const std::vector<PoolEntry> pools{
        {.total_bytes = 1, .used_bytes = 2, .free_bytes = 3, .objects = 4, .pool = "fast"}};
    ListingWriter room(payload);
    for (const PoolEntry& each : pools) REQUIRE(room.add(each));
    REQUIRE(*read_pools(room.written()) == pools);

    const std::vector<FormatEntry> formats{
        {.asked_ms = 1, .cartridge = "A00001L9", .pool = "cold"},
        {.state = FormatEntry::State::kRunning, .cartridge = "A00002L9", .pool = "cold"}};
    ListingWriter labels(payload);
    for (const FormatEntry& each : formats) REQUIRE(labels.add(each));
    REQUIRE(*read_formats(labels.written()) == formats);
    REQUIRE_FALSE(read_formats(labels.written().first(20)).has_value());

    REQUIRE(read_list({})->empty());
}

TEST_CASE("fop listing: an entry that does not fit leaves the listing unchanged", "[fop]") {
    std::vector<std::byte> payload(100);
    ListingWriter list(payload);
    REQUIRE(list.add(ListEntry{.name = "1234567890"}));
    REQUIRE(list.add(ListEntry{.name = "1234567890"}));
    REQUIRE_FALSE(list.add(ListEntry{.name = "1"}));
    REQUIRE(read_list(list.written())->size() == 2);
}

TEST_CASE("fop listing: cut anywhere within an entry it is refused", "[fop]") {
    const auto payload = example_listing();
    for (std::size_t length = 0; length < payload.size(); ++length) {
        CAPTURE(length);
        // A vector of its own, so that a look beyond its end is seen.
        const std::vector<std::byte> cut(payload.begin(),
                                         payload.begin() + static_cast<std::ptrdiff_t>(length));
        const auto entries = read_list(cut);
        REQUIRE(entries.has_value() == (length == 0 || length == 44));
    }
}

TEST_CASE("fop listing: an invalid name is refused, an unknown state is accepted", "[fop]") {
    auto list = example_listing();
    list[34] = std::byte{'\n'};
    REQUIRE_FALSE(read_list(list));

    std::vector<std::byte> payload(64);
    ListingWriter table(payload);
    REQUIRE(table.add(ListedSlot{.pool = "fast"}));
    payload.resize(table.written().size());
    payload[4] = std::byte{77};
    REQUIRE(read_slots(payload)->front().state == ListedSlotState::kOther);
    payload[5] = std::byte{2};
    REQUIRE_FALSE(read_slots(payload));
}

}  // namespace fopd::fop

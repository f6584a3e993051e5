// Goal: what a volume promises of released objects and recalls, one promise each. Method: a volume
// on a simulated disk, which is opened again with its index and without.

#include <string>
#include <utility>
#include <vector>

#include "tests/store/volume_tape_bench.h"

namespace fopd::store::testing::tape {

// -- released objects --

TEST_CASE("store tape: an object is released if copies have all its bytes", "[store]") {
    const auto how = GENERATE(Start::kWithIndex, Start::kWithoutIndex);
    TapeBench bench;
    REQUIRE(bench.run(bench.write(kObject, {.first = 0, .count = kBlocks})).has_value());
    const Object object = bench.object(kObject);
    Copy front = bench.copy_of(kObject, kFirst, 1);
    front.length = 5000;
    Copy back = bench.copy_of(kObject, kSecond, 1);
    back.offset = 5001;
    back.length = kBytes - 5001;
    REQUIRE(code_of(bench.release(kObject)) == Errc::kInvalid);
    REQUIRE(bench.add({front, back}).has_value());
    REQUIRE(code_of(bench.release(kObject)) == Errc::kInvalid);
    front.length = 5001;
    front.position.file = 2;
    REQUIRE(bench.add({front}).has_value());
    const auto too_old =
        bench.run(bench.volume->release(kObject, object.content_version() - 1, bench.soon()));
    REQUIRE(code_of(too_old) == Errc::kBusy);
    const std::uint64_t free_before = bench.volume->space_use().free_blocks;

    const auto released = bench.release(kObject);

    REQUIRE(released.has_value());
    REQUIRE(released->blocks == kBlocks);
    REQUIRE(code_of(bench.release(kObject)) == Errc::kInvalid);
    REQUIRE(bench.run(bench.volume->settle_space(bench.soon())).has_value());
    REQUIRE(bench.volume->space_use().free_blocks == free_before + kBlocks);
    bench.start_again(how);
    REQUIRE(bench.object(kObject).is_released);
    REQUIRE(bench.object(kObject).released_blocks == kBlocks);
    REQUIRE(bench.object(kObject).content_version() == object.content_version());
    REQUIRE(code_of(bench.has_block(kObject, 0)) == Errc::kBusy);
    REQUIRE(bench.has_block(kOther, 0) == false);
    REQUIRE(bench.fault() == "");
}

TEST_CASE("store tape: a record of its own cannot release an object", "[store]") {
    TapeBench bench;
    REQUIRE(bench.run(bench.write(kObject, {.first = 0, .count = kBlocks})).has_value());
    Object released = bench.object(kObject);
    released.is_released = true;
    REQUIRE(code_of(bench.run(bench.put(kObject, released))) == Errc::kInvalid);
    REQUIRE(bench.add({bench.copy_of(kObject, kFirst, 1)}).has_value());
    released.next_content();
    REQUIRE(code_of(bench.run(bench.put(kObject, released))) == Errc::kInvalid);
    REQUIRE(bench.volume->serving());
    REQUIRE_FALSE(bench.object(kObject).is_released);
}

TEST_CASE("store tape: a released object changes only where no bytes are needed", "[store]") {
    TapeBench bench;
    bench.make_released(kObject);
    const Object released = bench.object(kObject);

    REQUIRE(code_of(bench.run(bench.write(kObject, {.first = 0, .count = 1}))) == Errc::kBusy);
    REQUIRE(code_of(bench.run(bench.punch(kObject, {.first = 0, .count = 1}))) == Errc::kBusy);
    REQUIRE(code_of(bench.run(bench.truncate(kObject, 1))) == Errc::kBusy);
    Object other = released;
    other.size_bytes = kBytes + 1;
    REQUIRE(code_of(bench.run(bench.put(kObject, other))) == Errc::kBusy);
    other = released;
    other.is_released = false;
    other.released_blocks = 0;
    REQUIRE(code_of(bench.run(bench.put(kObject, other))) == Errc::kBusy);
    other.next_content();
    REQUIRE(code_of(bench.run(bench.put(kObject, other))) == Errc::kBusy);
    REQUIRE(bench.volume->serving());

    Object renamed = released;
    renamed.next_attributes();
    REQUIRE(bench.run(bench.put(kObject, renamed)).has_value());
    REQUIRE(bench.object(kObject).is_released);
    REQUIRE(bench.volume->copies_of(kObject)->size() == 1);
    SECTION("it is truncated to nothing") {
        REQUIRE(bench.run(bench.truncate(kObject, 0)).has_value());
        REQUIRE_FALSE(bench.object(kObject).is_released);
        REQUIRE(bench.has_block(kObject, 0) == false);
    }
    SECTION("it is removed") {
        REQUIRE(bench.run(bench.remove(kObject)).has_value());
    }
    REQUIRE(bench.volume->cartridges().at(kFirst).dead_bytes() == kBytes);
    REQUIRE(bench.fault() == "");
}

// -- bringing back --

TEST_CASE("store tape: bytes are back when all parts are there, not before", "[store]") {
    TapeBench bench;
    bench.make_released(kObject);
    auto attempt = bench.run(bench.volume->begin_bringing_back(kObject, bench.soon()));
    REQUIRE(attempt.has_value());
    const auto end = [&] {
        return bench.run(bench.volume->end_bringing_back(&*attempt, std::nullopt, bench.soon()));
    };
    REQUIRE(bench.run(bench.bring_part(&*attempt, {.first = 4, .count = 4})).has_value());
    REQUIRE(attempt->missing() == BlockRange{.first = 0, .count = 4});
    REQUIRE(code_of(end()) == Errc::kInvalid);
    REQUIRE(code_of(bench.has_block(kObject, 5)) == Errc::kBusy);
    REQUIRE(bench.fault() == "");

    REQUIRE(bench.run(bench.bring_part(&*attempt, {.first = 0, .count = 4})).has_value());
    REQUIRE(end().has_value());

    REQUIRE_FALSE(bench.object(kObject).is_released);
    REQUIRE(bench.has_block(kObject, 5) == true);
    REQUIRE(bench.volume->copies_of(kObject)->size() == 1);
    REQUIRE(code_of(end()) == Errc::kBusy);
    REQUIRE(bench.release(kObject)->blocks == kBlocks);
    REQUIRE(bench.fault() == "");
}

TEST_CASE("store tape: what an attempt has left is freed by the next one", "[store]") {
    const auto how = GENERATE(Start::kWithIndex, Start::kWithoutIndex);
    TapeBench bench;
    bench.make_released(kObject);
    REQUIRE(bench.run(bench.volume->settle_space(bench.soon())).has_value());
    auto attempt = bench.run(bench.volume->begin_bringing_back(kObject, bench.soon()));
    REQUIRE(bench.run(bench.bring_part(&*attempt, {.first = 2, .count = 3})).has_value());
    bench.start_again(how);

    REQUIRE(bench.object(kObject).is_released);
    REQUIRE(bench.volume->owners_at_open().at(0).at("alice").blocks == kBlocks);
    REQUIRE(bench.fault() == "");
    attempt = bench.run(bench.volume->begin_bringing_back(kObject, bench.soon()));
    REQUIRE(attempt.has_value());
    REQUIRE(attempt->missing().count == kBlocks);
    REQUIRE(bench.run(bench.volume->drop_parts(kObject, bench.soon())) == 0U);
    REQUIRE(bench.run(bench.bring_part(&*attempt, {.first = 0, .count = 5})).has_value());
    REQUIRE(bench.run(bench.volume->drop_parts(kObject, bench.soon())) == 5U);
}

TEST_CASE("store tape: an attempt ends with the content that it was made for", "[store]") {
    TapeBench bench;
    bench.make_released(kObject);
    auto attempt = bench.run(bench.volume->begin_bringing_back(kObject, bench.soon()));
    REQUIRE(bench.run(bench.bring_part(&*attempt, {.first = 0, .count = kBlocks})).has_value());
    REQUIRE(bench.run(bench.truncate(kObject, 0)).has_value());

    REQUIRE(code_of(bench.run(bench.bring_part(&*attempt, {.first = 0, .count = 1}))) ==
            Errc::kBusy);
    REQUIRE(code_of(bench.run(bench.volume->end_bringing_back(&*attempt, {}, bench.soon()))) ==
            Errc::kBusy);
    REQUIRE(bench.has_block(kObject, 0) == false);
    REQUIRE(code_of(bench.run(bench.volume->begin_bringing_back(kObject, bench.soon()))) ==
            Errc::kInvalid);
    REQUIRE(code_of(bench.run(bench.volume->begin_bringing_back(kOther, bench.soon()))) ==
            Errc::kNotFound);
}

TEST_CASE("store tape: an attempt knows which blocks are missing", "[store]") {
    core::Random random(7);
    for (int round = 0; round < 200; ++round) {
        constexpr std::uint64_t kCount = 40;
        BringingBack attempt(kObject, 1, kCount * 4096 - random.below(4096));
        std::vector<bool> there(kCount);
        while (!attempt.is_complete()) {
            const std::uint64_t first = random.below(kCount);
            const BlockRange range{.first = first, .count = random.below(kCount - first + 1)};
            attempt.add(range);
            for (std::uint64_t i = range.first; i < range.end(); ++i) there[i] = true;
            const auto gap = std::ranges::find(there, false);
            const auto gap_end = std::find(gap, there.end(), true);
            REQUIRE(attempt.missing().count == static_cast<std::uint64_t>(gap_end - gap));
            if (gap == there.end()) continue;
            REQUIRE(attempt.missing().first == static_cast<std::uint64_t>(gap - there.begin()));
        }
        REQUIRE(std::ranges::find(there, false) == there.end());
    }
}

// -- recalls --

TEST_CASE("store tape: recalls are listed by ticket until they end", "[store]") {
    const auto how = GENERATE(Start::kWithIndex, Start::kWithoutIndex);
    TapeBench bench;
    const auto put = [&](Fid fid, const Recall& recall) {
        return bench.run(bench.volume->put_recall(fid, recall, bench.soon()));
    };
    const auto tickets = [&] {
        std::vector<std::uint64_t> all;
        const auto listed = bench.run(bench.volume->recalls());
        for (const RecallOf& each : listed.value()) all.push_back(each.recall.ticket);
        return all;
    };
    Recall recall{.ticket = 9,
                  .priority = -3,
                  .asked = {1'800'000'000'000'000'000},
                  .pinned_until = {1'800'000'001'000'000'000},
                  .requester = "ann"};
    recall.client.bytes.back() = std::byte{5};
    REQUIRE(code_of(put(kObject, recall)) == Errc::kNotFound);
    bench.make_released(kObject, 1);
    bench.make_released(kOther, 2);
    REQUIRE(put(kObject, recall).has_value());
    REQUIRE(put(kOther, {.ticket = 4}).has_value());
    REQUIRE(put(kOther, {.ticket = 5}).has_value());
    bench.start_again(how);

    REQUIRE(tickets() == std::vector<std::uint64_t>{5, 9});
    REQUIRE(bench.volume->map().find_recall(kObject)->value() == recall);
    bench.volume->map().release();
    REQUIRE(bench.check().recalls == 2);
    REQUIRE(bench.fault() == "");
    SECTION("the object goes") {
        REQUIRE(bench.run(bench.remove(kObject)).has_value());
    }
    SECTION("it is cancelled") {
        REQUIRE(bench.run(bench.volume->end_recall(kObject, bench.soon())).has_value());
        REQUIRE(bench.run(bench.volume->end_recall(kObject, bench.soon())).has_value());
    }
    SECTION("the bytes are back") {
        auto attempt = bench.run(bench.volume->begin_bringing_back(kObject, bench.soon()));
        attempt->add({.first = 0, .count = kBlocks});  // Zeros.
        const auto ended =
            bench.run(bench.volume->end_bringing_back(&*attempt, std::nullopt, bench.soon()));
        REQUIRE(ended.has_value());
    }
    REQUIRE(tickets() == std::vector<std::uint64_t>{5});
    bench.start_again(how);
    REQUIRE(tickets() == std::vector<std::uint64_t>{5});
    auto attempt = bench.run(bench.volume->begin_bringing_back(kOther, bench.soon()));
    attempt->add({.first = 0, .count = kBlocks});
    const Recall pin{.pinned_until = {1'800'000'002'000'000'000}};
    REQUIRE(bench.run(bench.volume->end_bringing_back(&*attempt, pin, bench.soon())).has_value());
    bench.start_again(how);
    REQUIRE(bench.volume->map().find_recall(kOther)->value() == pin);
    bench.volume->map().release();
    REQUIRE(bench.fault() == "");
}

// -- checks --

TEST_CASE("store tape: a check finds what does not agree", "[store]") {
    TapeBench bench;
    bench.make_released(kObject);
    REQUIRE(bench.run(bench.volume->put_recall(kObject, {.ticket = 1}, bench.soon())).has_value());
    const Copy copy = bench.copy_of(kObject, kFirst, 1);
    REQUIRE(bench.fault() == "");
    const auto erase = [&](const Key& key) {
        REQUIRE(bench.run(bench.volume->close()).has_value());
        const auto text = as_text(key.bytes());
        REQUIRE(bench.index_image.entries.erase(
                    decltype(bench.index_image.entries)::key_type(text.begin(), text.end())) == 1);
    };
    std::string wanted;
    SECTION("a position is missing") {
        erase(position_key(kFirst, copy.position));
        wanted = "the position of a copy is not in the index of its cartridge";
    }
    SECTION("a copy is missing") {
        erase(copy_key(key_of(copy)));
        wanted = "an entry for a position on tape without a copy of an object";
    }
    SECTION("an object is missing") {
        erase(Key::object(kObject));
        wanted = "a copy of no object";
    }
    bench.start_closed(Start::kWithIndex);
    REQUIRE(bench.fault() == wanted);
}

}  // namespace fopd::store::testing::tape

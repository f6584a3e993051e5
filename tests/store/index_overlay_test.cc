// Goal: the overlay is an ordered map. Method: random operations against a std::map.
#include "core/random.h"
#include "store/object.h"
#include "store/overlay.h"
#include "tests/store/index_stage.h"

using namespace fopd;
using namespace fopd::store;
using namespace fopd::store::testing;

namespace {

// Few different ones, short and long, with zeros, and beginnings of each other.
std::string random_overlay_key(core::Random& random) {
    constexpr std::array<std::size_t, 6> kLengths{0, 1, 25, 30, 31, 60};
    std::string key(kLengths[random.below(kLengths.size())], 'k');
    for (auto left = random.below(6) + 1; left > 0; --left) {
        key += static_cast<char>(random.below(3) * 127);
    }
    return key;
}

Changes all_of(Overlay& overlay) {
    Changes all;
    overlay.rewind();
    while (const auto change = overlay.next()) {
        const auto value = change->value ? std::optional(text_of(*change->value)) : std::nullopt;
        const auto at = all.emplace_hint(all.end(), text_of(change->key), value);
        REQUIRE(std::next(at) == all.end());
    }
    return all;
}

std::string key_at(const Overlay& overlay, Overlay::Cursor cursor) {
    return cursor ? text_of(overlay.at(cursor).key) : "nowhere";
}

void require_neighbours(const Overlay& overlay, const Changes& model, const std::string& key) {
    const auto after = model.lower_bound(key);
    const auto above = model.upper_bound(key);
    const auto cursor = overlay.at_or_after(bytes_of(key));
    const auto cursor_before = overlay.at_or_before(bytes_of(key));
    REQUIRE(key_at(overlay, cursor) == (after == model.end() ? "nowhere" : after->first));
    REQUIRE(key_at(overlay, cursor_before) ==
            (above == model.begin() ? "nowhere" : std::prev(above)->first));
    if (cursor) {
        const auto before = overlay.previous(cursor);
        REQUIRE(key_at(overlay, before) ==
                (after == model.begin() ? "nowhere" : std::prev(after)->first));
    }
    if (cursor_before) {
        REQUIRE(key_at(overlay, overlay.next(cursor_before)) ==
                (above == model.end() ? "nowhere" : above->first));
    }
}

}  // namespace

TEST_CASE("store overlay: it is the last that was said of each key", "[store][swarm]") {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        core::Random random(seed);
        ChunkPool chunks;
        Overlay overlay(chunks);
        Changes model;
        for (auto left = random.below(3000); left > 0; --left) {
            const auto key = random_overlay_key(random);
            if (random.chance_ppm(250'000)) {
                overlay.erase(bytes_of(key));
                model[key] = std::nullopt;
            } else {
                const std::string value(random.below(60), static_cast<char>(random.below(256)));
                overlay.put(bytes_of(key), bytes_of(value));
                model[key] = value;
            }
            if (random.chance_ppm(50'000))
                require_neighbours(overlay, model, random_overlay_key(random));
        }
        REQUIRE(overlay.count() == model.size());
        REQUIRE(all_of(overlay) == model);
        for (int i = 0; i < 200; ++i)
            require_neighbours(overlay, model, random_overlay_key(random));
        overlay.clear();
        REQUIRE(overlay.empty());
        REQUIRE(all_of(overlay).empty());
        REQUIRE(!overlay.at_or_after(bytes_of("a")));
    }
}

TEST_CASE("store overlay: ascending and descending keys are found", "[store]") {
    const bool ascending = GENERATE(true, false);
    ChunkPool chunks;
    Overlay overlay(chunks);
    constexpr std::uint64_t kCount = 50'000;

    for (std::uint64_t i = 0; i < kCount; ++i) {
        const auto number = ascending ? i : kCount - 1 - i;
        const auto key = Key::extent({.high = 1, .low = 2}, number);
        overlay.put(key, std::as_bytes(std::span(&number, 1)));
    }

    std::uint64_t number = 0;
    overlay.rewind();
    while (const auto change = overlay.next()) {
        REQUIRE(text_of(*change->value) == text_of(std::as_bytes(std::span(&number, 1))));
        ++number;
    }
    REQUIRE(number == kCount);
}

TEST_CASE("store overlay: an ascending stream takes little more than what it holds", "[store]") {
    ChunkPool chunks;
    Overlay overlay(chunks);
    constexpr std::uint64_t kCount = 100'000;
    for (std::uint64_t i = 0; i < kCount; ++i) {
        overlay.put(Key::extent({.high = 1, .low = 2}, i), bytes_of("123456789012"));
    }
    // A record of 48 bytes, and 40 in a node.
    REQUIRE(overlay.bytes() < kCount * 100);
}

TEST_CASE("store overlay: what it gives back serves the next one", "[store]") {
    ChunkPool chunks;
    Overlay first(chunks);
    Overlay second(chunks);
    const std::string value(1000, 'v');
    for (int i = 0; i < 1000; ++i) first.put(bytes_of(std::to_string(i)), bytes_of(value));
    const auto size_bytes = first.bytes();

    first.clear();
    for (int i = 0; i < 1000; ++i) second.put(bytes_of(std::to_string(i)), bytes_of(value));

    REQUIRE(first.bytes() == 0);
    REQUIRE(second.bytes() == size_bytes);
}

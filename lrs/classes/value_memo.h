#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "lrs/classes/bit_rows.h"
#include "lrs/classes/value_index.h"

namespace fopd::lrs {

// Which owners an index found for the texts it was last asked for. Each text has one place, which
// it takes from another; a long one, and one with many owners, has none. Who asks with new texts
// all the time pays for the index each time, and little more. One core.
class ValueMemo {
public:
    static constexpr std::size_t kOwnersMax = 4096;

    // Adds the owners of those that have the value. Requires: it is the index of all calls before;
    // `owners` has a bit for each owner.
    void find(const ValueIndex& index, std::string_view text, std::span<BitRows::Word> owners) {
        if (text.size() > kTextBytesMax) return index.find(text, owners);
        if (places_.empty()) places_.resize(kPlaces);
        Place& place = places_[std::hash<std::string_view>()(text) % kPlaces];
        if (!place.is_of(text)) {
            std::array<BitRows::Word, BitRows::words_for(kOwnersMax)> row;
            const auto found = std::span(row).first(owners.size());
            std::ranges::fill(found, 0);
            index.find(text, found);
            place.begin(text);
            BitRows::for_each(found, [&](std::size_t owner) { place.add(owner); });
            return BitRows::add_all(owners, found);
        }
        for (std::size_t i = 0; i < place.count; ++i) BitRows::set(owners, place.owners[i]);
    }

private:
    static constexpr std::size_t kPlaces = 1024;
    static constexpr std::size_t kTextBytesMax = 40;  // Every address is shorter.
    static constexpr std::uint8_t kRememberedMax = 11;

    struct alignas(64) Place {
        bool is_of(std::string_view asked) const {
            return count <= kRememberedMax && asked == std::string_view(text.data(), size);
        }
        void begin(std::string_view of) {
            size = static_cast<std::uint8_t>(of.copy(text.data(), text.size()));
            count = 0;
        }
        // With one too many it is of no text.
        void add(std::size_t owner) {
            if (count < kRememberedMax) owners[count] = static_cast<std::uint16_t>(owner);
            if (count <= kRememberedMax) ++count;
        }

        std::uint8_t size = 0;
        std::uint8_t count = kRememberedMax + 1;
        std::array<char, kTextBytesMax> text;
        std::array<std::uint16_t, kRememberedMax> owners;
    };
    static_assert(sizeof(Place) == 64);

    std::vector<Place> places_;  // Made with the first text.
};

}  // namespace fopd::lrs

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

// Caches which owners an index found for recent texts. Each text has one possible entry, in which
// it replaces another text; long texts, and texts with many owners, are not cached. A client that
// always sends new texts costs little more than the look-up in the index. One core.
class ValueMemo {
public:
    static constexpr std::size_t kOwnersMax = 4096;

    // Sets the bits of the owners that list the value. REQUIRES: `index` is the same in all calls;
    // `owners` has a bit for each owner.
    void find(const ValueIndex& index, std::string_view text, std::span<BitRows::Word> owners) {
        if (text.size() > kTextBytesMax) return index.find(text, owners);
        if (cells_.empty()) cells_.resize(kCells);
        Cell& cell = cells_[std::hash<std::string_view>()(text) % kCells];
        if (!cell.is_of(text)) {
            std::array<BitRows::Word, BitRows::words_for(kOwnersMax)> row;
            const auto found = std::span(row).first(owners.size());
            std::ranges::fill(found, 0);
            index.find(text, found);
            cell.begin(text);
            BitRows::for_each(found, [&](std::size_t owner) { cell.add(owner); });
            return BitRows::add_all(owners, found);
        }
        for (std::size_t i = 0; i < cell.count; ++i) BitRows::set(owners, cell.owners[i]);
    }

private:
    static constexpr std::size_t kCells = 1024;
    static constexpr std::size_t kTextBytesMax = 40;  // All addresses are shorter.
    static constexpr std::uint8_t kRememberedMax = 11;

    struct alignas(64) Cell {
        bool is_of(std::string_view asked) const {
            return count <= kRememberedMax && asked == std::string_view(text.data(), size);
        }
        void begin(std::string_view of) {
            size = static_cast<std::uint8_t>(of.copy(text.data(), text.size()));
            count = 0;
        }
        // Adds an owner. Beyond kRememberedMax owners the entry is invalid.
        void add(std::size_t owner) {
            if (count < kRememberedMax) owners[count] = static_cast<std::uint16_t>(owner);
            if (count <= kRememberedMax) ++count;
        }

        std::uint8_t size = 0;
        std::uint8_t count = kRememberedMax + 1;
        std::array<char, kTextBytesMax> text;
        std::array<std::uint16_t, kRememberedMax> owners;
    };
    static_assert(sizeof(Cell) == 64);

    std::vector<Cell> cells_;  // Allocated on first use.
};

}  // namespace fopd::lrs

#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "lrs/classes/bit_rows.h"

namespace fopd::lrs {

// Finds which of many prefixes (or suffixes) a text has. The owners of the affixes are small
// numbers.
class AffixIndex {
public:
    enum class Side : std::uint8_t { kBegin, kEnd };

    explicit AffixIndex(Side side) : side_(side) {}

    void add(std::string_view affix, std::uint32_t owner);
    // Called after the last add(). Makes a row for each affix: its owners, and the owners of all
    // shorter affixes with which it begins (kBegin) or ends (kEnd).
    void finish(BitRows& rows);

    bool empty() const { return affixes_.empty(); }
    // The row of the longest matching affix; null if none matches.
    const std::uint32_t* find(std::string_view text) const;

private:
    struct Affix {
        std::string text;                   // Suffixes are stored reversed.
        std::vector<std::uint32_t> owners;  // Empty after finish().
        std::size_t shorter = kNone;        // The longest other affix that is a prefix of this one.
        std::uint32_t row = 0;
    };
    static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

    bool is_before(std::string_view text, const Affix& affix) const;
    bool fits(const Affix& affix, std::string_view text) const;

    Side side_;
    std::vector<Affix> affixes_;  // Sorted, so affixes with a common prefix are adjacent.
};

}  // namespace fopd::lrs

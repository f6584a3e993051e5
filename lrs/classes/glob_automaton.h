#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lrs/classes/bit_rows.h"
#include "lrs/classes/glob.h"

namespace fopd::lrs {

// Many globs that read a text together. A bit stands for how far a glob has come; all move on with
// each byte of the text, 64 at a time. What it takes is the length of the text times the places of
// all globs by 64, whatever the text is.
class GlobAutomaton {
public:
    static constexpr std::size_t kPlacesMax = 16384;

    // How many places of the automaton a glob takes.
    static std::size_t places_of(const Glob& glob);

    // Requires: there is room for its places.
    void add(const Glob& glob, std::uint32_t number);
    // After the last was added, before the first is looked for.
    void finish();

    bool empty() const { return place_count_ == 0; }
    // Calls `visit` with the number of each glob that the text matches.
    template <typename Visit>
    void find(std::string_view text, Visit visit) const {
        if (empty()) return;
        Places places;
        run(text, places);
        BitRows::for_each(std::span(places).first(words_),
                          [&](std::size_t place) { visit(number_at_[place]); });
    }

private:
    using Word = BitRows::Word;
    using Places = std::array<Word, kPlacesMax / BitRows::kWordBits>;

    struct Added {
        std::vector<std::string> pieces;
        std::uint32_t number;
    };

    void run(std::string_view text, Places& places) const;

    std::vector<Added> added_;  // Until it is finished.
    std::size_t place_count_ = 0;
    std::size_t words_ = 0;
    BitRows by_byte_;          // For each byte: the places that are reached with it.
    std::vector<Word> first_;  // Where each glob begins,
    std::vector<Word> gaps_;   // where it stays with any byte,
    std::vector<Word> last_;   // and where it has matched.
    std::vector<std::uint32_t> number_at_;
};

}  // namespace fopd::lrs

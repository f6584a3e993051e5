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

// Matches many globs against a text at once, as a bit-parallel automaton. Each state of a glob is a
// bit; each byte of the text advances 64 states at a time. The time is the length of the text times
// the number of states divided by 64, whatever the text is.
class GlobAutomaton {
public:
    static constexpr std::size_t kStatesMax = 16384;

    // The number of states a glob needs.
    static std::size_t states_of(const Glob& glob);

    // REQUIRES: there is room for its states.
    void add(const Glob& glob, std::uint32_t number);
    // After the last add(), before the first find().
    void finish();

    bool empty() const { return state_count_ == 0; }
    // Calls `visit` with the number of each glob that the text matches.
    template <typename Visit>
    void find(std::string_view text, Visit visit) const {
        if (empty()) return;
        States states;
        run(text, states);
        BitRows::for_each(std::span(states).first(words_),
                          [&](std::size_t state) { visit(number_at_[state]); });
    }

private:
    using Word = BitRows::Word;
    using States = std::array<Word, kStatesMax / BitRows::kWordBits>;

    struct Added {
        std::vector<std::string> literals;
        std::uint32_t number;
    };

    void run(std::string_view text, States& states) const;

    std::vector<Added> added_;  // Empty after finish().
    std::size_t state_count_ = 0;
    std::size_t words_ = 0;
    BitRows by_byte_;          // For each byte: the states it can lead to.
    std::vector<Word> first_;  // The first state of each glob.
    std::vector<Word> gaps_;   // The states that any byte keeps (gaps).
    std::vector<Word> last_;   // The accepting states.
    std::vector<std::uint32_t> number_at_;
};

}  // namespace fopd::lrs

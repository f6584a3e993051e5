#include "lrs/classes/glob_automaton.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/ensure.h"

namespace fopd::lrs {

namespace {

using Word = BitRows::Word;

constexpr std::uint32_t kByteCount = 256;
// Vectors that every supported machine has instructions for.
using Words = Word __attribute__((vector_size(16)));
constexpr std::size_t kTogether = sizeof(Words) / sizeof(Word);
constexpr std::size_t kBitsTogether = kTogether * BitRows::kWordBits;
static_assert(GlobAutomaton::kStatesMax % kBitsTogether == 0);

Words words_at(const Word* from) {
    Words words;
    std::memcpy(&words, from, sizeof(words));
    return words;
}

}  // namespace

// One state before its first byte, and one after each byte.
std::size_t GlobAutomaton::states_of(const Glob& glob) {
    std::size_t states = 1;
    for (const std::string& literal : glob.literals()) states += literal.size();
    return states;
}

void GlobAutomaton::add(const Glob& glob, std::uint32_t number) {
    state_count_ += states_of(glob);
    ENSURE(state_count_ <= kStatesMax);
    added_.push_back({.literals = glob.literals(), .number = number});
}

void GlobAutomaton::finish() {
    if (empty()) return;
    const std::size_t together = (state_count_ + kBitsTogether - 1) / kBitsTogether;
    by_byte_ = BitRows(together * kBitsTogether);
    words_ = by_byte_.words();
    for (std::uint32_t byte = 0; byte < kByteCount; ++byte) by_byte_.add();
    first_.resize(words_);
    gaps_.resize(words_);
    last_.resize(words_);
    number_at_.resize(state_count_);
    std::size_t state = 0;
    for (const Added& glob : added_) {
        BitRows::set(first_, state);
        for (std::size_t i = 0; i < glob.literals.size(); ++i) {
            if (i > 0) BitRows::set(gaps_, state);
            for (const char byte : glob.literals[i]) {
                ++state;
                BitRows::set(by_byte_.at(static_cast<unsigned char>(byte)), state);
            }
        }
        BitRows::set(last_, state);
        number_at_[state] = glob.number;
        ++state;
    }
    added_.clear();
    added_.shrink_to_fit();
}

void GlobAutomaton::run(std::string_view text, States& states) const {
    // Nothing is shifted into the first state.
    std::array<Word, 1 + kStatesMax / BitRows::kWordBits> rows[2];
    rows[0][0] = rows[1][0] = 0;
    const Word* const gaps = gaps_.data();
    Word* before = &rows[0][1];
    Word* after = &rows[1][1];
    std::ranges::copy(first_, before);
    for (const char byte : text) {
        const Word* const reached = by_byte_.at(static_cast<unsigned char>(byte)).data();
        for (std::size_t i = 0; i < words_; i += kTogether) {
            const Words here = words_at(before + i);
            const Words moved =
                (here << 1) | (words_at(before + i - 1) >> (BitRows::kWordBits - 1));
            const Words next = (moved & words_at(reached + i)) | (here & words_at(gaps + i));
            std::memcpy(after + i, &next, sizeof(next));
        }
        std::swap(before, after);
    }
    for (std::size_t i = 0; i < words_; ++i) states[i] = before[i] & last_[i];
}

}  // namespace fopd::lrs

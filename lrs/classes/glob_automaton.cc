#include "lrs/classes/glob_automaton.h"

#include <algorithm>

#include "core/ensure.h"

namespace fopd::lrs {

namespace {

constexpr std::uint32_t kByteCount = 256;

}  // namespace

// One before its first byte, and one behind each byte.
std::size_t GlobAutomaton::places_of(const Glob& glob) {
    std::size_t places = 1;
    for (const std::string& piece : glob.pieces()) places += piece.size();
    return places;
}

void GlobAutomaton::add(const Glob& glob, std::uint32_t number) {
    place_count_ += places_of(glob);
    ENSURE(place_count_ <= kPlacesMax);
    added_.push_back({.pieces = glob.pieces(), .number = number});
}

void GlobAutomaton::finish() {
    if (empty()) return;
    words_ = BitRows::words_for(place_count_);
    by_byte_ = BitRows(place_count_);
    for (std::uint32_t byte = 0; byte < kByteCount; ++byte) by_byte_.add();
    first_.resize(words_);
    gaps_.resize(words_);
    last_.resize(words_);
    number_at_.resize(place_count_);
    std::size_t place = 0;
    for (const Added& glob : added_) {
        BitRows::set(first_, place);
        for (std::size_t i = 0; i < glob.pieces.size(); ++i) {
            if (i > 0) BitRows::set(gaps_, place);
            for (const char byte : glob.pieces[i]) {
                ++place;
                BitRows::set(by_byte_.at(static_cast<unsigned char>(byte)), place);
            }
        }
        BitRows::set(last_, place);
        number_at_[place] = glob.number;
        ++place;
    }
    added_.clear();
    added_.shrink_to_fit();
}

void GlobAutomaton::run(std::string_view text, Places& places) const {
    Places before;
    std::ranges::copy(first_, places.begin());
    for (const char byte : text) {
        std::copy_n(places.begin(), words_, before.begin());
        const auto reached = by_byte_.at(static_cast<unsigned char>(byte));
        places[0] = ((before[0] << 1) & reached[0]) | (before[0] & gaps_[0]);
        for (std::size_t i = 1; i < words_; ++i) {
            const Word moved = (before[i] << 1) | (before[i - 1] >> (BitRows::kWordBits - 1));
            places[i] = (moved & reached[i]) | (before[i] & gaps_[i]);
        }
    }
    for (std::size_t i = 0; i < words_; ++i) places[i] &= last_[i];
}

}  // namespace fopd::lrs

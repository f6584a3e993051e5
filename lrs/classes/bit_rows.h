#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace fopd::lrs {

// Bit sets of equal size, stored one after the other.
class BitRows {
public:
    using Word = std::uint64_t;
    static constexpr std::size_t kWordBits = 64;

    static constexpr std::size_t words_for(std::size_t bits) {
        return (bits + kWordBits - 1) / kWordBits;
    }
    static void set(std::span<Word> row, std::size_t bit) {
        row[bit / kWordBits] |= Word{1} << bit % kWordBits;
    }
    static void clear(std::span<Word> row, std::size_t bit) {
        row[bit / kWordBits] &= ~(Word{1} << bit % kWordBits);
    }
    static bool has(std::span<const Word> row, std::size_t bit) {
        return (row[bit / kWordBits] >> bit % kWordBits & 1) != 0;
    }
    // REQUIRES: both have the same size.
    static void add_all(std::span<Word> to, std::span<const Word> from) {
        for (std::size_t i = 0; i < to.size(); ++i) to[i] |= from[i];
    }
    template <typename Visit>
    static void for_each(std::span<const Word> row, Visit visit) {
        for (std::size_t i = 0; i < row.size(); ++i) {
            for (Word left = row[i]; left != 0; left &= left - 1)
                visit(i * kWordBits + static_cast<std::size_t>(std::countr_zero(left)));
        }
    }

    BitRows() = default;
    // Sets of numbers below `bits`.
    explicit BitRows(std::size_t bits) : words_(words_for(bits)) {}

    std::size_t words() const { return words_; }
    // Adds an empty set and returns its number.
    std::uint32_t add() {
        bits_.resize(bits_.size() + words_);
        return count_++;
    }
    std::span<Word> at(std::uint32_t row) { return std::span(bits_).subspan(row * words_, words_); }
    std::span<const Word> at(std::uint32_t row) const {
        return std::span(bits_).subspan(row * words_, words_);
    }

private:
    std::size_t words_ = 0;
    std::uint32_t count_ = 0;
    std::vector<Word> bits_;
};

}  // namespace fopd::lrs

#include "config/nearest.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace fopd::config {
namespace {

constexpr std::size_t kWordMax = 64;
// Two wrong letters make another word of such a short one.
constexpr std::size_t kShortWordMax = 4;

// Without the dashes of an option.
std::size_t letters_of(std::string_view word) {
    return word.size() - std::min(word.find_first_not_of('-'), word.size());
}

// Maps characters that count as equal to one of them.
char folded(char c) {
    if (c == '-') return '_';
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// The number of insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
// REQUIRES: both have at most kWordMax characters.
std::size_t edit_distance(std::string_view a, std::string_view b) {
    using Row = std::array<std::size_t, kWordMax + 1>;
    Row before_last{};
    Row last{};
    Row row{};
    for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        before_last = last;
        last = row;
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const bool same = folded(a[i - 1]) == folded(b[j - 1]);
            row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
            const bool swapped = i > 1 && j > 1 && folded(a[i - 1]) == folded(b[j - 2]) &&
                                 folded(a[i - 2]) == folded(b[j - 1]);
            if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
        }
    }
    return row[b.size()];
}

}  // namespace

std::optional<std::string> nearest(std::string_view word,
                                   const std::vector<std::string>& candidates) {
    std::optional<std::string> best;
    std::size_t best_distance = 0;
    if (word.size() > kWordMax) return best;
    for (const std::string& candidate : candidates) {
        if (candidate.size() > kWordMax) continue;
        const std::size_t letters = std::min(letters_of(word), letters_of(candidate));
        const std::size_t allowed = letters <= kShortWordMax ? 1 : 2;
        const std::size_t distance = edit_distance(word, candidate);
        const bool recognisable = distance < std::min(word.size(), candidate.size());
        if (distance > allowed || !recognisable) continue;
        if (best && distance >= best_distance) continue;
        best = candidate;
        best_distance = distance;
    }
    return best;
}

}  // namespace fopd::config

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fopd::lrs {

// A pattern: text with gaps, each matching any text, also the empty one. Matching takes time linear
// in the length of the text, whatever the pattern is.
class Glob {
public:
    // The literals, which are the texts between the gaps: {"a", "b"} is a*b, {"", ""} is *.
    // REQUIRES: not empty.
    explicit Glob(std::vector<std::string> literals);

    bool matches(std::string_view text) const;
    const std::vector<std::string>& literals() const { return literals_; }

    friend bool operator==(const Glob& a, const Glob& b) { return a.literals_ == b.literals_; }

private:
    std::vector<std::string> literals_;
    // For each byte of each literal between two gaps, concatenated: the length of the longest
    // proper prefix of the literal that ends at this byte (as in Knuth-Morris-Pratt).
    std::vector<std::uint32_t> borders_;
    std::size_t size_min_ = 0;
};

// Whether the glob is only a prefix, sim*, or only a suffix, *.log.
bool is_begin(const Glob& glob);
bool is_end(const Glob& glob);

}  // namespace fopd::lrs

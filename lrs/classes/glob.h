#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fopd::lrs {

// Text with gaps in it that stand for any text, also none. To match takes time that is linear in
// the length of the text, whatever the pattern.
class Glob {
public:
    // What stands between the gaps: {"a", "b"} is a*b, {"", ""} is *. Requires: not empty.
    explicit Glob(std::vector<std::string> pieces);

    bool matches(std::string_view text) const;
    const std::vector<std::string>& pieces() const { return pieces_; }

    friend bool operator==(const Glob& a, const Glob& b) { return a.pieces_ == b.pieces_; }

private:
    std::vector<std::string> pieces_;
    // For each byte of each piece between two gaps, one behind the other: how long a start of the
    // piece ends there.
    std::vector<std::uint32_t> borders_;
    std::size_t size_min_ = 0;
};

// Whether it is a start alone, sim*, or an end alone, *.log.
bool is_begin(const Glob& glob);
bool is_end(const Glob& glob);

}  // namespace fopd::lrs

#include "lrs/classes/glob.h"

#include <span>
#include <utility>

#include "core/ensure.h"

namespace fopd::lrs {

namespace {

void find_borders(std::string_view literal, std::span<std::uint32_t> borders) {
    std::uint32_t length = 0;
    for (std::size_t i = 1; i < literal.size(); ++i) {
        while (length > 0 && literal[i] != literal[length]) length = borders[length - 1];
        if (literal[i] == literal[length]) ++length;
        borders[i] = length;
    }
}

// The end of the first occurrence of the literal at or after `from`; npos if there is none.
std::size_t end_of(std::string_view literal, std::span<const std::uint32_t> borders,
                   std::string_view text, std::size_t from) {
    if (literal.empty()) return from;
    std::size_t length = 0;
    for (std::size_t i = from; i < text.size(); ++i) {
        while (length > 0 && text[i] != literal[length]) length = borders[length - 1];
        if (text[i] == literal[length]) ++length;
        if (length == literal.size()) return i + 1;
    }
    return std::string_view::npos;
}

}  // namespace

Glob::Glob(std::vector<std::string> literals) : literals_(std::move(literals)) {
    ENSURE(!literals_.empty());
    for (const std::string& literal : literals_) size_min_ += literal.size();
    if (literals_.size() <= 2) return;
    borders_.resize(size_min_ - literals_.front().size() - literals_.back().size());
    std::span<std::uint32_t> borders = borders_;
    for (std::size_t i = 1; i + 1 < literals_.size(); ++i) {
        find_borders(literals_[i], borders.first(literals_[i].size()));
        borders = borders.subspan(literals_[i].size());
    }
}

bool Glob::matches(std::string_view text) const {
    if (literals_.size() == 1) return text == literals_.front();
    if (text.size() < size_min_) return false;
    if (!text.starts_with(literals_.front()) || !text.ends_with(literals_.back())) return false;

    // The leftmost match of a literal leaves the most room for the next ones, so there is no
    // backtracking.
    text.remove_suffix(literals_.back().size());
    std::size_t from = literals_.front().size();
    std::span<const std::uint32_t> borders = borders_;
    for (std::size_t i = 1; i + 1 < literals_.size(); ++i) {
        const std::string& literal = literals_[i];
        from = end_of(literal, borders.first(literal.size()), text, from);
        if (from == std::string_view::npos) return false;
        borders = borders.subspan(literal.size());
    }
    return true;
}

bool is_begin(const Glob& glob) {
    return glob.literals().size() == 2 && glob.literals().back().empty();
}

bool is_end(const Glob& glob) {
    return glob.literals().size() == 2 && glob.literals().front().empty();
}

}  // namespace fopd::lrs

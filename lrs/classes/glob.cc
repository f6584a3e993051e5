#include "lrs/classes/glob.h"

#include <span>
#include <utility>

#include "core/ensure.h"

namespace fopd::lrs {

namespace {

void find_borders(std::string_view piece, std::span<std::uint32_t> borders) {
    std::uint32_t length = 0;
    for (std::size_t i = 1; i < piece.size(); ++i) {
        while (length > 0 && piece[i] != piece[length]) length = borders[length - 1];
        if (piece[i] == piece[length]) ++length;
        borders[i] = length;
    }
}

// The end of the first occurrence of the piece at or after `from`; npos if there is none.
std::size_t end_of(std::string_view piece, std::span<const std::uint32_t> borders,
                   std::string_view text, std::size_t from) {
    if (piece.empty()) return from;
    std::size_t length = 0;
    for (std::size_t i = from; i < text.size(); ++i) {
        while (length > 0 && text[i] != piece[length]) length = borders[length - 1];
        if (text[i] == piece[length]) ++length;
        if (length == piece.size()) return i + 1;
    }
    return std::string_view::npos;
}

}  // namespace

Glob::Glob(std::vector<std::string> pieces) : pieces_(std::move(pieces)) {
    ENSURE(!pieces_.empty());
    for (const std::string& piece : pieces_) size_min_ += piece.size();
    if (pieces_.size() <= 2) return;
    borders_.resize(size_min_ - pieces_.front().size() - pieces_.back().size());
    std::span<std::uint32_t> borders = borders_;
    for (std::size_t i = 1; i + 1 < pieces_.size(); ++i) {
        find_borders(pieces_[i], borders.first(pieces_[i].size()));
        borders = borders.subspan(pieces_[i].size());
    }
}

bool Glob::matches(std::string_view text) const {
    if (pieces_.size() == 1) return text == pieces_.front();
    if (text.size() < size_min_) return false;
    if (!text.starts_with(pieces_.front()) || !text.ends_with(pieces_.back())) return false;

    // The leftmost match of a piece leaves the most room for the next ones, so there is no
    // backtracking.
    text.remove_suffix(pieces_.back().size());
    std::size_t from = pieces_.front().size();
    std::span<const std::uint32_t> borders = borders_;
    for (std::size_t i = 1; i + 1 < pieces_.size(); ++i) {
        const std::string& piece = pieces_[i];
        from = end_of(piece, borders.first(piece.size()), text, from);
        if (from == std::string_view::npos) return false;
        borders = borders.subspan(piece.size());
    }
    return true;
}

bool is_begin(const Glob& glob) {
    return glob.pieces().size() == 2 && glob.pieces().back().empty();
}

bool is_end(const Glob& glob) {
    return glob.pieces().size() == 2 && glob.pieces().front().empty();
}

}  // namespace fopd::lrs

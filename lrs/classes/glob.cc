#include "lrs/classes/glob.h"

#include <utility>

#include "core/ensure.h"

namespace fopd::lrs {

namespace {

std::vector<std::uint32_t> borders_of(std::string_view piece) {
    std::vector<std::uint32_t> borders(piece.size(), 0);
    std::uint32_t length = 0;
    for (std::size_t i = 1; i < piece.size(); ++i) {
        while (length > 0 && piece[i] != piece[length]) length = borders[length - 1];
        if (piece[i] == piece[length]) ++length;
        borders[i] = length;
    }
    return borders;
}

}  // namespace

Glob::Glob(std::vector<std::string> pieces) : pieces_(std::move(pieces)) {
    ENSURE(!pieces_.empty());
    for (const std::string& piece : pieces_) size_min_ += piece.size();
    if (pieces_.size() <= 2) return;
    borders_.resize(pieces_.size());
    for (std::size_t i = 1; i + 1 < pieces_.size(); ++i) borders_[i] = borders_of(pieces_[i]);
}

bool Glob::matches(std::string_view text) const {
    if (pieces_.size() == 1) return text == pieces_.front();
    if (text.size() < size_min_) return false;
    if (!text.starts_with(pieces_.front()) || !text.ends_with(pieces_.back())) return false;

    // The leftmost place of a piece leaves most room for the others, so no place is tried twice.
    text.remove_suffix(pieces_.back().size());
    std::size_t from = pieces_.front().size();
    for (std::size_t i = 1; i + 1 < pieces_.size(); ++i) {
        from = end_of(i, text, from);
        if (from == std::string_view::npos) return false;
    }
    return true;
}

// Behind the first place of the piece that is not before `from`; npos when there is none.
std::size_t Glob::end_of(std::size_t piece, std::string_view text, std::size_t from) const {
    const std::string& wanted = pieces_[piece];
    if (wanted.empty()) return from;
    const auto& borders = borders_[piece];
    std::size_t length = 0;
    for (std::size_t i = from; i < text.size(); ++i) {
        while (length > 0 && text[i] != wanted[length]) length = borders[length - 1];
        if (text[i] == wanted[length]) ++length;
        if (length == wanted.size()) return i + 1;
    }
    return std::string_view::npos;
}

}  // namespace fopd::lrs

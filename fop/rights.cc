#include "fop/rights.h"

#include <algorithm>
#include <array>

namespace fopd::fop {
namespace {

struct Row {
    Rights right;
    std::string_view name;
};

constexpr std::array kRows{
    Row{kRead, "read"},     Row{kWrite, "write"}, Row{kCreate, "create"},
    Row{kDelete, "delete"}, Row{kAdmin, "admin"},
};

constexpr bool rows_are_complete() {
    Rights all;
    for (const Row& row : kRows) {
        if (!(all & row.right).none()) return false;
        all = all | row.right;
    }
    return all == kAllRights;
}
static_assert(rows_are_complete(), "each right has one row");

std::string_view trimmed(std::string_view text) {
    const auto first = text.find_first_not_of(' ');
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

}  // namespace

std::string to_text(Rights rights) {
    if (rights.none()) return "none";
    std::string text;
    for (const Row& row : kRows) {
        if (!rights.cover(row.right)) continue;
        if (!text.empty()) text += ',';
        text += row.name;
    }
    return text;
}

Result<Rights> parse_rights(std::string_view text) {
    const auto invalid = [](const char* why) {
        return std::unexpected(Error{.code = Errc::kInvalid, .context = why});
    };
    if (trimmed(text) == "none") return kNoRights;
    Rights rights;
    for (std::size_t at = 0; at <= text.size();) {
        const std::size_t comma = std::min(text.find(',', at), text.size());
        const std::string_view name = trimmed(text.substr(at, comma - at));
        at = comma + 1;
        const auto* const row = std::ranges::find(kRows, name, &Row::name);
        if (row == kRows.end()) return invalid("the rights are read, write, create, delete, admin");
        if (rights.cover(row->right)) return invalid("a right is named twice");
        rights = rights | row->right;
    }
    return rights;
}

}  // namespace fopd::fop

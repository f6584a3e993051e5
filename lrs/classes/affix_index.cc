#include "lrs/classes/affix_index.h"

#include <algorithm>
#include <iterator>

namespace fopd::lrs {

void AffixIndex::add(std::string_view affix, std::uint32_t owner) {
    std::string text(affix);
    if (side_ == Side::kEnd) std::ranges::reverse(text);
    affixes_.push_back({.text = std::move(text), .owners = {owner}});
}

void AffixIndex::finish(BitRows& rows) {
    std::ranges::sort(affixes_, {}, &Affix::text);
    std::vector<Affix> merged;
    for (Affix& each : affixes_) {
        if (!merged.empty() && merged.back().text == each.text) {
            merged.back().owners.push_back(each.owners.front());
        } else {
            merged.push_back(std::move(each));
        }
    }
    affixes_ = std::move(merged);
    for (std::size_t i = 0; i < affixes_.size(); ++i) {
        Affix& affix = affixes_[i];
        if (i > 0) affix.shorter = i - 1;
        while (affix.shorter != kNone && !affix.text.starts_with(affixes_[affix.shorter].text))
            affix.shorter = affixes_[affix.shorter].shorter;
        affix.row = rows.add();
        const auto row = rows.at(affix.row);
        if (affix.shorter != kNone) BitRows::add_all(row, rows.at(affixes_[affix.shorter].row));
        for (const std::uint32_t owner : affix.owners) BitRows::set(row, owner);
        affix.owners = {};
    }
}

bool AffixIndex::is_before(std::string_view text, const Affix& affix) const {
    if (side_ == Side::kBegin) return text < affix.text;
    // In the same order as std::string compares.
    return std::lexicographical_compare(
        text.rbegin(), text.rend(), affix.text.begin(), affix.text.end(), [](char a, char b) {
            return static_cast<unsigned char>(a) < static_cast<unsigned char>(b);
        });
}

bool AffixIndex::fits(const Affix& affix, std::string_view text) const {
    if (side_ == Side::kBegin) return text.starts_with(affix.text);
    return affix.text.size() <= text.size() &&
           std::equal(affix.text.begin(), affix.text.end(), text.rbegin());
}

// Any affix sorted between a prefix of the text and the text begins with that prefix. So the last
// affix that does not sort after the text is the longest match, or begins with it; its `shorter`
// chain leads to the match.
const std::uint32_t* AffixIndex::find(std::string_view text) const {
    const auto behind = std::upper_bound(
        affixes_.begin(), affixes_.end(), text,
        [this](std::string_view of, const Affix& affix) { return is_before(of, affix); });
    if (behind == affixes_.begin()) return nullptr;
    auto index = static_cast<std::size_t>(std::prev(behind) - affixes_.begin());
    while (index != kNone && !fits(affixes_[index], text)) index = affixes_[index].shorter;
    return index == kNone ? nullptr : &affixes_[index].row;
}

}  // namespace fopd::lrs

#include "lrs/classes/value_index.h"

#include <algorithm>

namespace fopd::lrs {

void ValueIndex::add(const Test::Values& values, std::uint32_t owner) {
    for (const std::string& text : values.texts) texts_[text].owners.push_back(owner);
    for (const Glob& glob : values.globs) add_glob(glob, owner);
    for (const NumberRange& range : values.numbers) numbers_.add(range.low, range.high, owner);
    for (const AddressRange& range : values.addresses) addresses_.add(range.low, range.high, owner);
}

void ValueIndex::add_glob(const Glob& glob, std::uint32_t owner) {
    if (is_begin(glob)) {
        begins_.add(glob.literals().front(), owner);
    } else if (is_end(glob)) {
        ends_.add(glob.literals().back(), owner);
    } else {
        globs_.add(glob, owner);
    }
}

void ValueIndex::finish(std::size_t owner_count) {
    rows_ = BitRows(owner_count);
    for (auto& [unused, text] : texts_) {
        text.row = rows_.add();
        for (const std::uint32_t owner : text.owners) BitRows::set(rows_.at(text.row), owner);
        text.owners = {};
    }
    begins_.finish(rows_);
    ends_.finish(rows_);
    globs_.finish();
    numbers_.finish(rows_, owner_count);
    addresses_.finish(rows_, owner_count);
}

void ValueIndex::find(std::string_view text, std::span<BitRows::Word> owners) const {
    if (const auto known = texts_.find(text); known != texts_.end())
        add_row(&known->second.row, owners);
    add_row(begins_.find(text), owners);
    add_row(ends_.find(text), owners);
    globs_.find(text, [&](std::uint32_t owner) { BitRows::set(owners, owner); });
    if (!numbers_.empty()) {
        const auto number = number_in_rule(text);
        if (number) add_row(numbers_.find(*number), owners);
    }
    if (!addresses_.empty()) {
        AddressBytes bytes{};
        if (address_in_rule(text, bytes)) add_row(addresses_.find(bytes), owners);
    }
}

void ValueIndex::find(std::uint64_t number, std::span<BitRows::Word> owners) const {
    add_row(numbers_.find(number), owners);
}

}  // namespace fopd::lrs

#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "lrs/tbf/rule_set.h"

namespace fopd::lrs::testing {

// Rules that are changed one after the other.
class RuleEdits : public RuleRevisions {
public:
    using RuleRevisions::RuleRevisions;

    struct Edit {
        Instant now;
        std::optional<std::uint64_t> only_at = std::nullopt;
    };
    Edited add(std::string_view rule, const Edit& edit) {
        return apply_one(RuleEdit::Verb::kAdd, rule, edit);
    }
    Edited change(std::string_view change, const Edit& edit) {
        return apply_one(RuleEdit::Verb::kChange, change, edit);
    }
    Edited del(std::string_view name, const Edit& edit) {
        return apply_one(RuleEdit::Verb::kDel, name, edit);
    }
    Edited load_text(std::string_view file, const Edit& edit) {
        return apply_one(RuleEdit::Verb::kLoad, file, edit);
    }

private:
    Edited apply_one(RuleEdit::Verb verb, std::string_view text, const Edit& edit) {
        return apply({.verb = verb, .text = text, .only_at = edit.only_at}, edit.now);
    }
};

// All rules as a file that load_text() reads.
inline std::string file_of(const OrderedRules& rules) {
    std::string text;
    for (std::size_t i = 0; i < rules.count(); ++i) text += rules.text(i) + '\n';
    return text;
}

}  // namespace fopd::lrs::testing

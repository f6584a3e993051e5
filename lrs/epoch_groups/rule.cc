#include "lrs/epoch_groups/rule.h"

#include <optional>

#include "core/ensure.h"
#include "lrs/classes/rule_reader.h"

namespace fopd::lrs {

namespace {

struct GroupOptions {
    std::optional<std::uint32_t> weight;
    std::optional<std::uint32_t> rank;
    std::optional<KeySet> classes_by;
};

bool read_option(RuleReader& reader, GroupOptions& options) {
    const RuleToken* const word = reader.read_option_word("write the option as weight=2");
    if (word == nullptr) return false;
    if (word->text == "weight")
        return reader.read_once(*word, options.weight, &RuleReader::read_weight);
    if (word->text == "rank") return reader.read_once(*word, options.rank, &RuleReader::read_rank);
    return reader.read_once(*word, options.classes_by, &RuleReader::read_classes);
}

// A whole rule, or a change of `old`.
std::expected<GroupRule, RuleMistake> parse(std::string_view text, const GroupRule* old) {
    RuleReader reader(text, kGroupOptions);
    GroupRule rule;
    if (!reader.read_begin(rule, old)) return reader.failed();
    GroupOptions options;
    while (!reader.at_end()) {
        if (!read_option(reader, options)) return reader.failed();
    }
    if (options.weight) rule.weight = *options.weight;
    if (options.rank) rule.rank = *options.rank;
    if (options.classes_by) rule.classes_by = *options.classes_by;
    if (!reader.check_default(rule, "default * by=job")) return reader.failed();
    return rule;
}

}  // namespace

std::string GroupRule::text() const {
    return text_around(weight == 1 ? std::string() : " weight=" + std::to_string(weight));
}

std::expected<GroupRule, RuleMistake> parse_group_rule(std::string_view text) {
    return parse(text, nullptr);
}

std::expected<GroupRule, RuleMistake> parse_group_change(std::string_view text,
                                                         const GroupRule& old) {
    auto rule = parse(text, &old);
    if (rule) ENSURE(rule->name == old.name);
    return rule;
}

}  // namespace fopd::lrs

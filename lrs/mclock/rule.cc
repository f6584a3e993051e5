#include "lrs/mclock/rule.h"

#include <algorithm>
#include <limits>

#include "config/units.h"
#include "fop/fop_type.h"
#include "lrs/classes/rule_reader.h"

namespace fopd::lrs {

namespace {

constexpr const char* kRates = "write 1/s to 100000000/s, or none";

constexpr std::uint64_t kUncounted = std::numeric_limits<std::uint64_t>::max();

std::uint64_t times(std::uint64_t a, std::uint64_t b) {
    std::uint64_t product = 0;
    return __builtin_mul_overflow(a, b, &product) ? kUncounted : product;
}

// The number of fop types that pass all tests of kOp.
std::uint64_t op_count(const Conjunction& conjunction) {
    return static_cast<std::uint64_t>(
        std::ranges::count_if(fop::kFopTypes, [&](const fop::FopType& type) {
            RequestAttributes about;
            about.type = type.number;
            return type.lane == Lane::kData &&
                   std::ranges::all_of(conjunction, [&](const Test& test) {
                       return test.key() != Key::kOp || test.matches(about);
                   });
        }));
}

// The number of values of `key` that pass the conjunction.
std::uint64_t value_count(const Conjunction& conjunction, Key key) {
    if (key == Key::kOp) return op_count(conjunction);
    std::uint64_t count = kUncounted;
    for (const Test& test : conjunction) {
        if (test.key() == key) count = std::min(count, test.value_count().value_or(kUncounted));
    }
    return count;
}

// The most classes a rule can make.
std::uint64_t class_count(const ClassRule& rule) {
    if (rule.classes_by.is_empty()) return 1;
    std::uint64_t sum = 0;
    for (const Conjunction& conjunction : rule.expression) {
        std::uint64_t product = 1;
        rule.classes_by.for_each(
            [&](Key key) { product = times(product, value_count(conjunction, key)); });
        if (__builtin_add_overflow(sum, product, &sum)) return kUncounted;
    }
    return std::max<std::uint64_t>(sum, 1);
}

// A rule's options and their columns.
struct MclockOptions {
    using Rate = std::optional<std::uint64_t>;  // Nothing: no rate.

    std::size_t reservation_column = 0;
    std::size_t limit_column = 0;
    std::optional<Rate> reservation;
    std::optional<Rate> limit;
    bool is_soft = false;
    std::optional<std::uint32_t> weight;
    std::optional<std::uint32_t> rank;
    std::optional<KeySet> classes_by;
};

class MclockRuleParser {
public:
    explicit MclockRuleParser(std::string_view text) : reader_(text, kMclockOptions) {}

    // Parses a whole rule, or a change of `old`.
    std::expected<MclockRule, RuleMistake> run(const MclockRule* old) {
        MclockRule rule;
        if (!reader_.read_begin(rule, old)) return reader_.failed();
        MclockOptions options;
        while (!reader_.at_end()) {
            if (!read_option(options)) return reader_.failed();
        }
        if (options.reservation) rule.shares.reservation = *options.reservation;
        if (options.limit) {
            rule.shares.limit = *options.limit;
            rule.shares.is_soft = options.is_soft && rule.shares.limit.has_value();
        }
        if (options.weight) rule.shares.weight = *options.weight;
        if (options.rank) rule.rank = *options.rank;
        if (options.classes_by) rule.classes_by = *options.classes_by;
        if (!check(options, rule)) return reader_.failed();
        if (!reader_.check_default(rule, "default * weight=1")) return reader_.failed();
        return rule;
    }

private:
    bool read_option(MclockOptions& options) {
        const RuleToken* const word = reader_.read_option_word("write the option as weight=2");
        if (word == nullptr) return false;
        if (word->text == "reservation") {
            if (options.reservation) return reader_.fail_double(*word);
            options.reservation_column = word->column;
            return read_rate(options.reservation.emplace());
        }
        if (word->text == "limit" || word->text == "soft_limit") {
            if (options.limit) {
                return reader_.fail(word->column, "the rule has two limits",
                                    "write limit= or soft_limit=, once");
            }
            options.limit_column = word->column;
            options.is_soft = word->text == "soft_limit";
            return read_rate(options.limit.emplace());
        }
        if (word->text == "weight")
            return reader_.read_once(*word, options.weight, &RuleReader::read_weight);
        if (word->text == "rank")
            return reader_.read_once(*word, options.rank, &RuleReader::read_rank);
        return reader_.read_once(*word, options.classes_by, &RuleReader::read_classes);
    }

    bool read_rate(MclockOptions::Rate& per_second) {
        const RuleToken& token = reader_.here();
        if (!reader_.read_plain_word("write a rate such as 200/s")) return false;
        if (token.text == "none") return true;
        const auto rate = config::parse_rate(token.text);
        if (!rate) return reader_.fail(token.column, rate.error().wrong, kRates);
        if (rate->unit == config::Rate::Unit::kBytes) {
            return reader_.fail(token.column, token.shown() + " is a rate in bytes",
                                "write 200/s; a request counts more the more bytes it moves");
        }
        const bool is_good = rate->per_second >= 1 && rate->per_second <= CostPace::kPerSecondMax;
        if (!is_good) {
            return reader_.fail(token.column, token.shown() + " is out of range", kRates);
        }
        per_second = rate->per_second;
        return true;
    }

    bool check(const MclockOptions& options, MclockRule& rule) {
        const Shares& shares = rule.shares;
        rule.class_count = 0;
        if (!shares.reservation) return true;
        const auto column_of = [](std::size_t said, std::size_t other) {
            return said != 0 ? said : std::max<std::size_t>(other, 1);
        };
        if (shares.limit && *shares.limit < *shares.reservation) {
            return reader_.fail(column_of(options.limit_column, options.reservation_column),
                                "the limit of " + std::to_string(*shares.limit) +
                                    "/s is below the reservation of " +
                                    std::to_string(*shares.reservation) + "/s",
                                "write a limit that is at least the reservation");
        }
        const std::uint64_t count = class_count(rule);
        if (count > MclockRule::kClassesMax) {
            return reader_.fail(
                column_of(options.reservation_column, 1),
                count == kUncounted
                    ? "the number of classes of the rule is unknown, and so is what they reserve "
                      "in all"
                    : "the rule has " + std::to_string(count) + " classes that reserve something",
                "list the values, as in job={a b}, at most 4096 classes; or write by=none");
        }
        rule.class_count = static_cast<std::size_t>(count);
        return true;
    }

    RuleReader reader_;
};

}  // namespace

std::string MclockRule::text() const {
    const auto rate = [](std::uint64_t per_second) { return std::to_string(per_second) + "/s"; };
    std::string options;
    if (shares.reservation) options += " reservation=" + rate(*shares.reservation);
    if (shares.weight != 1) options += " weight=" + std::to_string(shares.weight);
    if (shares.limit)
        options += (shares.is_soft ? " soft_limit=" : " limit=") + rate(*shares.limit);
    return text_around(options);
}

std::expected<MclockRule, RuleMistake> parse_mclock_rule(std::string_view text) {
    return MclockRuleParser(text).run(nullptr);
}

std::expected<MclockRule, RuleMistake> parse_mclock_change(std::string_view text,
                                                           const MclockRule& old) {
    auto rule = MclockRuleParser(text).run(&old);
    if (rule) ENSURE(rule->name == old.name);
    return rule;
}

}  // namespace fopd::lrs

#include "lrs/tbf/rule_parser.h"

#include <optional>

#include "config/units.h"
#include "core/ensure.h"
#include "core/whole_number.h"
#include "lrs/classes/rule_reader.h"

namespace fopd::lrs {

namespace {

using Rate = config::Rate;

constexpr std::uint64_t kOperationsMax = 1'000'000'000;
constexpr const char* kRatesMax = ", at most 1000000000/s and 1TB/s";

// The value of a rate option.
struct Rates {
    bool is_blocked = false;
    std::optional<std::uint64_t> operations;
    std::optional<std::uint64_t> bytes;

    Limits limits() const {
        const auto limit = [](std::uint64_t per_second) {
            return Limit{.per_second = per_second, .burst = default_burst(per_second)};
        };
        Limits limits;
        limits.is_blocked = is_blocked;
        if (operations) limits.operations = limit(*operations);
        if (bytes) limits.bytes = limit(*bytes);
        return limits;
    }
};

// The options that were given.
struct Options {
    std::optional<Rates> each;
    std::optional<Rates> all;
    std::size_t burst_column = 0;
    std::optional<std::uint64_t> operations_burst;
    std::optional<std::uint64_t> bytes_burst;
    std::optional<std::uint32_t> rank;
    std::optional<bool> is_cluster;
    std::optional<KeySet> classes_by;
};

class RuleParser {
public:
    explicit RuleParser(std::string_view text) : reader_(text, kTbfOptions) {}

    // Parses a whole rule, or a change of `old`.
    std::expected<Rule, RuleMistake> run(const Rule* old) {
        Rule rule;
        if (!reader_.read_begin(rule, old)) return reader_.failed();
        const std::size_t options_column = reader_.here().column;
        Options options;
        while (!reader_.at_end()) {
            if (!read_option(options)) return reader_.failed();
        }
        if (old == nullptr && !options.each && !options.all) {
            reader_.fail(options_column, "the rule has no rate",
                         "write rate=200/s, rate=50MB/s, rate=block or rate=unlimited");
            return reader_.failed();
        }
        if (!apply(options, rule)) return reader_.failed();
        if (!reader_.check_default(rule, "default * rate=200/s")) return reader_.failed();
        return rule;
    }

private:
    bool read_option(Options& options) {
        const RuleToken* const word = reader_.read_option_word("write the option as rate=200/s");
        if (word == nullptr) return false;
        if (word->text == "rate" || word->text == "each") return read_rates(*word, options.each);
        if (word->text == "all") return read_all(*word, options);
        if (word->text == "burst") return read_bursts(*word, options);
        if (word->text == "scope") return read_scope(*word, options);
        if (word->text == "rank")
            return reader_.read_once(*word, options.rank, &RuleReader::read_rank);
        return reader_.read_once(*word, options.classes_by, &RuleReader::read_classes);
    }

    bool read_all(const RuleToken& word, Options& options) {
        if (!read_rates(word, options.all)) return false;
        if (!options.all->is_blocked) return true;
        return reader_.fail(word.column, "all classes together are blocked when each is",
                            "write rate=block");
    }

    bool read_scope(const RuleToken& word, Options& options) {
        if (options.is_cluster) return reader_.fail_double(word);
        const RuleToken& token = reader_.here();
        constexpr const char* kRight = "write scope=server or scope=cluster";
        if (!reader_.read_plain_word(kRight)) return false;
        options.is_cluster = token.text == "cluster";
        if (*options.is_cluster || token.text == "server") return true;
        return reader_.fail(token.column, token.shown() + " is not a scope", kRight);
    }

    bool read_rates(const RuleToken& word, std::optional<Rates>& said) {
        if (said) {
            return reader_.fail(word.column, word.shown() + " is there twice",
                                "write rate= or each= once, for each class, and all= once");
        }
        Rates& rates = said.emplace();
        std::size_t count = 0;
        bool is_whole = false;  // A word after which no other is allowed.
        std::string unused;
        return reader_.read_list(unused, [&] {
            const RuleToken& token = reader_.next();
            ++count;
            const bool is_block = token.text == "0" || token.text == "block";
            is_whole = is_whole || is_block || token.text == "unlimited";
            if (!is_block && token.text != "unlimited" && !add_rate(token, rates)) return false;
            rates.is_blocked = rates.is_blocked || is_block;
            is_whole = is_whole || rates.is_blocked;
            if (count == 1 || !is_whole) return true;
            return reader_.fail(token.column, "block, 0 and unlimited stand alone",
                                "write one of them, or a rate in operations and one in bytes");
        });
    }

    bool add_rate(const RuleToken& token, Rates& rates) {
        const auto rate = config::parse_rate(token.text);
        if (!rate) {
            const bool is_general = rate.error().right.starts_with("write a rate");
            return reader_.fail(token.column, rate.error().wrong,
                                rate.error().right + (is_general ? kRatesMax : ""));
        }
        if (rate->per_second == 0) {
            rates.is_blocked = true;
            return true;
        }
        const bool is_bytes = rate->unit == Rate::Unit::kBytes;
        const std::uint64_t most = is_bytes ? Pace::kPerSecondMax : kOperationsMax;
        if (rate->per_second > most) {
            const Rate limit{.per_second = most, .unit = rate->unit};
            return reader_.fail(token.column, token.shown() + " is too large",
                                "write at most " + config::format_rate(limit) + ", or unlimited");
        }
        auto& limit = is_bytes ? rates.bytes : rates.operations;
        if (limit) return reader_.fail_double(token);
        limit = rate->per_second;
        return true;
    }

    bool read_bursts(const RuleToken& word, Options& options) {
        if (options.burst_column != 0) return reader_.fail_double(word);
        options.burst_column = reader_.here().column;
        std::string unused;
        return reader_.read_list(unused, [&] {
            const RuleToken& token = reader_.next();
            const auto count = core::whole_number(token.text);
            std::uint64_t burst = count.value_or(0);
            if (!count && !reader_.read_size(token, burst)) return false;
            auto& limit = count ? options.operations_burst : options.bytes_burst;
            if (limit) return reader_.fail_double(token);
            limit = burst;
            if (burst > 0) return true;
            return reader_.fail(token.column, "a burst of 0 lets nothing through",
                                "write at least 1, or rate=block");
        });
    }

    // -- all options together --

    bool apply(const Options& options, Rule& rule) {
        if (options.each) rule.limits = options.each->limits();
        if (options.all) rule.all_limits = options.all->limits();
        if (!apply_burst(options, options.operations_burst, rule.limits.operations)) return false;
        if (!apply_burst(options, options.bytes_burst, rule.limits.bytes)) return false;
        if (options.is_cluster) rule.is_cluster = *options.is_cluster;
        if (options.rank) rule.rank = *options.rank;
        if (options.classes_by) rule.classes_by = *options.classes_by;
        return true;
    }

    bool apply_burst(const Options& options, const std::optional<std::uint64_t>& burst,
                     std::optional<Limit>& limit) {
        if (!burst) return true;
        if (!limit) {
            return reader_.fail(options.burst_column, "the burst has no rate of its kind",
                                "write burst=64 to rate=200/s, and burst=1MiB to rate=50MB/s");
        }
        if (*burst > limit->per_second * Pace::kBurstSecondsMax) {
            return reader_.fail(options.burst_column, "the burst is more than a day of the rate",
                                "write a smaller burst, or rate=unlimited");
        }
        limit->burst = *burst;
        return true;
    }

    RuleReader reader_;
};

}  // namespace

std::expected<Rule, RuleMistake> parse_rule(std::string_view text) {
    return RuleParser(text).run(nullptr);
}

std::expected<Rule, RuleMistake> parse_change(std::string_view text, const Rule& old) {
    auto rule = RuleParser(text).run(&old);
    if (rule) ENSURE(rule->name == old.name);
    return rule;
}

}  // namespace fopd::lrs

#include "lrs/tbf/rule_parser.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "config/units.h"
#include "core/ensure.h"
#include "fop/fop_type.h"
#include "lrs/classes/rule_values.h"

namespace fopd::lrs {

namespace {

using Kind = RuleToken::Kind;
using Rate = config::Rate;

constexpr std::size_t kNameBytesMax = 64;
constexpr std::uint64_t kOperationsMax = 1'000'000'000;

bool is_name(std::string_view text) {
    return std::ranges::all_of(text, [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
               c == '_' || c == '-' || c == '.';
    });
}

std::vector<std::string> key_words() {
    return {kKeyNames.begin(), kKeyNames.end()};
}

// What the options of a rule say, as far as they were there.
struct Options {
    bool has_rate = false;
    bool is_blocked = false;
    std::optional<std::uint64_t> operations_rate;
    std::optional<std::uint64_t> bytes_rate;
    std::size_t burst_column = 0;
    std::optional<std::uint64_t> operations_burst;
    std::optional<std::uint64_t> bytes_burst;
    std::optional<std::uint32_t> rank;
    std::optional<KeySet> classes_by;
};

class RuleParser {
public:
    explicit RuleParser(std::vector<RuleToken> tokens) : tokens_(std::move(tokens)) {}

    // A whole rule, or what is different in `old`.
    std::expected<Rule, RuleMistake> run(const Rule* old) {
        Rule rule;
        if (old != nullptr) rule = *old;
        if (!read_name(rule.name)) return failed();
        const bool has_expression = old == nullptr || begins_expression();
        if (has_expression) {
            rule.expression.clear();
            rule.expression_text.clear();
            if (!read_expression(rule)) return failed();
            rule.classes_by = default_classes_by(rule.expression);
        }
        const std::size_t options_column = here().column;
        Options options;
        while (here().kind != Kind::kEnd) {
            if (!read_option(options)) return failed();
        }
        if (old == nullptr && !options.has_rate) {
            fail(options_column, "the rule has no rate",
                 "write rate=200/s, rate=50MB/s, rate=block or rate=unlimited");
            return failed();
        }
        if (!apply(options, rule)) return failed();
        return rule;
    }

    bool read_name(std::string& name) {
        const RuleToken& token = here();
        const bool is_good = token.kind == Kind::kWord && !token.has_quotes &&
                             !token.text.empty() && token.text.size() <= kNameBytesMax &&
                             is_name(token.text);
        if (!is_good) {
            return fail(token.column, token.shown() + " is no name of a rule",
                        "begin with 1 to 64 letters, digits, '_', '-' or '.'");
        }
        name = token.text;
        next();
        return true;
    }

    std::unexpected<RuleMistake> failed() { return std::unexpected(*std::move(mistake_)); }

    // -- the parts of a described request --

    bool at_end() const { return here().kind == Kind::kEnd; }
    // "key=word".
    bool read_pair(Key& key, RuleToken& value) {
        if (!read_key(key)) return false;
        if (!expect(Kind::kEqual, "write key=value")) return false;
        if (here().kind != Kind::kWord || here().has_gaps()) {
            return fail(here().column, here().shown() + " is no value", "write one value");
        }
        value = here();
        next();
        return true;
    }
    // What is no text in a request.
    bool read_number(Key key, const RuleToken& token, RequestAttributes& attributes) {
        switch (key) {
            case Key::kSize: return read_size(token, attributes.size_bytes);
            case Key::kOp: return read_op(token, attributes.type);
            case Key::kClient: {
                std::array<std::uint64_t, 2> words{};
                if (!read_id(key, token, words)) return false;
                for (std::size_t i = 0; i < attributes.client.size(); ++i) {
                    const auto shift = 56 - 8 * (i % 8);
                    attributes.client[i] = static_cast<std::byte>(words[i / 8] >> shift);
                }
                return true;
            }
            case Key::kObject: {
                std::array<std::uint64_t, 2> words{};
                if (!read_id(key, token, words)) return false;
                attributes.object = {.high = words[0], .low = words[1]};
                return true;
            }
            default: return true;
        }
    }
    bool fail(std::size_t column, std::string wrong, std::string right) {
        mistake_ =
            RuleMistake{.column = column, .wrong = std::move(wrong), .right = std::move(right)};
        return false;
    }

private:
    bool read_size(const RuleToken& token, std::uint64_t& size) {
        const auto parsed = config::parse_size(token.text);
        if (!parsed) return fail(token.column, parsed.error().wrong, parsed.error().right);
        size = *parsed;
        return true;
    }
    bool read_op(const RuleToken& token, std::uint16_t& number) {
        Test::Values unused;
        std::string unused_text;
        if (!add_value(Key::kOp, token, unused, unused_text)) return false;
        number = fop::find_fop_type(token.text)->number;
        return true;
    }
    bool read_id(Key key, const RuleToken& token, std::array<std::uint64_t, 2>& words) {
        Test::Values values;
        std::string digits;
        if (!add_value(key, token, values, digits)) return false;
        const char* const middle = digits.data() + digits.size() / 2;
        std::from_chars(digits.data(), middle, words[0], 16);
        std::from_chars(middle, digits.data() + digits.size(), words[1], 16);
        return true;
    }
    bool add_value(Key key, const RuleToken& token, Test::Values& values, std::string& text) {
        auto mistake = add_rule_value(key, token, values, text);
        if (!mistake) return true;
        mistake_ = std::move(mistake);
        return false;
    }

    const RuleToken& here() const { return tokens_[position_]; }
    void next() {
        if (here().kind != Kind::kEnd) ++position_;
    }
    bool take(Kind kind) {
        if (here().kind != kind) return false;
        next();
        return true;
    }
    bool expect(Kind kind, const char* right) {
        if (take(kind)) return true;
        RuleToken wanted;
        wanted.kind = kind;
        return fail(here().column, here().shown() + " stands where " + wanted.shown() + " should",
                    right);
    }

    // -- the expression --

    static bool is_option(const RuleToken& token) {
        return token.kind == Kind::kWord && !token.has_quotes &&
               (token.text == "rate" || token.text == "burst" || token.text == "rank" ||
                token.text == "by");
    }
    bool begins_expression() const { return here().kind != Kind::kEnd && !is_option(here()); }

    bool read_expression(Rule& rule) {
        do {
            if (!rule.expression.empty()) rule.expression_text += ',';
            if (!read_conjunction(rule)) return false;
        } while (take(Kind::kOr));
        return true;
    }

    bool read_conjunction(Rule& rule) {
        Conjunction& conjunction = rule.expression.emplace_back();
        bool is_first = true;
        do {
            if (!is_first) rule.expression_text += '&';
            is_first = false;
            if (is_everything(here())) {
                rule.expression_text += '*';
                next();
            } else if (!read_test(conjunction, rule.expression_text)) {
                return false;
            }
        } while (take(Kind::kAnd));
        return true;
    }

    static bool is_everything(const RuleToken& token) {
        return token.kind == Kind::kWord && token.pieces.size() == 2 && token.text.size() == 1;
    }

    bool read_key(Key& key) {
        const RuleToken& token = here();
        if (token.kind != Kind::kWord) {
            return fail(token.column, token.shown() + " stands where a key should",
                        "write key=value, or '*' for everything");
        }
        const auto found = token.has_quotes ? std::nullopt : find_key(token.text);
        if (!found) {
            return fail(token.column, token.shown() + " is no key",
                        did_you_mean(token.text, key_words()));
        }
        key = *found;
        next();
        return true;
    }

    bool read_test(Conjunction& conjunction, std::string& text) {
        Key key{};
        if (!read_key(key)) return false;
        text += name_of(key);
        const RuleToken& sign = here();
        const bool is_list = sign.kind == Kind::kEqual || sign.kind == Kind::kNotEqual;
        const bool is_comparison = sign.kind == Kind::kLess || sign.kind == Kind::kLessEqual ||
                                   sign.kind == Kind::kGreater || sign.kind == Kind::kGreaterEqual;
        if (!is_list && !is_comparison) {
            return fail(sign.column, sign.shown() + " stands where a comparison should",
                        "write key=value, key={value value} or key!=value");
        }
        next();
        Test::Values values;
        if (is_comparison) {
            if (key != Key::kSize) {
                return fail(sign.column, "only the size is smaller or larger",
                            "write '=' or '!=', perhaps with a range 1..9");
            }
            if (!read_comparison(sign, values, text)) return false;
            conjunction.emplace_back(key, Test::Sense::kOneOf, std::move(values));
            return true;
        }
        text += sign.kind == Kind::kEqual ? "=" : "!=";
        if (!read_values(key, values, text)) return false;
        conjunction.emplace_back(
            key, sign.kind == Kind::kEqual ? Test::Sense::kOneOf : Test::Sense::kNoneOf,
            std::move(values));
        return true;
    }

    bool read_comparison(const RuleToken& sign, Test::Values& values, std::string& text) {
        const RuleToken& token = here();
        std::uint64_t size = 0;
        if (!read_plain_word("write a size such as 64k") || !read_size(token, size)) {
            return false;
        }
        constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
        NumberRange range{.low = 0, .high = kMax};
        switch (sign.kind) {
            case Kind::kLess: range.high = size - 1; break;
            case Kind::kLessEqual: range.high = size; break;
            case Kind::kGreater: range.low = size + 1; break;
            default: range.low = size;
        }
        const bool is_empty = (sign.kind == Kind::kLess && size == 0) ||
                              (sign.kind == Kind::kGreater && size == kMax);
        if (is_empty) {
            return fail(token.column, "there is no such size", "write another bound");
        }
        text += sign.shown().substr(1, sign.shown().size() - 2);
        text += config::format_size(size);
        values.numbers.push_back(range);
        return true;
    }

    bool read_plain_word(const char* right) {
        if (here().kind == Kind::kWord && !here().has_gaps()) {
            next();
            return true;
        }
        return fail(here().column, here().shown() + " is no single value", right);
    }

    // One, or several in braces; `read` takes the word here.
    template <typename Read>
    bool read_list(std::string& text, Read read) {
        if (here().kind == Kind::kWord) return read();
        const std::size_t start = here().column;
        if (!expect(Kind::kOpen, "write a value, or several in braces")) return false;
        text += '{';
        bool is_first = true;
        while (!take(Kind::kClose)) {
            if (here().kind == Kind::kEnd) {
                return fail(start, "the list has no end", "write '}' behind its last value");
            }
            if (here().kind != Kind::kWord) {
                return fail(here().column, here().shown() + " stands in a list",
                            "write values with blanks between them, then '}'");
            }
            if (!is_first) text += ' ';
            is_first = false;
            if (!read()) return false;
        }
        if (is_first) return fail(start, "the list is empty", "write a value between the braces");
        text += '}';
        return true;
    }

    bool read_values(Key key, Test::Values& values, std::string& text) {
        return read_list(text, [&] {
            const RuleToken& token = here();
            next();
            return add_value(key, token, values, text);
        });
    }

    // -- the options --

    bool read_option(Options& options) {
        const RuleToken& word = here();
        if (!is_option(word)) {
            if (word.kind == Kind::kWord && find_key(word.text)) {
                return fail(word.column, word.shown() + " stands behind the expression",
                            "write '&' for and, ',' for or before it");
            }
            const std::string shown = word.shown() + " stands where an option should";
            return fail(word.column, shown,
                        word.kind == Kind::kWord
                            ? did_you_mean(word.text, {"rate", "burst", "rank", "by"})
                            : "write rate=, burst=, rank= or by=");
        }
        next();
        if (!expect(Kind::kEqual, "write the option as rate=200/s")) return false;
        if (word.text == "rate") return read_rates(word, options);
        if (word.text == "burst") return read_bursts(word, options);
        if (word.text == "rank") return read_rank(word, options);
        return read_classes(word, options);
    }

    bool fail_double(const RuleToken& token) {
        return fail(token.column, token.shown() + " is there twice", "write it once");
    }

    bool read_rates(const RuleToken& word, Options& options) {
        if (options.has_rate) return fail_double(word);
        options.has_rate = true;
        std::size_t count = 0;
        bool is_whole = false;  // A word that leaves no room for others.
        std::string unused;
        return read_list(unused, [&] {
            const RuleToken& token = here();
            next();
            ++count;
            const bool is_block = token.text == "0" || token.text == "block";
            is_whole = is_whole || is_block || token.text == "unlimited";
            if (!is_block && token.text != "unlimited" && !add_rate(token, options)) return false;
            options.is_blocked = options.is_blocked || is_block;
            is_whole = is_whole || options.is_blocked;
            if (count == 1 || !is_whole) return true;
            return fail(token.column, "nothing stands beside block, 0 and unlimited",
                        "write one of them, or a rate in operations and one in bytes");
        });
    }

    bool add_rate(const RuleToken& token, Options& options) {
        const auto rate = config::parse_rate(token.text);
        if (!rate) return fail(token.column, rate.error().wrong, rate.error().right);
        if (rate->per_second == 0) {
            options.is_blocked = true;
            return true;
        }
        const bool is_bytes = rate->unit == Rate::Unit::kBytes;
        const std::uint64_t most = is_bytes ? Pace::kPerSecondMax : kOperationsMax;
        if (rate->per_second > most) {
            const Rate limit{.per_second = most, .unit = rate->unit};
            return fail(token.column, token.shown() + " is too large",
                        "write at most " + config::format_rate(limit) + ", or unlimited");
        }
        auto& place = is_bytes ? options.bytes_rate : options.operations_rate;
        if (place) return fail_double(token);
        place = rate->per_second;
        return true;
    }

    bool read_bursts(const RuleToken& word, Options& options) {
        if (options.burst_column != 0) return fail_double(word);
        options.burst_column = here().column;
        std::string unused;
        return read_list(unused, [&] {
            const RuleToken& token = here();
            next();
            const auto count = whole_number(token.text);
            std::uint64_t burst = count.value_or(0);
            if (!count && !read_size(token, burst)) return false;
            auto& place = count ? options.operations_burst : options.bytes_burst;
            if (place) return fail_double(token);
            place = burst;
            if (burst > 0) return true;
            return fail(token.column, "a burst of nothing lets nothing through",
                        "write at least 1, or rate=block");
        });
    }

    bool read_rank(const RuleToken& word, Options& options) {
        if (options.rank) return fail_double(word);
        const RuleToken& token = here();
        if (!read_plain_word("write a number")) return false;
        const auto rank = config::parse_integer(token.text, 0, Rule::kRankMax);
        if (!rank) return fail(token.column, rank.error().wrong, rank.error().right);
        options.rank = static_cast<std::uint32_t>(*rank);
        return true;
    }

    bool read_classes(const RuleToken& word, Options& options) {
        if (options.classes_by) return fail_double(word);
        options.classes_by.emplace();
        if (here().kind == Kind::kWord && here().text == "none") {
            next();
            return true;
        }
        std::string unused;
        return read_list(unused, [&] {
            const RuleToken& token = here();
            Key key{};
            if (!read_key(key)) return false;
            if (key == Key::kSize) {
                return fail(token.column, "there are no classes by size",
                            "make a rule for each range of sizes");
            }
            if (options.classes_by->has(key)) return fail_double(token);
            options.classes_by->add(key);
            return true;
        });
    }

    // -- all together --

    bool apply(const Options& options, Rule& rule) {
        if (options.has_rate) {
            rule.limits = {};
            rule.limits.is_blocked = options.is_blocked;
            const auto limit = [](std::uint64_t per_second) {
                return Limit{.per_second = per_second, .burst = default_burst(per_second)};
            };
            if (options.operations_rate) rule.limits.operations = limit(*options.operations_rate);
            if (options.bytes_rate) rule.limits.bytes = limit(*options.bytes_rate);
        }
        if (!apply_burst(options, options.operations_burst, rule.limits.operations)) return false;
        if (!apply_burst(options, options.bytes_burst, rule.limits.bytes)) return false;
        if (options.rank) rule.rank = *options.rank;
        if (options.classes_by) rule.classes_by = *options.classes_by;
        return true;
    }

    bool apply_burst(const Options& options, const std::optional<std::uint64_t>& burst,
                     std::optional<Limit>& limit) {
        if (!burst) return true;
        if (!limit) {
            return fail(options.burst_column, "the burst has no rate of its kind",
                        "write burst=64 to rate=200/s, and burst=1MiB to rate=50MB/s");
        }
        if (*burst / Pace::kBurstSecondsMax >= limit->per_second) {
            return fail(options.burst_column, "the burst is more than a day of the rate",
                        "write a smaller burst, or rate=unlimited");
        }
        limit->burst = *burst;
        return true;
    }

    std::vector<RuleToken> tokens_;
    std::size_t position_ = 0;
    std::optional<RuleMistake> mistake_;
};

std::expected<Rule, RuleMistake> parse_text(std::string_view text, const Rule* old) {
    auto tokens = split_rule(text);
    if (!tokens) return std::unexpected(std::move(tokens.error()));
    auto rule = RuleParser(*std::move(tokens)).run(old);
    if (!rule || rule->name != kDefaultRule) return rule;
    const bool is_everything = rule->expression.size() == 1 && rule->expression.front().empty();
    if (!is_everything || rule->rank != Rule::kRankDefault) {
        return std::unexpected(RuleMistake{
            .column = 1,
            .wrong = "the rule default is for what no other rule is for, and is the last",
            .right = "write default * rate=200/s, or give the rule another name"});
    }
    return rule;
}

}  // namespace

std::expected<Rule, RuleMistake> parse_rule(std::string_view text) {
    return parse_text(text, nullptr);
}

std::expected<Rule, RuleMistake> parse_change(std::string_view text, const Rule& old) {
    auto rule = parse_text(text, &old);
    if (rule) ENSURE(rule->name == old.name);
    return rule;
}

std::expected<std::string, RuleMistake> parse_rule_name(std::string_view text) {
    auto tokens = split_rule(text);
    if (!tokens) return std::unexpected(std::move(tokens.error()));
    RuleParser parser(*std::move(tokens));
    std::string name;
    if (!parser.read_name(name)) return parser.failed();
    return name;
}

std::expected<std::unique_ptr<DescribedRequest>, RuleMistake> DescribedRequest::parse(
    std::string_view text) {
    auto tokens = split_rule(text);
    if (!tokens) return std::unexpected(std::move(tokens.error()));
    RuleParser parser(*std::move(tokens));
    auto described = std::make_unique<DescribedRequest>();
    RequestAttributes& attributes = described->attributes_;
    KeySet seen;
    while (!parser.at_end()) {
        Key key{};
        RuleToken value;
        if (!parser.read_pair(key, value)) return parser.failed();
        if (seen.has(key)) {
            parser.fail(value.column, std::string(name_of(key)) + " is there twice",
                        "write it once");
            return parser.failed();
        }
        seen.add(key);
        if (!parser.read_number(key, value, attributes)) return parser.failed();
        described->texts_[static_cast<std::size_t>(key)] = value.text;
    }
    described->borrow_texts();
    return described;
}

void DescribedRequest::borrow_texts() {
    const auto text_for = [this](Key key) -> std::string& {
        return texts_[static_cast<std::size_t>(key)];
    };
    attributes_.group = text_for(Key::kGroup);
    attributes_.job = text_for(Key::kJob);
    attributes_.pool = text_for(Key::kPool);
    attributes_.principal = text_for(Key::kPrincipal);
    attributes_.user = text_for(Key::kUser);
    // As the transport writes it.
    std::string& peer = text_for(Key::kAddress);
    if (peer.find(':') != std::string::npos) peer = '[' + peer + ']';
    if (const std::string& scheme = text_for(Key::kNetwork); !scheme.empty()) {
        peer.insert(0, scheme + "://");
    }
    peer += ":0";
    attributes_.peer = peer;
}

}  // namespace fopd::lrs

#include "lrs/classes/rule_reader.h"

#include <algorithm>
#include <limits>

#include "config/problem.h"
#include "config/units.h"
#include "lrs/class_figures.h"
#include "lrs/classes/rule_values.h"

namespace fopd::lrs {

namespace {

constexpr std::size_t kNameBytesMax = 64;

bool is_name(std::string_view text) {
    return std::ranges::all_of(text, [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
               c == '_' || c == '-' || c == '.';
    });
}

bool is_everything(const RuleToken& token) {
    return token.kind == RuleToken::Kind::kWord && token.literals.size() == 2 &&
           token.text.size() == 1;
}

bool has_word(const RuleOptions& options, const RuleToken& token) {
    return token.kind == RuleToken::Kind::kWord && !token.has_quotes &&
           std::ranges::find(options.words, token.text) != options.words.end();
}

// "rate=, burst= or by=".
std::string shown_options(const RuleOptions& options, const char* before_last) {
    std::string text;
    for (std::size_t i = 0; i < options.words.size(); ++i) {
        if (i > 0) text += i + 1 == options.words.size() ? before_last : ", ";
        text.append(options.words[i]) += '=';
    }
    return text;
}

// Words and signs that other languages use to combine tests.
bool is_and_or_or(const RuleToken& token) {
    constexpr std::array<std::string_view, 8> kWords{"and", "AND", "And", "or",
                                                     "OR",  "Or",  "|",   "||"};
    return token.kind == RuleToken::Kind::kWord && !token.has_quotes &&
           std::ranges::find(kWords, token.text) != kWords.end();
}

}  // namespace

RuleReader::RuleReader(std::string_view text, const RuleOptions& options) : options_(options) {
    auto tokens = split_rule(text);
    if (tokens) {
        tokens_ = *std::move(tokens);
    } else {
        mistake_ = std::move(tokens.error());
    }
}

bool RuleReader::fail(std::size_t column, std::string wrong, std::string right) {
    mistake_ = RuleMistake{.column = column, .wrong = std::move(wrong), .right = std::move(right)};
    return false;
}

// -- tokens --

const RuleToken& RuleReader::next() {
    const RuleToken& token = here();
    if (!at_end()) ++position_;
    return token;
}

bool RuleReader::take(Kind kind) {
    if (here().kind != kind) return false;
    next();
    return true;
}

bool RuleReader::expect(Kind kind, const char* right) {
    if (take(kind)) return true;
    RuleToken wanted;
    wanted.kind = kind;
    return fail(here().column, "expected " + wanted.shown() + ", found " + here().shown(), right);
}

bool RuleReader::read_plain_word(const char* right) {
    if (here().kind == Kind::kWord && !here().has_gaps()) {
        next();
        return true;
    }
    return fail(here().column, "expected a single value, found " + here().shown(), right);
}

bool RuleReader::read_size(const RuleToken& token, std::uint64_t& size) {
    const auto parsed = config::parse_size(token.text);
    if (!parsed) return fail(token.column, parsed.error().wrong, parsed.error().right);
    size = *parsed;
    return true;
}

bool RuleReader::add_value(Key key, const RuleToken& token, Test::Values& values,
                           std::string& text) {
    auto mistake = add_rule_value(key, token, values, text);
    if (!mistake) return true;
    mistake_ = std::move(mistake);
    return false;
}

bool RuleReader::open_list(std::size_t& column, std::string& text) {
    column = here().column;
    if (!expect(Kind::kOpen, "write a value, or several in braces")) return false;
    text += '{';
    return true;
}

RuleReader::Item RuleReader::next_item(std::size_t list_column, bool is_first, std::string& text) {
    if (take(Kind::kClose)) {
        text += '}';
        if (!is_first) return Item::kEnd;
        fail(list_column, "the list is empty", "write a value between the braces");
        return Item::kMistake;
    }
    if (at_end()) {
        fail(list_column, "the list has no end", "write '}' behind its last value");
        return Item::kMistake;
    }
    if (here().kind != Kind::kWord) {
        fail(here().column, here().shown() + " stands in a list",
             "write values with blanks between them, then '}'");
        return Item::kMistake;
    }
    if (!is_first) text += ' ';
    return Item::kWord;
}

// -- parts of a rule --

bool RuleReader::read_name(std::string& name) {
    const RuleToken& token = here();
    const bool is_good = token.kind == Kind::kWord && !token.has_quotes && !token.text.empty() &&
                         token.text.size() <= kNameBytesMax && is_name(token.text);
    if (!is_good) {
        return fail(token.column, token.shown() + " cannot be the name of a rule",
                    "begin with 1 to 64 letters, digits, '_', '-' or '.'");
    }
    if (token.text == kAllClasses || token.text == kOtherClasses) {
        return fail(token.column,
                    "in figures " + token.shown() + " stands for " +
                        (token.text == kAllClasses ? "all classes together"
                                                   : "the classes that they do not name"),
                    "give the rule another name");
    }
    name = token.text;
    next();
    return true;
}

bool RuleReader::is_option(const RuleToken& token) const {
    return has_word(options_, token);
}

bool RuleReader::fail_foreign(const RuleToken& token) {
    if (options_.words.empty() || is_option(token)) return false;
    const auto whose = std::ranges::find_if(
        kRuleOptions, [&](const RuleOptions& each) { return has_word(each, token); });
    if (whose == kRuleOptions.end()) return false;
    fail(token.column,
         token.shown() + " is an option of the rules of " + std::string(whose->policy),
         "those of " + std::string(options_.policy) + " have " + shown_options(options_, " and "));
    return true;
}

bool RuleReader::read_expression(ClassRule& rule) {
    rule.expression.clear();
    rule.expression_text.clear();
    do {
        if (!rule.expression.empty()) rule.expression_text += ',';
        if (!read_conjunction(rule)) return false;
    } while (take(Kind::kOr));
    rule.classes_by = default_classes_by(rule.expression);
    return true;
}

bool RuleReader::read_conjunction(ClassRule& rule) {
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

bool RuleReader::read_key(Key& key) {
    const RuleToken& token = here();
    if (token.kind != Kind::kWord) {
        return fail(token.column, "expected a key, found " + token.shown(),
                    "write one of " + config::joined({kKeyNames.begin(), kKeyNames.end()}));
    }
    const auto found = token.has_quotes ? std::nullopt : find_key(token.text);
    if (!found) {
        return fail(token.column, "there is no key " + token.shown(),
                    did_you_mean(token.text, {kKeyNames.begin(), kKeyNames.end()}));
    }
    key = *found;
    next();
    return true;
}

bool RuleReader::read_test(Conjunction& conjunction, std::string& text) {
    Key key{};
    const RuleToken& first = here();
    if (fail_foreign(first)) return false;
    if (is_option(first)) {
        return fail(first.column, "expected a condition, found the option " + first.shown(),
                    "write key=value, or '*' for everything, before the options");
    }
    if (first.kind != Kind::kWord) {
        return fail(first.column, "expected a condition, found " + first.shown(),
                    "write key=value, or '*' for everything");
    }
    if (!read_key(key)) return false;
    text += name_of(key);
    const RuleToken& sign = here();
    const bool is_list = sign.kind == Kind::kEqual || sign.kind == Kind::kNotEqual;
    const bool is_comparison = sign.kind == Kind::kLess || sign.kind == Kind::kLessEqual ||
                               sign.kind == Kind::kGreater || sign.kind == Kind::kGreaterEqual;
    if (!is_list && !is_comparison) {
        return fail(sign.column, "expected a comparison, found " + sign.shown(),
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
    const bool is_one_of = sign.kind == Kind::kEqual;
    text += is_one_of ? "=" : "!=";
    const bool is_read = read_list(text, [&] { return add_value(key, next(), values, text); });
    if (!is_read) return false;
    conjunction.emplace_back(key, is_one_of ? Test::Sense::kOneOf : Test::Sense::kNoneOf,
                             std::move(values));
    return true;
}

bool RuleReader::read_comparison(const RuleToken& sign, Test::Values& values, std::string& text) {
    const RuleToken& token = here();
    std::uint64_t size = 0;
    if (!read_plain_word("write a size such as 64k") || !read_size(token, size)) return false;
    constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
    NumberRange range{.low = 0, .high = kMax};
    switch (sign.kind) {
        case Kind::kLess: range.high = size - 1; break;
        case Kind::kLessEqual: range.high = size; break;
        case Kind::kGreater: range.low = size + 1; break;
        default: range.low = size;
    }
    const bool is_empty =
        (sign.kind == Kind::kLess && size == 0) || (sign.kind == Kind::kGreater && size == kMax);
    if (is_empty) return fail(token.column, "no size fits this bound", "write another bound");
    text += sign.shown().substr(1, sign.shown().size() - 2);
    text += config::format_size(size);
    values.numbers.push_back(range);
    return true;
}

const RuleToken* RuleReader::read_option_word(const char* right) {
    const RuleToken& word = here();
    if (is_option(word)) {
        next();
        return expect(Kind::kEqual, right) ? &word : nullptr;
    }
    if (word.kind == Kind::kWord && find_key(word.text)) {
        fail(word.column, "expected an option, found another condition: " + word.shown(),
             "write '&' (and) or ',' (or) between two conditions");
        return nullptr;
    }
    if (is_and_or_or(word)) {
        fail(word.column, word.shown() + " stands behind a test",
             "and is written '&', or is written ','");
        return nullptr;
    }
    if (fail_foreign(word)) return nullptr;
    fail(word.column, "expected an option, found " + word.shown(),
         word.kind == Kind::kWord
             ? did_you_mean(word.text, {options_.words.begin(), options_.words.end()})
             : "write " + shown_options(options_, " or "));
    return nullptr;
}

bool RuleReader::read_number(std::uint32_t& number, std::uint32_t min, std::uint32_t max) {
    const RuleToken& token = here();
    if (!read_plain_word("write a number")) return false;
    const auto read = config::parse_integer(token.text, min, max);
    if (!read) return fail(token.column, read.error().wrong, read.error().right);
    number = static_cast<std::uint32_t>(*read);
    return true;
}

bool RuleReader::read_rank(std::uint32_t& rank) {
    return read_number(rank, 0, ClassRule::kRankMax);
}

bool RuleReader::read_weight(std::uint32_t& weight) {
    return read_number(weight, 1, kWeightMax);
}

bool RuleReader::read_classes(KeySet& keys) {
    keys = {};
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
        if (keys.has(key)) return fail_double(token);
        keys.add(key);
        return true;
    });
}

bool RuleReader::check_default(const ClassRule& rule, const char* example) {
    if (rule.name != kDefaultRule) return true;
    const bool is_for_everything = rule.expression.size() == 1 && rule.expression.front().empty();
    if (is_for_everything && rule.rank == ClassRule::kRankDefault) return true;
    return fail(1, "the rule default is for what no other rule is for, and is the last",
                std::string("write ") + example + ", or give the rule another name");
}

std::expected<std::string, RuleMistake> parse_rule_name(std::string_view text) {
    RuleReader reader(text);
    std::string name;
    if (!reader.is_split() || !reader.read_name(name)) return reader.failed();
    return name;
}

}  // namespace fopd::lrs

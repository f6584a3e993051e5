#include "config/types.h"

#include "config/nearest.h"
#include "core/utf8.h"

namespace fopd::config {
namespace {

constexpr std::size_t kPathMax = 4095;

bool is_name_character(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
}

// Quotes text, unless it cannot be mistaken for another type.
Node text_node(const std::string& value) {
    constexpr std::string_view kNotText[] = {"null", "true", "false", "yes",  "no",  "on",
                                             "off",  "y",    "n",     "auto", "none"};
    std::string lower = value;
    for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    const char first = lower.empty() ? '\0' : lower[0];
    const bool is_plain =
        (first == '/' || (first >= 'a' && first <= 'z')) &&
        std::ranges::all_of(value, [](char c) { return is_name_character(c) || c == '/'; }) &&
        std::ranges::find(kNotText, lower) == std::end(kNotText);
    return is_plain ? plain_scalar(value) : quoted_scalar(value);
}

std::string allowed_text(const TextRule& rule) {
    std::string text = "text of ";
    if (rule.length_min > 0) text += std::to_string(rule.length_min) + " to ";
    if (rule.length_min == 0) text += "at most ";
    text += std::to_string(rule.length_max);
    return text +
           (rule.charset == Charset::kName ? " letters, digits, '.', '_' or '-'" : " characters");
}

std::expected<std::string, Mistake> read_text(const std::string& value, const TextRule& rule) {
    const auto mistake = [&](const char* what) {
        return std::unexpected(Mistake{in_quotes(value) + what, "write " + allowed_text(rule)});
    };
    if (core::has_control(value)) return mistake(" has a control or invisible character");
    const bool is_name = std::ranges::all_of(value, is_name_character);
    if (rule.charset == Charset::kName && !is_name) {
        return mistake(" has a character that is not allowed");
    }
    const std::size_t length = core::count_characters(value);
    if (length < rule.length_min) return mistake(value.empty() ? " is empty" : " is too short");
    if (length > rule.length_max) return mistake(" is too long");
    return value;
}

std::expected<std::string, Mistake> read_path(const std::string& value) {
    const auto mistake = [&](const char* what, const char* right) {
        return std::unexpected(Mistake{in_quotes(value) + what, right});
    };
    constexpr const char* kRight = "write an absolute path such as /var/lib/fopd";
    if (value.empty()) return mistake(" is empty", kRight);
    if (core::has_control(value)) return mistake(" has a control or invisible character", kRight);
    if (value[0] == '~') return mistake(" is not absolute", "write the home directory out");
    if (value[0] != '/') return mistake(" is not absolute", kRight);
    if (value.size() > kPathMax) return mistake(" is too long", kRight);
    return value;
}

std::expected<bool, Mistake> read_boolean(const Node& scalar) {
    const std::string& word = scalar.text;
    if (scalar.is_quoted) {
        return std::unexpected(
            Mistake{in_quotes(word) + " is text", "write true or false, without quotes"});
    }
    if (word == "true") return true;
    if (word == "false") return false;
    std::string lower = word;
    for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    constexpr std::string_view kTrue[] = {"true", "yes", "on", "y", "1", "enabled", "enable"};
    constexpr std::string_view kFalse[] = {"false", "no", "off", "n", "0", "disabled", "disable"};
    const char* right = "write true or false";
    if (std::ranges::find(kTrue, lower) != std::end(kTrue)) right = "write true";
    if (std::ranges::find(kFalse, lower) != std::end(kFalse)) right = "write false";
    return std::unexpected(Mistake{in_quotes(word) + " is neither true nor false", right});
}

// ", from 1s to 1h" for a range, without trivial bounds.
std::string bounds(const std::string& min, const std::string& max) {
    if (!min.empty() && !max.empty()) return ", from " + min + " to " + max;
    if (!min.empty()) return ", at least " + min;
    return max.empty() ? "" : ", at most " + max;
}

std::string allowed_duration(const DurationRule& rule) {
    return "a duration such as 30s or 250ms" +
           bounds(rule.min == Duration::zero() ? "" : format_duration(rule.min),
                  rule.max == Duration::max() ? "" : format_duration(rule.max));
}

std::string allowed_size(const SizeRule& rule) {
    constexpr auto kUnlimited = std::numeric_limits<std::uint64_t>::max();
    std::string text =
        "a size such as 64MiB or 4k" + bounds(rule.min == 0 ? "" : format_size(rule.min),
                                              rule.max == kUnlimited ? "" : format_size(rule.max));
    if (rule.multiple_of > 1) text += ", a multiple of " + format_size(rule.multiple_of);
    return text;
}

}  // namespace

TypePtr<std::string> text(TextRule rule) {
    ENSURE(rule.length_min <= rule.length_max);
    return std::make_shared<ScalarType<std::string>>(
        allowed_text(rule), [rule](const Node& scalar) { return read_text(scalar.text, rule); },
        text_node);
}

TypePtr<bool> boolean() {
    return std::make_shared<ScalarType<bool>>("true or false", read_boolean, [](bool value) {
        return plain_scalar(value ? "true" : "false");
    });
}

TypePtr<Duration> duration(DurationRule rule) {
    ENSURE(rule.min >= Duration::zero());
    ENSURE(rule.min <= rule.max);
    return std::make_shared<ScalarType<Duration>>(
        allowed_duration(rule),
        [rule](const Node& scalar) -> std::expected<Duration, Mistake> {
            const auto value = parse_duration(scalar.text);
            if (!value) return std::unexpected(value.error());
            const bool is_small = *value < rule.min;
            if (!is_small && *value <= rule.max) return *value;
            return std::unexpected(
                Mistake{in_quotes(scalar.text) + (is_small ? " is too short" : " is too long"),
                        "write " + allowed_duration(rule)});
        },
        [](const Duration& value) { return plain_scalar(format_duration(value)); });
}

TypePtr<std::uint64_t> size(SizeRule rule) {
    ENSURE(rule.min <= rule.max);
    ENSURE(rule.multiple_of > 0);
    return std::make_shared<ScalarType<std::uint64_t>>(
        allowed_size(rule),
        [rule](const Node& scalar) -> std::expected<std::uint64_t, Mistake> {
            const auto value = parse_size(scalar.text);
            if (!value) return std::unexpected(value.error());
            const char* wrong = nullptr;
            if (*value % rule.multiple_of != 0) wrong = " is not a multiple";
            if (*value < rule.min) wrong = " is too small";
            if (*value > rule.max) wrong = " is too large";
            if (wrong == nullptr) return *value;
            return std::unexpected(
                Mistake{in_quotes(scalar.text) + wrong, "write " + allowed_size(rule)});
        },
        [](const std::uint64_t& value) {
            // With a unit, it cannot be taken for a count.
            std::string text = format_size(value);
            if (text.back() >= '0' && text.back() <= '9') text += 'B';
            return plain_scalar(std::move(text));
        });
}

TypePtr<Rate> rate() {
    return std::make_shared<ScalarType<Rate>>(
        "a rate such as 200/s or 50MB/s",
        [](const Node& scalar) { return parse_rate(scalar.text); },
        [](const Rate& value) { return plain_scalar(format_rate(value)); });
}

TypePtr<std::string> path() {
    return std::make_shared<ScalarType<std::string>>(
        "an absolute path", [](const Node& scalar) { return read_path(scalar.text); }, text_node);
}

TypePtr<Address> address() {
    return std::make_shared<ScalarType<Address>>(
        "HOST:PORT such as 127.0.0.1:9420",
        [](const Node& scalar) { return parse_address(scalar.text); },
        [](const Address& value) { return quoted_scalar(format_address(value)); });
}

std::string allowed_integer(IntegerRule rule) {
    return "a whole number from " + std::to_string(rule.min) + " to " + std::to_string(rule.max);
}

std::expected<std::int64_t, Mistake> read_integer(const Node& scalar, IntegerRule rule) {
    if (scalar.is_quoted) {
        return std::unexpected(Mistake{in_quotes(scalar.text) + " is text",
                                       "write " + allowed_integer(rule) + ", without quotes"});
    }
    return parse_integer(scalar.text, rule.min, rule.max);
}

std::expected<std::size_t, Mistake> find_word(std::string_view word,
                                              const std::vector<std::string>& words) {
    const auto row = std::ranges::find(words, word);
    if (row != words.end()) return static_cast<std::size_t>(row - words.begin());
    const auto meant = nearest(word, words);
    const std::string hint = meant ? "did you mean " + in_quotes(*meant) + "? " : "";
    return std::unexpected(
        Mistake{in_quotes(word) + " is not allowed here", hint + "write " + allowed_words(words)});
}

std::string allowed_words(const std::vector<std::string>& words) {
    std::string text;
    for (std::size_t index = 0; index < words.size(); ++index) {
        if (index > 0) text += index + 1 == words.size() ? " or " : ", ";
        text += words[index];
    }
    return text;
}

bool check_list(const Node& node, const std::string& path, const ListRule& rule,
                const std::string& allowed, Problems& problems) {
    if (node.kind != Node::Kind::kList) {
        report_wrong_kind(node, path, allowed, problems);
        return false;
    }
    const std::size_t length = node.items.size();
    if (length < rule.length_min || length > rule.length_max) {
        const std::string count = std::to_string(length) + (length == 1 ? " item" : " items");
        problems.push_back({"", node.position, path, count, "write " + allowed});
    }
    return true;
}

void report_double(const Node& item, const std::string& path, const std::string& key,
                   const std::string& first_path, Problems& problems) {
    const std::string here = key.empty() ? path : key_path(path, key);
    const std::string first = key.empty() ? first_path : key_path(first_path, key);
    problems.push_back({"", locate(item, key), here, "the same as " + first,
                        key.empty() ? "list each only once" : "give each its own " + key});
}

std::string allowed_list(const ListRule& rule, const std::string& allowed_item) {
    std::string text = "a list of ";
    if (rule.length_min == 0) text += "at most ";
    if (rule.length_min > 0 && rule.length_min < rule.length_max) {
        text += std::to_string(rule.length_min) + " to ";
    }
    text += std::to_string(rule.length_max) + ", each ";
    return text + allowed_item;
}

std::string item_path(const std::string& path, std::size_t index) {
    return path + "[" + std::to_string(index) + "]";
}

}  // namespace fopd::config

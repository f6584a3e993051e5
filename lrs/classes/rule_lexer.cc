#include "lrs/classes/rule_lexer.h"

#include <algorithm>
#include <array>
#include <optional>

#include "config/problem.h"
#include "core/utf8.h"

namespace fopd::lrs {

namespace {

using Kind = RuleToken::Kind;

constexpr std::string_view kSigns = "&,=!<>{}\"()";

constexpr std::array<bool, 256> kEndsWord = [] {
    std::array<bool, 256> ends{};
    ends[' '] = true;
    ends['\t'] = true;
    for (const char sign : kSigns) ends[static_cast<unsigned char>(sign)] = true;
    return ends;
}();

bool ends_word(char c) {
    return kEndsWord[static_cast<unsigned char>(c)];
}

class RuleLexer {
public:
    explicit RuleLexer(std::string_view text) : text_(text) {}

    std::expected<std::vector<RuleToken>, RuleMistake> run() {
        if (text_.size() > kRuleBytesMax) {
            return std::unexpected(RuleMistake{.column = kRuleBytesMax + 1,
                                               .wrong = "the rule is longer than 4096 bytes",
                                               .right = "make several rules of it"});
        }
        if (auto mistake = find_no_text()) return std::unexpected(*std::move(mistake));
        for (;;) {
            while (!at_end() && is_blank(here())) advance();
            RuleToken token;
            token.column = column_;
            if (at_end()) {
                tokens_.push_back(std::move(token));
                return std::move(tokens_);
            }
            if (!read(token)) return std::unexpected(*std::move(mistake_));
            tokens_.push_back(std::move(token));
        }
    }

private:
    static bool is_blank(char c) { return c == ' ' || c == '\t'; }
    // The first byte or character that is not printable text, if any.
    std::optional<RuleMistake> find_no_text() const {
        std::string_view left = text_;
        for (std::size_t column = 1; !left.empty(); ++column) {
            const auto character = core::decode_utf8(left);
            if (!character) {
                return RuleMistake{.column = column,
                                   .wrong = "a byte here is not UTF-8",
                                   .right = "save the rules as UTF-8"};
            }
            if (core::is_control(character->code_point) && left.front() != '\t') {
                return RuleMistake{.column = column,
                                   .wrong = "an invisible control character is here",
                                   .right = "remove it; blanks and tabs may stand between words"};
            }
            left.remove_prefix(character->size_bytes);
        }
        return std::nullopt;
    }
    bool at_end() const { return position_ == text_.size(); }
    char here() const { return text_[position_]; }
    // Columns count characters, not bytes.
    void advance() {
        ++position_;
        const bool is_start = at_end() || (static_cast<unsigned char>(here()) & 0xc0U) != 0x80U;
        if (is_start) ++column_;
    }
    bool take(char c) {
        if (at_end() || here() != c) return false;
        advance();
        return true;
    }
    bool fail(std::size_t column, std::string wrong, std::string right) {
        mistake_ =
            RuleMistake{.column = column, .wrong = std::move(wrong), .right = std::move(right)};
        return false;
    }

    bool read(RuleToken& token) {
        if (take('&')) return is(token, Kind::kAnd);
        if (take(',')) return is(token, Kind::kOr);
        if (take('=')) return is(token, Kind::kEqual);
        if (take('{')) return is(token, Kind::kOpen);
        if (take('}')) return is(token, Kind::kClose);
        if (take('<')) return is(token, take('=') ? Kind::kLessEqual : Kind::kLess);
        if (take('>')) return is(token, take('=') ? Kind::kGreaterEqual : Kind::kGreater);
        if (take('!')) {
            if (take('=')) return is(token, Kind::kNotEqual);
            return fail(token.column, "'!' stands alone", "write key!=value");
        }
        if (here() == '(' || here() == ')') {
            return fail(token.column, "there are no parentheses in rules",
                        "'&' binds before ','; put a name that has them in quotes");
        }
        return read_word(token);
    }

    static bool is(RuleToken& token, Kind kind) {
        token.kind = kind;
        return true;
    }

    bool read_word(RuleToken& token) {
        token.kind = Kind::kWord;
        while (!at_end()) {
            if (here() == '"') {
                token.has_quotes = true;
                if (!read_quoted(token)) return false;
            } else if (ends_word(here())) {
                break;
            } else if (here() == '*') {
                read_gap(token);
            } else {
                const std::size_t start = position_;
                while (!at_end() && here() != '*' && !ends_word(here())) advance();
                add(token, text_.substr(start, position_ - start));
            }
        }
        return true;
    }

    void read_gap(RuleToken& token) {
        advance();
        if (!token.has_gaps()) token.literals.push_back(token.text);
        token.text += '*';
        // Adjacent gaps are one gap.
        if (token.literals.size() == 1 || !token.literals.back().empty())
            token.literals.emplace_back();
    }

    bool read_quoted(RuleToken& token) {
        const std::size_t start = column_;
        advance();
        while (!at_end() && here() != '"') {
            if (here() == '\t') return fail(column_, "there is a tab in quotes", "write a blank");
            if (here() == '\\') {
                advance();
                if (at_end()) break;
                if (here() != '"' && here() != '\\') {
                    return fail(column_, "'\\' stands before neither '\"' nor '\\'",
                                "write '\\\\' for '\\'");
                }
            }
            add(token, text_.substr(position_, 1));
            advance();
        }
        if (take('"')) return true;
        return fail(start, "the text in quotes has no end", "write '\"' behind it");
    }

    static void add(RuleToken& token, std::string_view text) {
        token.text += text;
        if (token.has_gaps()) token.literals.back() += text;
    }

    std::string_view text_;
    std::size_t position_ = 0;
    std::size_t column_ = 1;
    std::vector<RuleToken> tokens_;
    std::optional<RuleMistake> mistake_;
};

void append_literal(std::string& to, std::string_view literal, bool in_quotes) {
    // Unquoted, two dots are a range.
    in_quotes = in_quotes || literal.find("..") != std::string_view::npos;
    in_quotes =
        in_quotes || std::ranges::any_of(literal, [](char c) { return c == '*' || ends_word(c); });
    if (!in_quotes) {
        to += literal;
        return;
    }
    to += '"';
    for (const char c : literal) {
        if (c == '"' || c == '\\') to += '\\';
        to += c;
    }
    to += '"';
}

}  // namespace

std::string to_string(const RuleMistake& mistake) {
    std::string text;
    if (mistake.line > 0) text = "line " + std::to_string(mistake.line) + ", ";
    if (mistake.column > 0) text += "column " + std::to_string(mistake.column) + ": ";
    return text + mistake.wrong + "; " + mistake.right;
}

std::string to_string(const RuleMistakes& mistakes) {
    std::string text;
    for (const RuleMistake& each : mistakes) {
        if (!text.empty()) text += '\n';
        text += to_string(each);
    }
    return text;
}

std::string RuleToken::shown() const {
    switch (kind) {
        case Kind::kWord: return config::in_quotes(text);
        case Kind::kAnd: return "'&'";
        case Kind::kOr: return "','";
        case Kind::kEqual: return "'='";
        case Kind::kNotEqual: return "'!='";
        case Kind::kLess: return "'<'";
        case Kind::kLessEqual: return "'<='";
        case Kind::kGreater: return "'>'";
        case Kind::kGreaterEqual: return "'>='";
        case Kind::kOpen: return "'{'";
        case Kind::kClose: return "'}'";
        case Kind::kEnd: return "the end";
    }
    return {};
}

std::expected<std::vector<RuleToken>, RuleMistake> split_rule(std::string_view text) {
    return RuleLexer(text).run();
}

void append_rule_word(std::string& to, std::string_view text) {
    append_literal(to, text, text.empty());
}

void append_rule_word(std::string& to, const std::vector<std::string>& literals) {
    bool is_first = true;
    for (const std::string& literal : literals) {
        if (!is_first) to += '*';
        is_first = false;
        append_literal(to, literal, false);
    }
}

}  // namespace fopd::lrs

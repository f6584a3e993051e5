#pragma once

#include <array>
#include <expected>
#include <memory>
#include <string>
#include <string_view>

#include "lrs/classes/rule_lexer.h"
#include "lrs/tbf/rule.h"

namespace fopd::lrs {

// One grammar for the configuration, for files and for commands: docs/formats/rules.md.

// The rule whose classes take what no other rule is for. Always there, always last.
inline constexpr std::string_view kDefaultRule = "default";

// "small op=read&size<64k rate=20000/s burst=64". Its numbers in a set are not given yet.
std::expected<Rule, RuleMistake> parse_rule(std::string_view text);

// The same with parts left out, which stay as they are in `old`: "small rate=10/s". A new rate
// without a burst has its default burst. Requires: the text begins with the name of `old`.
std::expected<Rule, RuleMistake> parse_change(std::string_view text, const Rule& old);

// The name at the start of a text.
std::expected<std::string, RuleMistake> parse_rule_name(std::string_view text);

// A request as somebody describes it, "op=read size=4k job=dd.0", and the text it borrows. What is
// not mentioned is empty.
class DescribedRequest {
public:
    const RequestAttributes& attributes() const { return attributes_; }

    static std::expected<std::unique_ptr<DescribedRequest>, RuleMistake> parse(
        std::string_view text);

private:
    void borrow_texts();

    std::array<std::string, kKeyCount> texts_;
    RequestAttributes attributes_;
};

}  // namespace fopd::lrs

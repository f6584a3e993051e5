#pragma once

#include <array>
#include <expected>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lrs/classes/key.h"
#include "lrs/classes/rule_lexer.h"

namespace fopd::lrs {

// A request described in text, "op=read size=4k job=dd.0 group={staff dev}", with the text it
// refers to. Keys that are not mentioned are empty.
class DescribedRequest {
public:
    const RequestAttributes& attributes() const { return attributes_; }

    static std::expected<std::unique_ptr<DescribedRequest>, RuleMistake> parse(
        std::string_view text);

private:
    void borrow_texts();

    std::array<std::string, kKeyCount> texts_;
    std::vector<std::string> groups_;
    std::string share_;
    RequestAttributes attributes_;
};

}  // namespace fopd::lrs

// Goal: the index finds the rule that a plain list finds, whatever the rules and the requests are,
// and no rules that are allowed make it slow or large.
// Method: random rules of all kinds of tests over few values, so that they overlap, against looking
// at one rule after the other.

#include "lrs/classes/rule_index.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "core/random.h"
#include "lrs/classes/rule_list.h"
#include "lrs/tbf/rule_parser.h"
#include "tests/catch.h"

using namespace fopd;
using namespace fopd::lrs;

namespace {

class RandomRules {
public:
    explicit RandomRules(std::uint64_t seed) : random_(seed) {}

    std::string rule(std::size_t number) {
        std::string text = "r" + std::to_string(number) + ' ';
        for (std::size_t i = 0, count = 1 + random_.below(3); i < count; ++i) {
            if (i > 0) text += ',';
            for (std::size_t j = 0, tests = 1 + random_.below(3); j < tests; ++j) {
                if (j > 0) text += '&';
                text += test();
            }
        }
        return text + " rate=1/s";
    }
    // Two letters and digits, so that most values are listed somewhere.
    std::string word() {
        std::string text;
        for (std::size_t i = 0, count = 1 + random_.below(4); i < count; ++i)
            text += one_of({"a", "b", "1", "2"});
        return text;
    }
    std::string address() {
        if (random_.below(4) == 0) return "fe80::" + std::to_string(1 + random_.below(9));
        return "10.0." + std::to_string(random_.below(3)) + '.' + std::to_string(random_.below(9));
    }
    std::string id() { return std::string(31, '0') + one_of({"1", "2", "a"}); }
    std::string op() { return one_of({"read", "write", "append", "upload_write"}); }
    std::uint64_t size() { return random_.below(20) * 1024; }

private:
    std::string one_of(std::vector<std::string> words) {
        return words[random_.below(words.size())];
    }
    std::string sign() { return random_.below(4) == 0 ? "!=" : "="; }

    std::string text_value() {
        switch (random_.below(6)) {
            case 0: return word() + '*';
            case 1: return '*' + word();
            case 2: return word() + '*' + word();
            case 3: return '*' + word() + '*' + (random_.below(2) == 0 ? word() : "");
            case 4: {
                const std::uint64_t low = random_.below(300);
                return std::to_string(low) + ".." + std::to_string(low + random_.below(2000));
            }
            default: return word();
        }
    }
    std::string address_value() {
        switch (random_.below(4)) {
            case 0: return "10.0." + std::to_string(random_.below(3)) + ".0/24";
            case 1: return "10.0.0.3..10.0.1.6";
            case 2: return "10.0." + std::to_string(random_.below(3)) + ".*";
            default: return address();
        }
    }
    std::string list(std::string (RandomRules::*value)()) {
        if (random_.below(2) == 0) return (this->*value)();
        std::string text = "{";
        for (std::size_t i = 0, count = 1 + random_.below(3); i < count; ++i)
            text += (i > 0 ? " " : "") + (this->*value)();
        return text + '}';
    }
    std::string test() {
        switch (random_.below(8)) {
            case 0: return "*";
            case 1: return "address" + sign() + list(&RandomRules::address_value);
            case 2: return "op" + sign() + list(&RandomRules::op);
            case 3:
                return "size" + one_of({"<", "<=", ">", ">="}) +
                       std::to_string(1 + random_.below(20)) + 'k';
            case 4: return "object" + sign() + list(&RandomRules::id);
            case 5: return "group" + sign() + list(&RandomRules::text_value);
            default: return one_of({"job", "user"}) + sign() + list(&RandomRules::text_value);
        }
    }

    core::Random random_;
};

std::optional<std::size_t> first_in_list(const std::vector<Rule>& rules,
                                         const RequestAttributes& attributes) {
    const auto first =
        std::ranges::find_if(rules, [&](const Rule& rule) { return rule.matches(attributes); });
    if (first == rules.end()) return std::nullopt;
    return static_cast<std::size_t>(first - rules.begin());
}

std::vector<Rule> parsed(const std::vector<std::string>& texts) {
    std::vector<Rule> rules;
    for (const std::string& text : texts) {
        auto rule = parse_rule(text);
        CAPTURE(text);
        REQUIRE(rule.has_value());
        rules.push_back(*std::move(rule));
    }
    return rules;
}

}  // namespace

TEST_CASE("lrs rule index: it finds the same rule as a plain list", "[lrs]") {
    std::size_t found_count = 0;
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        CAPTURE(seed);
        RandomRules random(seed);
        std::vector<std::string> texts;
        const std::size_t count = 1 + seed * 3;
        for (std::size_t i = 0; i < count; ++i) texts.push_back(random.rule(i));
        std::vector<Rule> rules = parsed(texts);
        // So that also the last ones are met.
        for (std::size_t part = 0; part < 3;
             ++part, rules.erase(rules.begin(),
                                 rules.begin() + static_cast<std::ptrdiff_t>(rules.size() / 2))) {
            const RuleIndex index(rules);
            RuleMemo memo;
            for (std::size_t i = 0; i < 300; ++i) {
                const std::string job = random.word() + std::string(i % 11 == 0 ? 60 : 0, 'a');
                const std::string user = i % 7 == 0 ? "" : random.word();
                const std::vector<std::string> groups{random.word(), random.word(), random.word()};
                const std::string host = random.address();
                const std::string peer =
                    "tcp://" + (host.find(':') == std::string::npos ? host : '[' + host + ']') +
                    ":1";
                RequestAttributes about;
                about.type = fop::find_fop_type(random.op())->number;
                about.job = job;
                about.user = user;
                about.groups = std::span(groups).first(i % 4);
                about.peer = peer;
                about.size_bytes = random.size();
                if (i % 3 > 0) about.object = {.high = 0, .low = i % 3};
                const auto wanted = first_in_list(rules, about);
                CAPTURE(job, user, groups, i % 4, host, about.size_bytes);
                REQUIRE(index.first_for(about) == wanted);
                // The second time it may be remembered.
                REQUIRE(index.first_for(about, &memo) == wanted);
                REQUIRE(index.first_for(about, &memo) == wanted);
                if (wanted) ++found_count;
            }
        }
    }
    CHECK(found_count > 10'000);
}

TEST_CASE("lrs rule index: among 1024 rules of every kind it finds each one", "[lrs]") {
    for (const std::string_view shape : {"job=x#", "job=x#y*", "job=*y#", "job=*y#*", "job=#..#",
                                         "address=10.1.#/32", "job!=x&user=x#"}) {
        CAPTURE(shape);
        std::vector<std::string> texts;
        std::vector<std::string> values;
        for (std::size_t i = 0; i < kRulesMax; ++i) {
            const std::string number = std::to_string(1000 + i);
            const std::string host = std::to_string(i / 256) + '.' + std::to_string(i % 256);
            std::string text = "r" + std::to_string(i) + ' ';
            for (const char c : shape)
                text += c != '#' ? std::string(1, c) : shape.starts_with('a') ? host : number;
            texts.push_back(text + " rate=1/s");
            values.push_back(shape.starts_with('a') ? "10.1." + host : number);
        }
        const std::vector<Rule> rules = parsed(texts);
        const RuleIndex index(rules);
        for (std::size_t i = 0; i < kRulesMax; ++i) {
            const std::string job = shape == "job=x#"     ? "x" + values[i]
                                    : shape == "job=x#y*" ? "x" + values[i] + "y.0"
                                    : shape == "job=*y#"  ? "a.y" + values[i]
                                    : shape == "job=*y#*" ? "a.y" + values[i] + ".0"
                                    : shape == "job=#..#" ? values[i]
                                                          : "";
            const std::string user = "x" + values[i];
            const std::string peer = values[i] + ":1";
            RequestAttributes about;
            about.job = job;
            about.user = user;
            about.peer = peer;
            REQUIRE(index.first_for(about) == i);
        }
    }
}

TEST_CASE("lrs rule index: rules that say too much in all are refused at the line", "[lrs]") {
    const auto mistake_of = [](std::size_t count, const auto& expression) {
        std::vector<std::string> texts;
        for (std::size_t i = 0; i < count; ++i)
            texts.push_back("r" + std::to_string(i) + ' ' + expression(i) + " rate=1/s");
        std::vector<RuleLine> lines;
        for (const std::string& text : texts) lines.push_back({lines.size() + 1, text});
        const auto read = read_rules<Rule>(lines, parse_rule);
        return read ? std::string() : to_string(read.error());
    };
    const auto values = [](std::size_t count, const std::string& before,
                           const std::string& behind) {
        return [=](std::size_t rule) {
            std::string text = "job={";
            for (std::size_t i = 0; i < count; ++i)
                text += ' ' + before + std::to_string(rule * count + i) + behind;
            return text + '}';
        };
    };
    CHECK(mistake_of(64, values(256, "x", "")).empty());
    CHECK(mistake_of(65, values(256, "x", "")) ==
          "line 65, column 1: with this one the rules have more than 16384 values in all; write "
          "patterns or ranges instead of single values");
    CHECK(mistake_of(200, values(64, "*a", "*")).find("at one end") != std::string::npos);
    CHECK(mistake_of(100, [](std::size_t) {
              std::string text;
              for (int i = 0; i < 64; ++i) text += (i > 0 ? "," : "") + std::string("size>1");
              return text;
          }).starts_with("line 65, column 1: with this one the rules have more than 4096 alter"));
    CHECK(mistake_of(100, [](std::size_t) {
              return "job=a*&job=*b";
          }).starts_with("line 65, column 1: with this one the rules have more than 64 alter"));
    CHECK(mistake_of(100, [](std::size_t) { return "job!=a*&job!=*b"; }).empty());
}

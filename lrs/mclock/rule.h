#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lrs/classes/class_rule.h"
#include "lrs/classes/rule_lexer.h"
#include "lrs/mclock/cost.h"
#include "lrs/mclock/reserved_classes.h"

namespace fopd::lrs {

// The shares of each class of a rule. Rates are in requests without data per second.
struct Shares {
    std::optional<std::uint64_t> reservation{};
    std::uint32_t weight = 1;
    std::optional<std::uint64_t> limit{};
    bool is_soft = false;  // The limit may be exceeded while no class below its limit has requests.

    friend bool operator==(const Shares&, const Shares&) = default;
};

struct MclockRule : ClassRule {
    // The most classes of a rule that reserves.
    static constexpr std::size_t kClassesMax = 4096;

    Shares shares;
    std::size_t class_count = 0;  // The most classes it can have, if it reserves; else 0.

    // Set by the rule set.
    CostPace reservation_pace;
    CostPace limit_pace;
    std::shared_ptr<ReservedClasses> reserved;  // Null: no reservation.

    bool has_hard_limit() const { return shares.limit && !shares.is_soft; }
    // In the form that parse_mclock_rule() reads.
    std::string text() const;
};

// "gold user={ann bob} reservation=500/s weight=4 limit=2000/s": docs/formats/rules.md.
std::expected<MclockRule, RuleMistake> parse_mclock_rule(std::string_view text);

// Parses a change of `old`; parts not given stay: "gold weight=2". REQUIRES: the text begins with
// the name of `old`.
std::expected<MclockRule, RuleMistake> parse_mclock_change(std::string_view text,
                                                           const MclockRule& old);

}  // namespace fopd::lrs

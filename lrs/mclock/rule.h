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

// What a rule grants each of its classes. Rates are of requests without data.
struct Shares {
    static constexpr std::uint32_t kWeightMax = 1000;

    std::optional<std::uint64_t> reservation{};
    std::uint32_t weight = 1;
    std::optional<std::uint64_t> limit{};
    bool is_soft = false;  // The limit: more is had when nobody else wants it.

    friend bool operator==(const Shares&, const Shares&) = default;
};

struct MclockRule : ClassRule {
    // Of a rule that reserves.
    static constexpr std::size_t kClassesMax = 4096;

    Shares shares;
    std::size_t class_count = 0;  // At most so many, where it reserves; else 0.

    // Given by the set it belongs to.
    CostPace reservation_pace;
    CostPace limit_pace;
    std::shared_ptr<ReservedClasses> reserved;  // Null: it reserves nothing.

    bool has_hard_limit() const { return shares.limit && !shares.is_soft; }
    // As parse_mclock_rule() reads it.
    std::string text() const;
};

// "gold user={ann bob} reservation=500/s weight=4 limit=2000/s": docs/formats/rules.md.
std::expected<MclockRule, RuleMistake> parse_mclock_rule(std::string_view text);

// Parses a change of `old`, whose parts stay where the text leaves them out: "gold weight=2".
// Requires: the text begins with the name of `old`.
std::expected<MclockRule, RuleMistake> parse_mclock_change(std::string_view text,
                                                           const MclockRule& old);

}  // namespace fopd::lrs

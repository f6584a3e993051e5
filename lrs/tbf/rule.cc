#include "lrs/tbf/rule.h"

#include <optional>
#include <vector>

#include "config/units.h"

namespace fopd::lrs {

namespace {

std::string rates_of(const Limits& limits) {
    if (limits.is_blocked) return "block";
    if (limits.is_unlimited()) return "unlimited";
    using Unit = config::Rate::Unit;
    std::vector<std::string> rates;
    const auto add = [&rates](const std::optional<Limit>& limit, Unit unit) {
        if (!limit) return;
        rates.push_back(config::format_rate({.per_second = limit->per_second, .unit = unit}));
    };
    add(limits.operations, Unit::kOperations);
    add(limits.bytes, Unit::kBytes);
    return one_or_list(rates);
}

// Default bursts are omitted.
std::string bursts_of(const Limits& limits) {
    std::vector<std::string> bursts;
    const auto add = [&bursts](const std::optional<Limit>& limit, auto format) {
        if (!limit || limit->burst == default_burst(limit->per_second)) return;
        bursts.push_back(format(limit->burst));
    };
    add(limits.operations, [](std::uint64_t count) { return std::to_string(count); });
    add(limits.bytes, [](std::uint64_t size) {
        std::string text = config::format_size(size);
        if (text.back() >= '0' && text.back() <= '9') text += 'B';
        return text;
    });
    return bursts.empty() ? std::string() : one_or_list(bursts);
}

}  // namespace

std::string Rule::text() const {
    std::string options = " rate=" + rates_of(limits);
    const std::string bursts = bursts_of(limits);
    if (!bursts.empty()) options += " burst=" + bursts;
    if (!all_limits.is_unlimited()) options += " all=" + rates_of(all_limits);
    if (is_cluster) options += " scope=cluster";
    return text_around(options);
}

}  // namespace fopd::lrs

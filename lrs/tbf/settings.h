#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/record.h"
#include "core/time.h"

namespace fopd::lrs {

// The settings of tbf. The rules are texts for RuleRevisions::load().
struct TbfSettings {
    std::vector<std::string> rules;
    // For rules of the cluster: how often the nodes agree on their shares, and the share of a node
    // that is cut off, in percent; nothing: that of one of all nodes.
    Duration cluster_interval = 100ms;
    std::optional<std::uint32_t> cut_off{};

    friend bool operator==(const TbfSettings&, const TbfSettings&) = default;
};

config::Record<TbfSettings> tbf_record();

}  // namespace fopd::lrs

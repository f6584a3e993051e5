#pragma once

#include <string>
#include <vector>

#include "config/record.h"

namespace fopd::lrs {

// The settings of tbf. The rules are texts for RuleRevisions::load().
struct TbfSettings {
    std::vector<std::string> rules;

    friend bool operator==(const TbfSettings&, const TbfSettings&) = default;
};

config::Record<TbfSettings> tbf_record();

}  // namespace fopd::lrs

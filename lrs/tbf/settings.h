#pragma once

#include <string>
#include <vector>

#include "config/record.h"

namespace fopd::lrs {

// What there is to set of tbf. The rules are such as RuleRevisions::load() takes.
struct TbfSettings {
    std::vector<std::string> rules;

    friend bool operator==(const TbfSettings&, const TbfSettings&) = default;
};

config::Record<TbfSettings> tbf_record();

}  // namespace fopd::lrs

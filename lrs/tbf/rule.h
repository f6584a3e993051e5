#pragma once

#include <string>

#include "lrs/classes/class_rule.h"
#include "lrs/classes/pace.h"

namespace fopd::lrs {

// A rule, and the limits of each of its classes.
struct Rule : ClassRule {
    Limits limits;
    Limits all_limits;  // The limits of all its classes together.

    // Set by the rule set. The bucket is shared by all classes of the rule; it is replaced when
    // `all_limits` changes.
    Paces paces;
    Paces all_paces;
    std::shared_ptr<Bucket> all_bucket;

    // In the form that parse_rule() reads.
    std::string text() const;
};

}  // namespace fopd::lrs

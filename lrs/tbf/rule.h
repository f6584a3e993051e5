#pragma once

#include <string>

#include "lrs/classes/class_rule.h"
#include "lrs/classes/pace.h"

namespace fopd::lrs {

// A rule, and the limits of each of its classes.
struct Rule : ClassRule {
    Limits limits;
    Limits all_limits;        // The limits of all its classes together.
    bool is_cluster = false;  // The limits are for all nodes together, not for each.

    // Set by the rule set. The bucket is shared by all classes of the rule; it is replaced when
    // `all_limits` changes.
    Paces paces;
    Paces all_paces;
    std::shared_ptr<Bucket> all_bucket;
    // A hash of the text, by which nodes notice that their rules differ.
    std::uint32_t terms = 0;

    bool has_same_classes_as(const Rule& other) const {
        return ClassRule::has_same_classes_as(other) && is_cluster == other.is_cluster;
    }
    // In the form that parse_rule() reads.
    std::string text() const;
};

}  // namespace fopd::lrs

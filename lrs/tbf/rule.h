#pragma once

#include <string>

#include "lrs/classes/class_rule.h"
#include "lrs/classes/pace.h"

namespace fopd::lrs {

// One rule, and what each of its classes may have.
struct Rule : ClassRule {
    Limits limits;
    Limits all_limits;  // Of its classes together.

    // Given by the set it belongs to. The bucket is that of all its classes; with other limits it
    // is another one.
    Paces paces;
    Paces all_paces;
    std::shared_ptr<Bucket> all_bucket;

    // As parse_rule() reads it.
    std::string text() const;
};

}  // namespace fopd::lrs

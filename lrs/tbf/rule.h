#pragma once

#include <string>

#include "lrs/classes/class_rule.h"
#include "lrs/classes/pace.h"

namespace fopd::lrs {

// One rule, and what each of its classes may have.
struct Rule : ClassRule {
    Limits limits;
    Paces paces;  // Given by the set it belongs to.

    // As parse_rule() reads it.
    std::string text() const;
};

}  // namespace fopd::lrs

#pragma once

#include <string>
#include <string_view>

#include "fop/rights.h"
#include "store/object.h"

namespace fopd::reqh {

// What somebody who may not do something is told: what it is, why not, and why a token that was
// shown is of no help.

// "may not write: your rights are read; the token has expired". `token` is empty when none was
// shown.
std::string denial_by_rights(fop::Rights needed, fop::Rights own, std::string_view token);
// "may not write: mode 0640, owner alice". Owner, group and mode are said to who may read the
// object, and known to nobody else.
enum class Looks : bool { kHidden, kKnown };
std::string denial_by_mode(std::string_view what, const store::Object& object, Looks looks,
                           std::string_view token);

}  // namespace fopd::reqh

#pragma once

#include <string>
#include <string_view>

#include "fop/rights.h"
#include "store/object.h"

namespace fopd::reqh {

// The words of a refusal: the denied action, the reason, and why a token in the request does not
// help.

// "may not write: your rights are read; the token has expired". `token` is empty if the request has
// none.
std::string denial_by_rights(fop::Rights needed, fop::Rights own, std::string_view token);
// "may not write: mode 0640, owner alice". Owner, group and mode are only told to callers that may
// read the object.
enum class Looks : bool { kHidden, kKnown };
std::string denial_by_mode(std::string_view what, const store::Object& object, Looks looks,
                           std::string_view token);

}  // namespace fopd::reqh

#pragma once

#include "core/result.h"
#include "fop/message.h"

namespace fopd::fop {

// Whether what a request says makes sense at all, whatever there is on the server: names, limits,
// and that payload, ranges and checksums belong together. kInvalid with the reason as its context.
// What the readers hand out without a fault was checked.
Result<void> check_request(const Request& request);

// Whether a reply keeps the limits of what a body may borrow, and of the lengths it tells.
bool is_bounded(const ReplyBody& body);

}  // namespace fopd::fop

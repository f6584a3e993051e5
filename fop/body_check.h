#pragma once

#include "core/result.h"
#include "fop/message.h"

namespace fopd::fop {

// Whether a request is valid in itself, whatever the state of the server: names, limits, and that
// payload, ranges and checksums match. kInvalid with the reason as context. The message readers
// apply this check; requests without a fault have passed it.
Result<void> check_request(const Request& request);

// Whether a reply respects the limits of borrowed texts and lists, and of the lengths it states.
bool is_bounded(const ReplyBody& body);

}  // namespace fopd::fop

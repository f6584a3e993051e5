#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "fop/fop_type.h"
#include "fop/message.h"

namespace fopd::reqh {

// The parameters of a fop that administers the node, for the audit trail, such as
// `barcode="TAPE01L9" drive="d0"`; none: the fop administers nothing. A fop that needs the right
// `admin` administers the node, unless it only measures the network or only asks how far long work
// is. `pool` is the name in the request's header, which may be unknown. REQUIRES: the request was
// verified.
std::optional<std::string> administration_in(const fop::FopType& type, const fop::Request& request,
                                             std::string_view pool);

}  // namespace fopd::reqh

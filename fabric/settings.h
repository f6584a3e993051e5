#pragma once

#include <cstdint>
#include <vector>

#include "config/section.h"
#include "config/type.h"
#include "core/time.h"
#include "fabric/address.h"
#include "fop/protection.h"

namespace fopd::fabric {

// The section `fabric` of the configuration.
struct FabricSettings {
    std::vector<Address> listen{Address{
        .scheme = kTcpScheme, .host = "0.0.0.0", .port = kDefaultPort, .locality = std::nullopt}};
    std::uint64_t inline_max = 12U << 10;
    Duration lease = 30s;
    Duration handshake_timeout = 5s;
    fop::Protection protection = fop::Protection::kSeal;
};

config::Section<FabricSettings> fabric_section();

// A numeric address of a node, without a locality.
config::TypePtr<Address> address_type();

}  // namespace fopd::fabric

#pragma once

#include <cstdint>
#include <memory>

#include "config/record.h"
#include "lrs/policy.h"

namespace fopd::lrs {

struct CrrSettings {
    std::uint32_t quantum = 1;
    friend bool operator==(const CrrSettings&, const CrrSettings&) = default;
};
config::Record<CrrSettings> crr_record();

// Clients take turns of up to `quantum` requests; each client's are in the order of arrival. A
// client is all its sessions. The seed is that of the table of clients.
std::unique_ptr<Policy> make_crr(const CrrSettings& settings, std::uint64_t seed);

}  // namespace fopd::lrs

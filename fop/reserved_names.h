#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace fopd::fop {

// Names in reports for groups of clients: principals beyond those that are counted by name, peers,
// and clients without a key. No principal may have such a name.
inline constexpr std::string_view kOtherClients = "other";
inline constexpr std::string_view kPeers = "peers";
inline constexpr std::string_view kUnauthenticated = "unauthenticated";
inline constexpr std::array kReservedNames{kOtherClients, kPeers, kUnauthenticated};
constexpr bool is_reserved_name(std::string_view name) {
    return std::ranges::find(kReservedNames, name) != kReservedNames.end();
}

}  // namespace fopd::fop

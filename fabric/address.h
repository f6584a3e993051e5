#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/result.h"

namespace fopd::fabric {

// The port that daemons listen at and clients connect to by default.
inline constexpr std::uint16_t kDefaultPort = 31470;

// The schemes of addresses. A scheme names the transport that carries the bytes.
inline constexpr const char* kTcpScheme = "tcp";         // Over the kernel's TCP.
inline constexpr const char* kVerbsScheme = "verbs";     // RDMA, by libfabric.
inline constexpr const char* kOfiTcpScheme = "ofi+tcp";  // TCP, by libfabric's provider.
inline constexpr const char* kMemScheme = "mem";         // Within the process; hosts are names.

// An address such as "tcp://10.0.0.5:31470/3": the scheme, the host and port, and the locality of
// the node. Without a locality the node chooses one.
struct Address {
    std::string scheme = kTcpScheme;
    std::string host;  // An IPv6 address has no brackets here.
    std::uint16_t port = 0;
    std::optional<std::uint16_t> locality;

    friend bool operator==(const Address&, const Address&) = default;
};

// kInvalid: the context is the reason.
Result<Address> parse_address(std::string_view text);
std::string format_address(const Address& address);

}  // namespace fopd::fabric

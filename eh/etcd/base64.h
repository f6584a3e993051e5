#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fopd::eh::etcd {

// Base64 with padding (RFC 4648), as etcd's gateway writes keys and values.
std::string to_base64(std::span<const std::byte> bytes);
// Nothing if `text` is not exactly what to_base64() makes of some bytes.
std::optional<std::vector<std::byte>> from_base64(std::string_view text);

}  // namespace fopd::eh::etcd

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fopd::fop {

// The forms of RFC 4648 that are in use.
enum class Base64 : std::uint8_t {
    // Base64 with padding, as the gateway of etcd has it.
    kPadded,
    // Base64url without padding, for files and command lines.
    kUrlSafeUnpadded,
};

std::string to_base64(std::span<const std::byte> bytes, Base64 form);
// Nothing if `text` is not exactly what to_base64() makes of some bytes.
std::optional<std::vector<std::byte>> from_base64(std::string_view text, Base64 form);

}  // namespace fopd::fop

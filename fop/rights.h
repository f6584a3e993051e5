#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/result.h"

namespace fopd::fop {

// The rights that a principal or token has, or that a fop needs.
class Rights {
public:
    constexpr Rights() = default;
    // Nothing if a bit is set that is not a right.
    static constexpr std::optional<Rights> from_bits(std::uint16_t bits) {
        if ((bits & ~kAllBits) != 0) return std::nullopt;
        return Rights(bits);
    }
    constexpr std::uint16_t bits() const { return bits_; }

    constexpr bool none() const { return bits_ == 0; }
    // Whether all rights in `needed` are included.
    constexpr bool cover(Rights needed) const { return (needed.bits_ & ~bits_) == 0; }

    friend constexpr Rights operator|(Rights one, Rights other) {
        return Rights(static_cast<std::uint16_t>(one.bits_ | other.bits_));
    }
    friend constexpr Rights operator&(Rights one, Rights other) {
        return Rights(static_cast<std::uint16_t>(one.bits_ & other.bits_));
    }
    friend constexpr bool operator==(Rights, Rights) = default;

private:
    static constexpr std::uint16_t kAllBits = 0x1f;
    explicit constexpr Rights(std::uint16_t bits) : bits_(bits) {}

    std::uint16_t bits_ = 0;
};

inline constexpr Rights kNoRights;
inline constexpr Rights kRead = *Rights::from_bits(1);
inline constexpr Rights kWrite = *Rights::from_bits(2);
inline constexpr Rights kCreate = *Rights::from_bits(4);
inline constexpr Rights kDelete = *Rights::from_bits(8);
inline constexpr Rights kAdmin = *Rights::from_bits(16);
inline constexpr Rights kAllRights = kRead | kWrite | kCreate | kDelete | kAdmin;

// "read,write", "none".
std::string to_text(Rights rights);
// Reads such a text, in any order; spaces around the commas are ignored. kInvalid with the reason
// as context: each right may be named only once, and "none" only alone.
Result<Rights> parse_rights(std::string_view text);

}  // namespace fopd::fop

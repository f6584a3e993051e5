#pragma once

#include <cstdint>

namespace fopd::fop {

// What a principal may do: a set of bits.
enum class Rights : std::uint16_t {
    kNone = 0,
    kRead = 1 << 0,
    kWrite = 1 << 1,
    kCreate = 1 << 2,
    kDelete = 1 << 3,
    kAdmin = 1 << 4,
};

constexpr Rights operator|(Rights left, Rights right) {
    return static_cast<Rights>(static_cast<unsigned>(left) | static_cast<unsigned>(right));
}
constexpr Rights operator&(Rights left, Rights right) {
    return static_cast<Rights>(static_cast<unsigned>(left) & static_cast<unsigned>(right));
}
// Whether all of `needed` is in `held`.
constexpr bool includes(Rights held, Rights needed) {
    return (held & needed) == needed;
}

}  // namespace fopd::fop

#pragma once

#include <array>
#include <cstdio>
#include <string>

#include "fop/fid.h"
#include "store/fid.h"

namespace fopd::objects {

// Convert between the fids of fops and of the store.
constexpr store::Fid store_fid(const fop::Fid& fid) {
    return {.high = fid.high, .low = fid.low};
}
constexpr fop::Fid fop_fid(const store::Fid& fid) {
    return {.high = fid.high, .low = fid.low};
}

// The form shown to users: 32 hex digits.
inline std::string format_fid(store::Fid fid) {
    std::array<char, 33> text{};
    std::snprintf(text.data(), text.size(), "%016llx%016llx",
                  static_cast<unsigned long long>(fid.high),
                  static_cast<unsigned long long>(fid.low));
    return text.data();
}

}  // namespace fopd::objects

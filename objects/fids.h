#pragma once

#include <string>

#include "fop/fid.h"
#include "fop/hex.h"
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
    return fop::to_hex(fop_fid(fid));
}

}  // namespace fopd::objects

#pragma once

#include "fop/fid.h"
#include "store/fid.h"

namespace fopd::reqh {

// The same thing, as fops and as the store have it.
constexpr store::Fid store_fid(const fop::Fid& fid) {
    return {.high = fid.high, .low = fid.low};
}
constexpr fop::Fid fop_fid(const store::Fid& fid) {
    return {.high = fid.high, .low = fid.low};
}

}  // namespace fopd::reqh

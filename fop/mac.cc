#include "fop/mac.h"

#include "fop/siphash.h"

namespace fopd::fop {

Mac128 mac(const MacKey& key, std::span<const std::byte> first, std::span<const std::byte> second) {
    SipHash state(key);
    state.add(first);
    state.add(second);
    return {state.finish()};
}

}  // namespace fopd::fop

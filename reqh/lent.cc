#include "reqh/lent.h"

namespace fopd::reqh {

std::optional<std::string_view> Lent::why_not(fop::Rights needed, const Matter& matter) const {
    if (fault != nullptr) return fault;
    if (rights.none()) return "";
    if (object && object != matter.object) {
        return matter.object ? "the token is for another object" : "the token is for one object";
    }
    if (pool && pool != matter.pool) {
        return matter.pool ? "the token is for another pool" : "the token is for one pool";
    }
    if (!rights.cover(needed)) return "the token does not grant this right";
    return std::nullopt;
}

}  // namespace fopd::reqh

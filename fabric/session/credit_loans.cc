#include "fabric/session/credit_loans.h"

#include "core/ensure.h"

namespace fopd::fabric {

bool CreditLoans::take(const std::string& principal, std::uint32_t has) {
    if (is_most(has)) return false;
    const auto known = taken_by_.find(principal);
    const std::uint32_t of_principal = known == taken_by_.end() ? 0 : known->second;
    // A principal has no more than are free, a session no more than half of what is left of that.
    const std::uint32_t free = total_ - taken_;
    if (of_principal >= free || has >= (free - of_principal) / 2) return false;
    ++taken_;
    ++taken_by_[principal];
    return true;
}

void CreditLoans::give_back(const std::string& principal, std::uint32_t count) {
    if (count == 0) return;
    const auto known = taken_by_.find(principal);
    ENSURE(known != taken_by_.end());
    ENSURE(count <= known->second);
    taken_ -= count;
    known->second -= count;
    if (known->second == 0) taken_by_.erase(known);
}

}  // namespace fopd::fabric

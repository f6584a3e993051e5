#include "fabric/session/credit_loans.h"

#include "core/ensure.h"

namespace fopd::fabric {

CreditLoans::Taken CreditLoans::taken_by(const std::string& principal) const {
    const auto known = taken_by_.find(principal);
    return known == taken_by_.end() ? Taken{} : known->second;
}

bool CreditLoans::take(const std::string& principal, std::uint32_t has, std::uint32_t bytes) {
    if (is_most(has)) return false;
    const Taken own = taken_by(principal);
    // A principal has no more loans than are free, and a session at most half of what its principal
    // may still take.
    const std::uint32_t free = limits_.total - taken_.count;
    if (own.count >= free || has >= (free - own.count) / 2) return false;
    if (!take_bytes(principal, bytes)) return false;
    ++taken_.count;
    ++taken_by_[principal].count;
    return true;
}

bool CreditLoans::take_bytes(const std::string& principal, std::uint32_t bytes) {
    if (bytes == 0) return true;
    const std::uint32_t free = limits_.bytes - taken_.bytes;
    const std::uint32_t of_principal = taken_by(principal).bytes;
    if (of_principal >= free || bytes > free - of_principal) return false;
    taken_.bytes += bytes;
    taken_by_[principal].bytes += bytes;
    return true;
}

void CreditLoans::give_back(const std::string& principal, std::uint32_t Taken::* what,
                            std::uint32_t amount) {
    if (amount == 0) return;
    const auto known = taken_by_.find(principal);
    ENSURE(known != taken_by_.end());
    Taken& own = known->second;
    ENSURE(amount <= own.*what);
    taken_.*what -= amount;
    own.*what -= amount;
    if (own.count == 0 && own.bytes == 0) taken_by_.erase(known);
}

}  // namespace fopd::fabric

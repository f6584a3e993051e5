// What a session may send beside its own credits while fops of it wait for their turn.
#include "fabric/session/session.h"
#include "fabric/session/session_host.h"

namespace fopd::fabric {

bool Session::owes_fop_credits() const {
    return role_ == Role::kServer && fop_grants_[index_of(fop::Lane::kData)]->urgent();
}

void Session::fop_waits() {
    fop_grant(fop::Lane::kData).began_to_wait();
    if (!borrow_for_waiting()) host_.settle_loans_soon();
}

// False: the session still lacks loans, and may have more once other sessions return some.
bool Session::borrow_for_waiting() {
    CreditGrant& grant = fop_grant(fop::Lane::kData);
    while (grant.lacks_loan() && host_.loans_.take(share_name_, grant.lent())) grant.lend();
    if (grant.urgent()) wants_turn();
    return !grant.lacks_loan() || host_.loans_.is_most(grant.lent());
}

// Called when loans are short: a session with unused loans is asked to return them, a session that
// lacks some tries again.
void Session::settle_loans() {
    const CreditGrant& grant = fop_grant(fop::Lane::kData);
    if (grant.lacks_loan() && !host_.loans_.is_most(grant.lent())) {
        if (!borrow_for_waiting()) host_.settle_loans_soon();
    } else if (grant.spare_loans() > 0) {
        surrender_fops_asked_ = grant.spare_loans();
        wants_turn();
    }
}

void Session::give_loans_back(std::uint32_t count) {
    host_.loans_.give_back(share_name_, count);
}

}  // namespace fopd::fabric

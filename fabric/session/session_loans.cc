// Loans of a session: credits beyond its own while its fops wait for their turn.
#include <algorithm>
#include <utility>

#include "fabric/session/session.h"
#include "fabric/session/session_host.h"

namespace fopd::fabric {

namespace {

// How long a client that was asked for unused loans may take to return some before it is asked
// again. Each time costs a message; without this limit a client that never returns loans would get
// one in each pass.
constexpr Duration kLoansAskedEvery = 1s;

}  // namespace

bool Session::owes_fop_credits() const {
    return role_ == Role::kServer && fop_grants_[index_of(fop::Lane::kData)]->urgent();
}

void Session::fop_waits(std::uint32_t bytes) {
    fop_grant(fop::Lane::kData).began_to_wait();
    waiting_bytes_ += bytes;
    loan_size_ = bytes;
    if (!borrow_for_waiting()) host_.settle_loans_soon();
}

void Session::fop_waits_no_more(std::uint32_t bytes) {
    fop_grant(fop::Lane::kData).ended_waiting();
    waiting_bytes_ -= bytes;
}

// False: the session still lacks loans, and may have more once other sessions return some.
bool Session::borrow_for_waiting() {
    CreditGrant& grant = fop_grant(fop::Lane::kData);
    while (grant.lacks_loan() && host_.loans_.take(share_name_, grant.lent(), loan_size_)) {
        grant.lend();
        loan_bytes_ += loan_size_;
    }
    if (grant.urgent()) wants_turn();
    return !grant.lacks_loan() || host_.loans_.is_most(grant.lent());
}

// Called when loans are short: a session with unused loans is asked to return them, a session that
// lacks some tries again.
void Session::settle_loans() {
    const CreditGrant& grant = fop_grant(fop::Lane::kData);
    if (grant.lacks_loan() && !host_.loans_.is_most(grant.lent())) {
        if (!borrow_for_waiting()) host_.settle_loans_soon();
        return;
    }
    const Instant now = host_.reactor_.now();
    if (grant.spare_loans() == 0 || now < loans_asked_again_at_) return;
    loans_asked_again_at_ = after(now, kLoansAskedEvery);
    surrender_fops_asked_ = grant.spare_loans();
    wants_turn();
}

std::uint32_t Session::bytes_on_loans(std::uint32_t waiting) {
    const std::uint32_t own = fop_grant(fop::Lane::kData).target() * host_.options_.inline_max;
    return waiting - std::min(waiting, own);
}

bool Session::may_wait(std::uint32_t bytes) {
    ENSURE(state_ == State::kOpen);
    const std::uint32_t needed = bytes_on_loans(waiting_bytes_ + bytes);
    if (needed <= loan_bytes_) return true;
    if (!host_.loans_.take_bytes(share_name_, needed - loan_bytes_)) return false;
    loan_bytes_ = needed;
    return true;
}

// Each remaining loan keeps its share of the byte loan, and never less than the bytes in use.
void Session::give_loans_back(std::uint32_t count, std::uint32_t had) {
    host_.loans_.give_back(share_name_, count);
    if (count == 0) return;
    const std::uint64_t part = std::uint64_t{loan_bytes_} * (had - count) / had;
    const std::uint32_t used = std::min(bytes_on_loans(waiting_bytes_), loan_bytes_);
    const std::uint32_t kept = std::max(static_cast<std::uint32_t>(part), used);
    host_.loans_.give_bytes_back(share_name_, loan_bytes_ - kept);
    loan_bytes_ = kept;
}

void Session::give_all_loans_back() {
    host_.loans_.give_back(share_name_, fop_grant(fop::Lane::kData).lent());
    host_.loans_.give_bytes_back(share_name_, std::exchange(loan_bytes_, 0));
}

}  // namespace fopd::fabric

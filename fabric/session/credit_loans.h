#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace fopd::fabric {

// The loans of a locality: credits that sessions have beyond their own while their fops wait for
// their turn, so that what a policy holds back does not keep the same client's other fops from
// being sent. Each is a fop in memory, so there are only so many. The fewer are left, the fewer one
// principal may have, and one session of it: those that come later find some, too.
class CreditLoans {
public:
    CreditLoans(std::uint32_t total, std::uint16_t of_session_max)
        : total_(total), of_session_max_(of_session_max) {}

    // Whether a session of that principal that has `has` may have one more; then it has it.
    [[nodiscard]] bool take(const std::string& principal, std::uint32_t has);
    // Whether no session ever has more than this.
    bool is_most(std::uint32_t has) const { return has >= of_session_max_; }
    void give_back(const std::string& principal, std::uint32_t count);

    std::uint32_t taken() const { return taken_; }

private:
    const std::uint32_t total_;
    const std::uint16_t of_session_max_;
    std::uint32_t taken_ = 0;
    std::map<std::string, std::uint32_t, std::less<>> taken_by_;  // Principals that have some.
};

}  // namespace fopd::fabric

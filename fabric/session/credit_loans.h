#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace fopd::fabric {

// The loans of a locality. A session whose fops wait for their turn in the scheduler is lent
// further credits, so that a policy that holds back some fops of a client does not keep it from
// sending others. A loan may become a fop in memory, so the number of loans is limited. The fewer
// loans are left, the fewer a principal or a session may have, so that later principals and
// sessions still get some.
//
// With each loan a session also gets bytes for the data of the fop. These are limited in total,
// too; a principal may have no more than are left.
class CreditLoans {
public:
    struct Limits {
        std::uint32_t total = 0;
        std::uint16_t of_session = 0;
        std::uint32_t bytes = 0;
    };
    explicit CreditLoans(const Limits& limits) : limits_(limits) {}

    // Lends one more credit, with so many bytes, to a session of the principal that has `has`
    // loans. False: it may not have more now.
    [[nodiscard]] bool take(const std::string& principal, std::uint32_t has, std::uint32_t bytes);
    // Whether this is the largest number of loans that a session can have.
    bool is_most(std::uint32_t has) const { return has >= limits_.of_session; }
    void give_back(const std::string& principal, std::uint32_t count) {
        give_back(principal, &Taken::count, count);
    }

    // Lends bytes without a credit.
    [[nodiscard]] bool take_bytes(const std::string& principal, std::uint32_t bytes);
    void give_bytes_back(const std::string& principal, std::uint32_t bytes) {
        give_back(principal, &Taken::bytes, bytes);
    }

    std::uint32_t taken() const { return taken_.count; }
    std::uint32_t taken_bytes() const { return taken_.bytes; }

private:
    struct Taken {
        std::uint32_t count = 0;
        std::uint32_t bytes = 0;
    };
    using TakenBy = std::map<std::string, Taken, std::less<>>;

    Taken taken_by(const std::string& principal) const;
    void give_back(const std::string& principal, std::uint32_t Taken::* what, std::uint32_t amount);

    const Limits limits_;
    Taken taken_;
    TakenBy taken_by_;  // Principals that have loans or bytes.
};

}  // namespace fopd::fabric

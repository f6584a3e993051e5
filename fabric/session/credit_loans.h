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
//
// Each is lent with the bytes that a fop may bring which comes on it. There are only so many, too,
// of which a principal likewise has no more than are left.
class CreditLoans {
public:
    struct Limits {
        std::uint32_t total = 0;
        std::uint16_t of_session = 0;
        std::uint32_t bytes = 0;
    };
    explicit CreditLoans(const Limits& limits) : limits_(limits) {}

    // Whether a session of that principal that has `has` may have one more, with so many bytes;
    // then it has it.
    [[nodiscard]] bool take(const std::string& principal, std::uint32_t has, std::uint32_t bytes);
    // Whether no session ever has more than this.
    bool is_most(std::uint32_t has) const { return has >= limits_.of_session; }
    void give_back(const std::string& principal, std::uint32_t count) {
        give_back(principal, &Taken::count, count);
    }

    // Only bytes.
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
    TakenBy taken_by_;  // Principals that have some.
};

}  // namespace fopd::fabric

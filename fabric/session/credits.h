#pragma once

#include <algorithm>
#include <cstdint>

#include "core/ensure.h"

namespace fopd::fabric {

// What a locality can promise to all its sessions together: receive buffers, or fops in memory.
class CreditPool {
public:
    explicit CreditPool(std::uint32_t total) : free_(total), total_(total) {}

    // As many as there are, up to `wanted`.
    std::uint32_t take(std::uint32_t wanted) {
        const std::uint32_t taken = std::min(wanted, free_);
        free_ -= taken;
        return taken;
    }
    void give_back(std::uint32_t count) {
        ENSURE(count <= total_ - free_);
        free_ += count;
    }
    std::uint32_t free() const { return free_; }
    std::uint32_t total() const { return total_; }

private:
    std::uint32_t free_;
    std::uint32_t total_;
};

// What one peer may send, as the receiver keeps it. A peer starts with a few credits that cost the
// pool nothing, is given more as it uses them, and gives them up again when it is idle.
//
// A credit is either held by the peer, or used by a fop or message that has arrived and is not done
// with. For each fop that waits for its turn the peer may be lent one more credit, a loan. A loan
// that is no longer needed stays with the peer until the peer gives it up.
class CreditGrant {
public:
    // Requires: 0 < floor <= max.
    CreditGrant(CreditPool& pool, std::uint16_t floor, std::uint16_t max)
        : pool_(pool), floor_(floor), max_(max), target_(floor), held_(floor) {}
    ~CreditGrant() { pool_.give_back(target_ - floor_); }
    CreditGrant(const CreditGrant&) = delete;
    CreditGrant& operator=(const CreditGrant&) = delete;

    // Something arrived. False when the peer had no credit for it, which breaks the protocol.
    [[nodiscard]] bool use() {
        if (held_ == 0) return false;
        --held_;
        ++used_;
        return true;
    }
    // What is on its way cannot be seen from here, so a peer that waits for credits is not known by
    // having none: one that has used as many as it has, for work, may use more.
    void grow() {
        if (++uses_ < target_ || target_ == max_) return;
        uses_ = 0;
        const std::uint32_t wanted = std::min<std::uint32_t>(target_, max_ - target_);
        target_ = static_cast<std::uint16_t>(target_ + pool_.take(wanted));
    }
    // It is done with. The credit is to be told to the peer by next_grant().
    void done() {
        ENSURE(used_ > 0);
        --used_;
    }
    // It is done with, and the peer knows: a reply returns the credit of its request.
    void done_and_known() {
        done();
        ++held_;
    }

    // What the next message tells the peer it may send in addition.
    std::uint16_t next_grant() {
        const std::uint16_t grant = owed();
        held_ = static_cast<std::uint16_t>(held_ + grant);
        return grant;
    }
    // The peer has less than half of what it should have, or only the one it keeps for control:
    // worth a message of its own.
    bool urgent() const { return owed() > 0 && (held_ < 2 || held_ * 2 < target_); }

    // What an idle peer is asked to give up.
    std::uint16_t excess() const {
        const int above = target_ - floor_ + spare_loans();
        return static_cast<std::uint16_t>(std::min<int>(above, held_));
    }
    // It gave up so many. False when it never had them. It may have been asked twice before its
    // first answer came, and give up more than it should: that is owed to it again.
    [[nodiscard]] bool given_up(std::uint16_t count) {
        if (count == 0) return true;
        if (count > held_) return false;
        const std::uint16_t loans = std::min(count, spare_loans());
        const int own = std::min<int>(count - loans, target_ - floor_);
        held_ = static_cast<std::uint16_t>(held_ - count);
        lent_ = static_cast<std::uint16_t>(lent_ - loans);
        target_ = static_cast<std::uint16_t>(target_ - own);
        pool_.give_back(static_cast<std::uint32_t>(own));
        uses_ = 0;
        return true;
    }

    // One that has arrived waits for its turn, or does so no more.
    void began_to_wait() { ++waiting_; }
    void ended_waiting() {
        ENSURE(waiting_ > 0);
        --waiting_;
    }
    // Whether the last that arrived came on a loan: it has used all credits of its own.
    bool uses_loans() const { return used_ > target_; }
    // As many loans as wait are what keeps the peer's own credits for what does not wait.
    bool lacks_loan() const { return waiting_ > lent_; }
    std::uint16_t spare_loans() const {
        return static_cast<std::uint16_t>(std::max(lent_ - waiting_, 0));
    }
    void lend() { ++lent_; }

    std::uint16_t held() const { return held_; }
    std::uint16_t used() const { return used_; }
    std::uint16_t target() const { return target_; }
    std::uint16_t waiting() const { return waiting_; }
    std::uint16_t lent() const { return lent_; }

private:
    std::uint16_t owed() const {
        return static_cast<std::uint16_t>(target_ + lent_ - held_ - used_);
    }

    CreditPool& pool_;
    const std::uint16_t floor_;
    const std::uint16_t max_;
    std::uint16_t target_;       // With lent_: held_ + used_ + what it is still to be told.
    std::uint16_t held_;         // As the peer will know when all messages have arrived.
    std::uint16_t used_ = 0;     // Arrived and not done with.
    std::uint16_t waiting_ = 0;  // Of used_.
    std::uint16_t lent_ = 0;
    std::uint32_t uses_ = 0;  // Since it was last given more, or gave up some.
};

}  // namespace fopd::fabric

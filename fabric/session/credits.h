#pragma once

#include <algorithm>
#include <cstdint>

#include "core/ensure.h"
#include "fabric/session/share_room.h"

namespace fopd::fabric {

// The credits that a locality can grant to all its sessions in total: receive buffers, or fops in
// memory. share_room() limits how many the sessions of one principal may have together.
class CreditPool {
public:
    // The credits that the sessions of one principal have taken.
    struct Share {
        std::uint32_t taken = 0;
    };

    explicit CreditPool(std::uint32_t total) : free_(total), total_(total) {}

    // Takes up to `wanted` credits for the principal with this share; returns how many it took.
    std::uint32_t take(std::uint32_t wanted, Share& share) {
        const auto room = static_cast<std::uint32_t>(share_room(share.taken, free_));
        const std::uint32_t taken = std::min(wanted, room);
        free_ -= taken;
        share.taken += taken;
        return taken;
    }
    void give_back(std::uint32_t count, Share& share) {
        ENSURE(count <= share.taken);
        free_ += count;
        share.taken -= count;
    }
    std::uint32_t free() const { return free_; }
    std::uint32_t total() const { return total_; }

private:
    std::uint32_t free_;
    std::uint32_t total_;
};

// The credits of one peer, as the receiver counts them. A peer starts with a few credits that use
// nothing of the pool, gets more as it uses them, and returns them when it is idle.
//
// A credit is either held by the peer, or used by a fop or message that has arrived and is not
// finished. For each fop that waits for its turn the peer may be lent one more credit, a loan. A
// loan that is no longer needed stays with the peer until the peer gives it up.
class CreditGrant {
public:
    // REQUIRES: 0 < floor <= max.
    CreditGrant(CreditPool& pool, std::uint16_t floor, std::uint16_t max)
        : pool_(pool), floor_(floor), max_(max), target_(floor), held_(floor) {}
    ~CreditGrant() { give_back(target_ - floor_); }
    CreditGrant(const CreditGrant&) = delete;
    CreditGrant& operator=(const CreditGrant&) = delete;

    // Called when the peer's principal is known. The share of the principal outlives this grant.
    void belongs_to(CreditPool::Share& share) { share_ = &share; }

    // A message or fop has arrived. False: the peer had no credit for it, which violates the
    // protocol.
    [[nodiscard]] bool use() {
        if (held_ == 0) return false;
        --held_;
        ++used_;
        return true;
    }
    // Raises the target if the peer has used as many credits as its target since the target last
    // changed. The receiver cannot know whether the peer has used up all of its credits, because
    // messages may be in flight. REQUIRES: its principal is known.
    void grow() {
        if (++uses_ < target_ || target_ == max_) return;
        ENSURE(share_ != nullptr);
        uses_ = 0;
        const std::uint32_t wanted = std::min<std::uint32_t>(target_, max_ - target_);
        target_ = static_cast<std::uint16_t>(target_ + pool_.take(wanted, *share_));
    }
    // A message or fop is finished. next_grant() returns its credit to the peer.
    void done() {
        ENSURE(used_ > 0);
        --used_;
    }
    // A fop is finished, and its reply returns the credit.
    void done_and_known() {
        done();
        ++held_;
    }

    // Grants the peer all credits it is owed; returns their number, which the next message carries.
    std::uint16_t next_grant() {
        const std::uint16_t grant = owed();
        held_ = static_cast<std::uint16_t>(held_ + grant);
        return grant;
    }
    // Whether a grant is worth a message of its own: the peer has less than half of its target, or
    // only the last credit, which is for control.
    bool urgent() const { return owed() > 0 && (held_ < 2 || held_ * 2 < target_); }

    // How many credits an idle peer is asked to give up.
    std::uint16_t excess() const {
        const int above = target_ - floor_ + spare_loans();
        return static_cast<std::uint16_t>(std::min<int>(above, held_));
    }
    // The peer gave up credits. False: it did not have them. A peer that was asked twice before its
    // first answer arrived gives up too many; the difference is granted again.
    [[nodiscard]] bool given_up(std::uint16_t count) {
        if (count == 0) return true;
        if (count > held_) return false;
        const std::uint16_t loans = std::min(count, spare_loans());
        const int own = std::min<int>(count - loans, target_ - floor_);
        held_ = static_cast<std::uint16_t>(held_ - count);
        lent_ = static_cast<std::uint16_t>(lent_ - loans);
        target_ = static_cast<std::uint16_t>(target_ - own);
        give_back(static_cast<std::uint32_t>(own));
        uses_ = 0;
        return true;
    }

    // A fop that has arrived starts or stops waiting for its turn.
    void began_to_wait() { ++waiting_; }
    void ended_waiting() {
        ENSURE(waiting_ > 0);
        --waiting_;
    }
    // Whether the peer has used all credits of its own, so that the newest fop came on a loan.
    bool uses_loans() const { return used_ > target_; }
    // Whether there are fewer loans than waiting fops. With as many loans, the peer's own credits
    // are free for fops that do not wait.
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
    void give_back(std::uint32_t count) {
        if (count > 0) pool_.give_back(count, *share_);
    }
    std::uint16_t owed() const {
        return static_cast<std::uint16_t>(target_ + lent_ - held_ - used_);
    }

    CreditPool& pool_;
    CreditPool::Share* share_ = nullptr;  // Null: nothing was taken yet.
    const std::uint16_t floor_;
    const std::uint16_t max_;
    // The peer's own credits, without loans: target_ + lent_ = held_ + used_ + owed().
    std::uint16_t target_;
    std::uint16_t held_;         // Includes grants in flight to the peer.
    std::uint16_t used_ = 0;     // Arrived and not finished.
    std::uint16_t waiting_ = 0;  // Part of used_.
    std::uint16_t lent_ = 0;
    std::uint32_t uses_ = 0;  // Since target_ changed last.
};

}  // namespace fopd::fabric

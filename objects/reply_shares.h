#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/time.h"
#include "store/object.h"
#include "store/volume.h"

namespace fopd::objects {

// Limits the number of recorded replies on a disk, and each principal's share of them. A reply that
// replaces another in its request place needs no room; one in an unused place does. A principal may
// have as many as are left for others, however many clients it has; a single principal may have
// half of all. So the total is bounded, and there is room for further principals.
//
// The disk does not record the principal of a client. After a start, a client's replies belong to
// no principal until the client needs room for another one; this does not affect other principals.
//
// Lives on one reactor.
class ReplyShares {
public:
    // The total is one for each block of the disk, which uses a fiftieth of its bytes, within these
    // bounds: at most enough for many active clients at a time, and at least enough for some
    // clients that use all their request places.
    static constexpr std::uint64_t kMax = 1ULL << 19;
    static constexpr std::uint64_t kMin = 1ULL << 14;

    ReplyShares(const std::vector<store::ClientReplies>& counted, std::uint64_t disk_blocks);
    ReplyShares(const ReplyShares&) = delete;
    ReplyShares& operator=(const ReplyShares&) = delete;

    // Assigns the client to the principal, and takes room for one more reply. False: the
    // principal's share is used up.
    bool take(const store::ClientId& client, std::string_view principal);
    // Counts a reply that exists already, also beyond the share.
    void add(const store::ClientId& client, std::string_view principal);
    // REQUIRES: the reply was taken, or added, or counted at the start.
    void give_back(const store::ClientId& client);

    std::uint64_t count() const { return count_; }
    std::uint64_t max() const { return max_; }
    // The number of take() calls that failed.
    std::uint64_t refused_count() const { return refused_count_; }
    // Whether a refusal should be logged now; true at most once per interval.
    bool should_log_refusal(Instant now);

private:
    struct Principal {
        std::uint64_t count = 0;
        std::uint32_t clients = 0;
    };
    using Principals = std::map<std::string, Principal, std::less<>>;
    struct Client {
        Principals::iterator principal;
        std::uint32_t count = 0;
    };
    using Clients = std::map<store::ClientId, Client>;

    Clients::iterator enter(const store::ClientId& client, std::string_view principal);
    void add_to(Clients::iterator client);
    void leave_if_empty(Clients::iterator client);

    const std::uint64_t max_;
    std::uint64_t count_ = 0;
    std::uint64_t refused_count_ = 0;
    Principals principals_;
    Clients clients_;  // Each has at least one reply.
    const Principals::iterator nobody_;
    Instant told_at_{};
    bool has_told_ = false;
};

// Room for one more reply, taken before the change begins. Given back unless it is kept.
class ReplyRoom {
public:
    ReplyRoom() = default;
    ReplyRoom(const ReplyRoom&) = delete;
    ReplyRoom& operator=(const ReplyRoom&) = delete;
    ~ReplyRoom() { give_back(); }

    // REQUIRES: no room is held.
    bool take(ReplyShares& shares, const store::ClientId& client, std::string_view principal) {
        if (!shares.take(client, principal)) return false;
        shares_ = &shares;
        client_ = client;
        return true;
    }
    bool held() const { return shares_ != nullptr; }
    // The recorded reply uses the room from now on.
    void keep() { shares_ = nullptr; }
    void give_back() {
        if (held()) shares_->give_back(client_);
        shares_ = nullptr;
    }

private:
    ReplyShares* shares_ = nullptr;
    store::ClientId client_{};
};

}  // namespace fopd::objects

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

// How many replies a disk remembers, and the share of them that each principal may have. A reply
// that takes the place of another one needs no more room; one in a place that had none does, and a
// principal may have as many as are left for others, however many clients it has: alone a half of
// all. So all of them are bounded, and who comes next has room.
//
// Nothing on the disk says whose a client is. After a start its replies are nobody's, which is all
// the same for the others, until it needs room for one more.
//
// Lives on one reactor.
class ReplyShares {
public:
    // One for each block of the disk, which is a fiftieth of its bytes: no more than many clients
    // that work have at a time, and no fewer than some with all their places.
    static constexpr std::uint64_t kMax = 1ULL << 19;
    static constexpr std::uint64_t kMin = 1ULL << 14;

    ReplyShares(const std::vector<store::ClientReplies>& counted, std::uint64_t disk_blocks);
    ReplyShares(const ReplyShares&) = delete;
    ReplyShares& operator=(const ReplyShares&) = delete;

    // The client is this principal's, and will have one more. False: its principal has its share.
    bool take(const store::ClientId& client, std::string_view principal);
    // Counts a reply that exists already, also beyond the share.
    void add(const store::ClientId& client, std::string_view principal);
    // Requires: it was taken, or added, or counted at the start.
    void give_back(const store::ClientId& client);

    std::uint64_t count() const { return count_; }
    std::uint64_t max() const { return max_; }
    // Those that were not taken.
    std::uint64_t refused_count() const { return refused_count_; }
    // Whether it is time to say that somebody was refused: from time to time.
    bool is_to_tell(Instant now);

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
    void leave_if_empty(Clients::iterator client);

    const std::uint64_t max_;
    std::uint64_t count_ = 0;
    std::uint64_t refused_count_ = 0;
    Principals principals_;
    Clients clients_;  // With at least one each.
    const Principals::iterator nobody_;
    Instant told_at_{};
    bool has_told_ = false;
};

// Room for one more reply, for a change that has not begun. Given back unless it is kept.
class ReplyRoom {
public:
    ReplyRoom() = default;
    ReplyRoom(const ReplyRoom&) = delete;
    ReplyRoom& operator=(const ReplyRoom&) = delete;
    ~ReplyRoom() { give_back(); }

    // Requires: it is not held.
    bool take(ReplyShares& shares, const store::ClientId& client, std::string_view principal) {
        if (!shares.take(client, principal)) return false;
        shares_ = &shares;
        client_ = client;
        return true;
    }
    bool held() const { return shares_ != nullptr; }
    // The reply has it from now on.
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

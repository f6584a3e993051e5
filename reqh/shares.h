#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "core/ensure.h"
#include "core/intrusive_list.h"

namespace fopd::reqh {

// Decides how many of a locality's buffers each client's fops may hold, and which fops
// wait until their client may hold another one.
//
// A client is slow while a fop of it has waited for the client to send or receive data longer than
// the network takes: the buffers that it holds may come back late. A slow client may hold half of
// the buffers that its principal may still take, and all principals together always leave some
// free. So there is room for the next client, however many hold their shares. A client that is not
// slow may hold three times as many buffers as are free, until slow clients hold half of all
// buffers: from then on its share is limited like that of a slow client, except that it may take
// its first buffer from those that its principal's slow clients must leave free. Clients that are
// not slow leave an eighth of the buffers to fops that do not wait for a client; these take buffers
// without a share: however many clients stop at the same moment, such fops proceed.
//
// A fop that is parked, because it waits for another fop, keeps its buffer as long as one that
// waits for its client: the client counts as slow, and while a principal has such fops, all of its
// fops need a share.
//
// Pure. Fops of one client are served in the order of arrival. Principals take turns, and in the
// turn of a principal its clients.
class Shares {
public:
    // The list node of a waiting fop in its client's list.
    class Place : public core::ListNode {};

    using ClientId = std::array<std::byte, 16>;
    class Client;

private:
    // Waiting clients of a principal, by the turns at which they began to wait.
    using Line = std::map<std::uint64_t, Client*>;
    // In turns_ while one of its clients waits.
    struct Principal : core::ListNode {
        std::uint64_t held = 0;
        std::uint64_t clients = 0;
        std::uint64_t parked = 0;  // Its parked fops.
        // All or none of those that hold no buffer have a share, however many they are; those that
        // hold some are no more than there are buffers.
        Line empty_handed;
        Line holders;
        bool waits() const { return !empty_handed.empty() || !holders.empty(); }
    };

public:
    // A client of a principal. Exists as long as it holds buffers or waits.
    class Client {
    public:
        std::uint64_t held() const { return held_; }
        bool is_slow() const { return slow_count_ > 0; }
        // Whether one of its fops has itself waited too long. Fops that wait behind it make the
        // client slow, but not late, so that the client stays slow only as long as such a late fop
        // waits.
        bool is_late() const { return late_count_ > 0; }
        void began_late() { ++late_count_; }
        void ended_late() {
            ENSURE(late_count_ > 0);
            --late_count_;
        }
        bool waits() const { return turn_ > 0; }

    private:
        friend Shares;
        Line& line() {
            return held_ == 0 ? principal_->second.empty_handed : principal_->second.holders;
        }

        std::uint64_t held_ = 0;
        std::uint64_t turn_ = 0;  // 0: does not wait.
        std::uint64_t late_count_ = 0;
        std::uint64_t slow_count_ = 0;  // Its fops that wait for the client, or are parked.
        core::IntrusiveList<Place> waiting_;
        std::map<std::string, Principal, std::less<>>::iterator principal_;
        const ClientId* id_ = nullptr;
    };

    Shares() = default;
    Shares(const Shares&) = delete;
    Shares& operator=(const Shares&) = delete;

    // The reference is valid until the matching give_back() or leave().
    Client& client_of(std::string_view principal, const ClientId& id) {
        auto of = principals_.find(principal);
        if (of == principals_.end()) of = principals_.try_emplace(std::string(principal)).first;
        const auto [entry, is_new] = clients_.try_emplace({of->first, id});
        Client& client = entry->second;
        if (is_new) {
            client.principal_ = of;
            client.id_ = &entry->first.second;
            ++of->second.clients;
        }
        return client;
    }

    // Whether the client may take one more of `total` buffers. A client with waiting fops may not:
    // they go first.
    bool may_take(const Client& client, std::uint64_t total) const {
        return !client.waits() && has_share(client, total);
    }
    void take(Client& client) {
        set_held(client, client.held_ + 1);
        ++client.principal_->second.held;
        ++held_;
        if (client.is_slow()) ++slow_held_;
    }
    void give_back(Client& client) {
        ENSURE(client.held_ > 0);
        set_held(client, client.held_ - 1);
        --client.principal_->second.held;
        --held_;
        if (client.is_slow()) --slow_held_;
        forget_if_idle(client);
    }

    // Whether the client's share is limited now. If so, its waiting fops must not hold up other
    // clients.
    bool is_limited(const Client& client, std::uint64_t total) const {
        return client.is_slow() || 2 * slow_held_ >= total;
    }
    // One of the client's fops starts or ends a wait for the client's bytes. The fop holds a
    // buffer.
    void begin_slow(Client& client) {
        if (client.slow_count_++ == 0) slow_held_ += client.held_;
    }
    void end_slow(Client& client) {
        ENSURE(client.slow_count_ > 0);
        if (--client.slow_count_ == 0) slow_held_ -= client.held_;
    }
    // Likewise when one of the client's fops is parked, or no longer is. The fop holds a buffer.
    void begin_parked(Client& client) {
        ++client.principal_->second.parked;
        begin_slow(client);
    }
    void end_parked(Client& client) {
        ENSURE(client.principal_->second.parked > 0);
        --client.principal_->second.parked;
        end_slow(client);
    }
    // Whether fops of the client need a share although they do not wait for it.
    bool has_parked(const Client& client) const { return client.principal_->second.parked > 0; }

    // The fop waits until next() returns it, or until leave().
    void wait(Client& client, Place& place) {
        if (!client.waits()) enter_line(client);
        client.waiting_.push_back(place);
    }
    void leave(Client& client, Place& place) {
        place.unlink();
        if (!client.waiting_.empty()) return;
        leave_line(client);
        forget_if_idle(client);
    }
    // Removes and returns a waiting fop whose client may hold another buffer; the caller must
    // take(). Null: there is none.
    Place* next(std::uint64_t total) {
        Client* chosen = nullptr;
        turns_.find([this, total, &chosen](Principal& principal) {
            chosen = first_with_share(principal, total);
            return chosen != nullptr;
        });
        return chosen == nullptr ? nullptr : pop(*chosen);
    }
    // Removes and returns a waiting fop, whether its client may hold another buffer or not. Null:
    // none waits.
    Place* pop_any() {
        if (turns_.empty()) return nullptr;
        Principal& next = turns_.front();
        Line& line = next.holders.empty() ? next.empty_handed : next.holders;
        return pop(*line.begin()->second);
    }
    bool anybody_waits() const { return waiting_count_ > 0; }
    // Whether other clients wait for buffers.
    bool others_wait(const Client& client) const {
        return waiting_count_ > (client.waits() ? 1U : 0U);
    }
    // How many clients next() has looked at since the start. It is the cost of a turn, which no
    // fop shows.
    std::uint64_t looked_at_count() const { return looked_at_count_; }

private:
    Client* first_with_share(const Principal& principal, std::uint64_t total) {
        Client* first = nullptr;
        const auto looks = [this, total](const Client& client) {
            ++looked_at_count_;
            return has_share(client, total);
        };
        if (!principal.empty_handed.empty()) {
            Client* const next = principal.empty_handed.begin()->second;
            if (looks(*next)) first = next;
        }
        for (const auto& [turn, holder] : principal.holders) {
            if (first != nullptr && first->turn_ < turn) break;
            if (looks(*holder)) return holder;
        }
        return first;
    }
    bool has_share(const Client& client, std::uint64_t total) const {
        if (held_ >= total) return false;
        if (is_limited(client, total)) return has_room(client, total);
        return held_ < total - kept_back(total) && client.held_ < 3 * (total - held_);
    }
    // The buffers that clients leave free as long as they are not known to be slow: the server may
    // learn too late that they are.
    static std::uint64_t kept_back(std::uint64_t total) { return total > 1 ? (total + 7) / 8 : 0; }
    bool has_room(const Client& client, std::uint64_t total) const {
        const Principal& principal = client.principal_->second;
        if (principal.held == 0) return true;
        const std::uint64_t free = total - held_;
        // A single principal may hold three quarters of all buffers, otherwise as many as are left
        // free; half of the rest is for its clients that are not slow.
        const bool is_alone = principal.held == held_ && principals_.size() == 1;
        const std::uint64_t times = is_alone ? 3 : 1;
        if (principal.held >= times * free) {
            const bool is_quick = !client.is_slow() && client.held_ == 0;
            return is_quick && principal.held < (2 * times + 1) * free;
        }
        const std::uint64_t left = (times * free - principal.held) / (times + 1);
        return client.held_ == 0 || 2 * client.held_ < left;
    }
    Place* pop(Client& client) {
        Place* const place = client.waiting_.pop_front();
        leave_line(client);
        if (!client.waiting_.empty()) enter_line(client);
        Principal& principal = client.principal_->second;
        if (principal.linked()) {
            principal.unlink();
            turns_.push_back(principal);
        }
        return place;
    }
    void enter_line(Client& client) {
        client.turn_ = ++last_turn_;
        client.line().emplace(client.turn_, &client);
        ++waiting_count_;
        Principal& principal = client.principal_->second;
        if (!principal.linked()) turns_.push_back(principal);
    }
    void leave_line(Client& client) {
        client.line().erase(client.turn_);
        client.turn_ = 0;
        --waiting_count_;
        Principal& principal = client.principal_->second;
        if (!principal.waits()) principal.unlink();
    }
    // A client that waits keeps its turn.
    void set_held(Client& client, std::uint64_t held) {
        Line::node_type place = client.line().extract(client.turn_);
        client.held_ = held;
        if (!place.empty()) client.line().insert(std::move(place));
    }
    void forget_if_idle(Client& client) {
        if (client.held_ > 0 || client.waits()) return;
        const auto principal = client.principal_;
        clients_.erase({principal->first, *client.id_});
        if (--principal->second.clients == 0) principals_.erase(principal);
    }

    std::map<std::string, Principal, std::less<>> principals_;
    std::map<std::pair<std::string_view, ClientId>, Client> clients_;
    core::IntrusiveList<Principal> turns_;  // Those whose clients wait.
    std::uint64_t last_turn_ = 0;
    std::size_t waiting_count_ = 0;  // The clients that wait.
    std::uint64_t looked_at_count_ = 0;
    std::uint64_t held_ = 0;
    std::uint64_t slow_held_ = 0;  // The part of held_ that slow clients hold.
};

}  // namespace fopd::reqh

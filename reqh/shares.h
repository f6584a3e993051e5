#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "core/ensure.h"
#include "core/intrusive_list.h"

namespace fopd::reqh {

// Which clients may hold how many of the pieces that the fops of a locality share, and which fops
// wait until their client may hold one more.
//
// A client is slow while a fop of its waits for its bytes longer than the network takes: its pieces
// may come back late. The share of a slow client depends on what is free: a client may hold as many
// as make it a half of what its principal has left, and all principals together always leave some.
// So there is room for the next client, however many hold their shares. A client that is not slow
// may have three times as many as are free, until slow clients hold half of all pieces: then it has
// a share, too, and one piece of what its principal's slow clients must leave to the others.
// Clients that are not slow leave an eighth to fops that wait for no client, which take pieces
// without asking for a share: however many clients stop at the same moment, these go on.
//
// Pure. Fops of one client have their turn in the order of arrival, and clients take turns.
class Shares {
public:
    // One that waits; in the list of its client.
    class Place : public core::ListNode {};

private:
    struct Principal {
        std::uint64_t held = 0;
        std::uint64_t clients = 0;
    };
    class TurnPlace : public core::ListNode {};

public:
    using ClientId = std::array<std::byte, 16>;

    // A client of a principal. Kept as long as it holds something or waits.
    class Client : TurnPlace {
    public:
        std::uint64_t held() const { return held_; }
        bool is_slow() const { return slow_count_ > 0; }
        // Whether a fop of its has itself waited too long; others that wait behind it only make the
        // client slow, so that it is slow no longer than such a fop waits.
        bool is_late() const { return late_count_ > 0; }
        void began_late() { ++late_count_; }
        void ended_late() {
            ENSURE(late_count_ > 0);
            --late_count_;
        }
        bool waits() const { return TurnPlace::linked(); }

    private:
        friend Shares;
        std::uint64_t held_ = 0;
        std::uint64_t late_count_ = 0;
        std::uint64_t slow_count_ = 0;  // Of its fops, those that wait for it.
        core::IntrusiveList<Place> waiting_;
        std::map<std::string, Principal, std::less<>>::iterator principal_;
        const ClientId* id_ = nullptr;
    };

    Shares() = default;
    Shares(const Shares&) = delete;
    Shares& operator=(const Shares&) = delete;

    // The client is the caller's until give_back() or leave() for it.
    Client& client_of(std::string_view principal, const ClientId& id) {
        auto of = principals_.find(principal);
        if (of == principals_.end()) of = principals_.emplace(principal, Principal()).first;
        const auto [entry, is_new] = clients_.try_emplace({of->first, id});
        Client& client = entry->second;
        if (is_new) {
            client.principal_ = of;
            client.id_ = &entry->first.second;
            ++of->second.clients;
        }
        return client;
    }

    // Whether one more is its share, of `total` there are. Who waits is not overtaken by the same.
    bool may_take(const Client& client, std::uint64_t total) const {
        return !client.waits() && has_share(client, total);
    }
    void take(Client& client) {
        ++client.held_;
        ++client.principal_->second.held;
        ++held_;
        if (client.is_slow()) ++slow_held_;
    }
    void give_back(Client& client) {
        ENSURE(client.held_ > 0);
        --client.held_;
        --client.principal_->second.held;
        --held_;
        if (client.is_slow()) --slow_held_;
        forget_if_idle(client);
    }

    // Whether it has a share now, which its other fops must not make others wait for.
    bool is_limited(const Client& client, std::uint64_t total) const {
        return client.is_slow() || 2 * slow_held_ >= total;
    }
    // One more of its fops waits for the client's bytes, or one less. The fop holds a piece.
    void begin_slow(Client& client) {
        if (client.slow_count_++ == 0) slow_held_ += client.held_;
    }
    void end_slow(Client& client) {
        ENSURE(client.slow_count_ > 0);
        if (--client.slow_count_ == 0) slow_held_ -= client.held_;
    }

    // It waits until next() returns it, or it leaves.
    void wait(Client& client, Place& place) {
        if (!client.waits()) turns_.push_back(client);
        client.waiting_.push_back(place);
    }
    void leave(Client& client, Place& place) {
        place.unlink();
        if (!client.waiting_.empty()) return;
        static_cast<TurnPlace&>(client).unlink();
        forget_if_idle(client);
    }
    // One that waits and has its share now; it has left the list, and is to take(). Null: none.
    Place* next(std::uint64_t total) {
        Client* chosen = nullptr;
        turns_.for_each([&](TurnPlace& place) {
            auto& client = static_cast<Client&>(place);
            if (chosen == nullptr && has_share(client, total)) chosen = &client;
        });
        return chosen == nullptr ? nullptr : pop(*chosen);
    }
    // Like pop(), for the next client in any case.
    Place* pop_any() {
        return turns_.empty() ? nullptr : pop(static_cast<Client&>(turns_.front()));
    }
    bool anybody_waits() const { return !turns_.empty(); }
    // Whether somebody would have what this client holds.
    bool others_wait(const Client& client) const {
        bool others = false;
        turns_.for_each(
            [&](TurnPlace& place) { others |= &static_cast<Client&>(place) != &client; });
        return others;
    }

private:
    bool has_share(const Client& client, std::uint64_t total) const {
        if (held_ >= total) return false;
        if (is_limited(client, total)) return has_room(client, total);
        return held_ < total - kept_back(total) && client.held_ < 3 * (total - held_);
    }
    // By clients that are not slow: it may show too late that they are.
    static std::uint64_t kept_back(std::uint64_t total) { return total > 1 ? (total + 7) / 8 : 0; }
    bool has_room(const Client& client, std::uint64_t total) const {
        const Principal& principal = client.principal_->second;
        if (principal.held == 0) return true;
        const std::uint64_t free = total - held_;
        // Alone it may have three quarters of all, else as much as would be left; half of the rest
        // is for its clients that are not slow.
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
        static_cast<TurnPlace&>(client).unlink();
        if (!client.waiting_.empty()) turns_.push_back(client);
        return place;
    }
    void forget_if_idle(Client& client) {
        if (client.held_ > 0 || client.waits()) return;
        const auto principal = client.principal_;
        clients_.erase({principal->first, *client.id_});
        if (--principal->second.clients == 0) principals_.erase(principal);
    }

    std::map<std::string, Principal, std::less<>> principals_;
    std::map<std::pair<std::string_view, ClientId>, Client> clients_;
    mutable core::IntrusiveList<TurnPlace> turns_;  // Clients that wait.
    std::uint64_t held_ = 0;
    std::uint64_t slow_held_ = 0;  // Of them, by clients that are slow.
};

}  // namespace fopd::reqh

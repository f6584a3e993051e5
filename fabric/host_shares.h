#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <vector>

#include "core/ensure.h"

namespace fopd::fabric {

// Divides a limited number of places for connections among hosts, or principals, so that one host
// cannot take all of them. A host may have as many places as are free: the first host gets at most
// half of all places, the next host at most half of the rest. Key identifies a host. Data is the
// state that the user keeps for a host.
template <typename Key, typename Data>
class HostShares {
public:
    // A host that has places. Exists until it has given all of them back.
    class Host : public Data {
    public:
        std::size_t count() const { return count_; }

    private:
        friend HostShares;
        typename std::map<Key, Host, std::less<>>::iterator self_;
        std::size_t count_ = 0;
    };

    explicit HostShares(std::size_t count_max)
        : count_max_(count_max), hosts_with_(count_max + 1) {}
    HostShares(const HostShares&) = delete;
    HostShares& operator=(const HostShares&) = delete;

    // Null if the host has no place.
    template <typename Name>
    Host* find(const Name& key) {
        const auto known = hosts_.find(key);
        return known == hosts_.end() ? nullptr : &known->second;
    }
    // Whether the host may have one place more. `host` is null for a host that has none.
    bool may_take(const Host* host) const {
        return (host == nullptr ? 0 : host->count_) < count_max_ - taken_;
    }
    // Takes a place for a host, also if the host has its share already: the user may free another
    // of the host's places first. REQUIRES: a place is free.
    Host& take(const Key& key) {
        ENSURE(taken_ < count_max_);
        const auto [at, is_new] = hosts_.try_emplace(key);
        Host& host = at->second;
        host.self_ = at;
        if (!is_new) --hosts_with_[host.count_];
        ++hosts_with_[++host.count_];
        if (host.count_ > most_) most_ = host.count_;
        ++taken_;
        return host;
    }
    void give_back(Host& host) {
        const std::size_t before = host.count_--;
        --taken_;
        // This host has the next lower number now.
        if (--hosts_with_[before] == 0 && before == most_) --most_;
        if (host.count_ > 0) {
            ++hosts_with_[host.count_];
        } else {
            hosts_.erase(host.self_);
        }
    }

    template <typename Visit>
    void for_each(Visit visit) {
        for (auto& each : hosts_) visit(each.second);
    }
    // Whether no host has more places.
    bool has_most(const Host& host) const { return host.count_ == most_; }
    std::size_t taken() const { return taken_; }

private:
    const std::size_t count_max_;
    std::map<Key, Host, std::less<>> hosts_;
    std::vector<std::size_t> hosts_with_;  // hosts_with_[n]: how many hosts have n places.
    std::size_t most_ = 0;                 // The largest number of places that a host has.
    std::size_t taken_ = 0;
};

}  // namespace fopd::fabric

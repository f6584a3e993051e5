#include "fabric/tcp/newcomers.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <netinet/in.h>

#include "core/ensure.h"

namespace fopd::fabric {

namespace {

core::IpAddress counted_host(const SocketAddress& address) {
    core::IpAddress host{};
    if (address.storage.ss_family == AF_INET) {
        const auto& four = reinterpret_cast<const sockaddr_in&>(address.storage);
        host[10] = host[11] = std::byte{0xff};
        std::memcpy(&host[12], &four.sin_addr, sizeof four.sin_addr);
    } else if (address.storage.ss_family == AF_INET6) {
        const auto& six = reinterpret_cast<const sockaddr_in6&>(address.storage);
        std::memcpy(host.data(), &six.sin6_addr, sizeof six.sin6_addr);
    }
    return core::counted_as(host);
}

}  // namespace

Newcomer::Newcomer(core::OwnedFd socket, const SocketAddress& name)
    : fd(std::move(socket)), peer(name), host(counted_host(name)) {}

void Newcomers::add(Newcomer& newcomer) {
    const auto known = hosts_.find(newcomer.host);
    const std::size_t left = count_max_ - count_;
    if (known != hosts_.end() && known->second.count >= left) {
        end_oldest(known->second);
    } else if (left == 0) {
        const auto gives_way_later = [](auto& one, auto& other) {
            Host& a = one.second;
            Host& b = other.second;
            if (a.count != b.count) return a.count < b.count;
            return a.newcomers.front().order > b.newcomers.front().order;
        };
        end_oldest(std::ranges::max_element(hosts_, gives_way_later)->second);
    }
    newcomer.order = next_order_++;
    Host& host = hosts_[newcomer.host];
    host.newcomers.push_back(newcomer);
    ++host.count;
    ++count_;
}

void Newcomers::remove(Newcomer& newcomer) {
    if (!newcomer.linked()) return;
    newcomer.unlink();
    --count_;
    const auto host = hosts_.find(newcomer.host);
    ENSURE(host != hosts_.end());
    if (--host->second.count == 0) hosts_.erase(host);
}

void Newcomers::end_oldest(Host& host) {
    Newcomer& oldest = host.newcomers.front();
    remove(oldest);
    oldest.leave.cancel();
}

void Newcomers::cancel_all() {
    for (auto& [_, host] : hosts_) {
        host.newcomers.for_each([](Newcomer& each) { each.leave.cancel(); });
    }
}

}  // namespace fopd::fabric

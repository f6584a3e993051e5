#include "fabric/tcp/newcomers.h"

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

Newcomer::Newcomer(OwnedSocket owned, const SocketAddress& name)
    : socket(std::move(owned)), peer(name), host(counted_host(name)) {}

void Newcomers::add(Newcomer& newcomer) {
    Shares::Host* const known = shares_.find(newcomer.host);
    // A host has its share, or it is new and all places are taken.
    if (!shares_.may_take(known)) end_oldest(known != nullptr ? *known : host_with_most());
    newcomer.order = next_order_++;
    shares_.take(newcomer.host).newcomers.push_back(newcomer);
}

void Newcomers::remove(Newcomer& newcomer) {
    if (!newcomer.linked()) return;
    newcomer.unlink();
    Shares::Host* const host = shares_.find(newcomer.host);
    ENSURE(host != nullptr);
    shares_.give_back(*host);
}

void Newcomers::end_oldest(Shares::Host& host) {
    Newcomer& oldest = host.newcomers.front();
    remove(oldest);
    oldest.leave.cancel();
}

// Returns the host with the most newcomers; among equals, the host with the oldest newcomer.
// O(hosts).
Newcomers::Shares::Host& Newcomers::host_with_most() {
    Shares::Host* found = nullptr;
    shares_.for_each([&](Shares::Host& each) {
        if (!shares_.has_most(each)) return;
        if (found == nullptr || each.newcomers.front().order < found->newcomers.front().order) {
            found = &each;
        }
    });
    ENSURE(found != nullptr);
    return *found;
}

void Newcomers::cancel_all() {
    shares_.for_each([](Shares::Host& host) {
        host.newcomers.for_each([](Newcomer& each) { each.leave.cancel(); });
    });
}

}  // namespace fopd::fabric

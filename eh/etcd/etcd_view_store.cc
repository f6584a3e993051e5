#include "eh/etcd/etcd_view_store.h"

#include <utility>

#include "core/ensure.h"

namespace fopd::eh {

EtcdViewStore::EtcdViewStore(EtcdStoreOptions options, etcd::Http& http, const core::Clock& clock,
                             core::EventSink& events, core::Reactor& reactor,
                             core::Offload& offload)
    : http_(http),
      reactor_(reactor),
      offload_(offload),
      client_(std::move(options), http, clock, events) {}

void EtcdViewStore::read(ViewStoreUser& user) {
    ENSURE(!std::exchange(is_asked_, true));
    reactor_.spawn(calls_, run_read(&user));
}

void EtcdViewStore::swap(ViewNumber expected, ViewHandle next, ViewStoreUser& user) {
    ENSURE(!std::exchange(is_asked_, true));
    ENSURE(next->number() == expected + 1);
    reactor_.spawn(calls_, run_swap(expected, std::move(next), &user));
}

Task<bool> EtcdViewStore::stop(Instant deadline) {
    http_.cancel();
    const auto closed = co_await calls_.close_by(reactor_, deadline);
    co_return closed.has_value();
}

Task<void> EtcdViewStore::run_read(ViewStoreUser* user) {
    auto call = [this] { return client_.read(); };
    const auto read = co_await offload_.run(reactor_, call);
    is_asked_ = false;
    user->on_view_read(read ? *read : Result<ViewHandle>(std::unexpected(read.error())));
}

Task<void> EtcdViewStore::run_swap(ViewNumber expected, ViewHandle next, ViewStoreUser* user) {
    auto call = [this, expected, &next] { return client_.swap(expected, next); };
    const auto swapped = co_await offload_.run(reactor_, call);
    is_asked_ = false;
    // Without a thread for it the request was not sent.
    user->on_view_swapped(swapped ? *swapped : Swapped::kNo);
}

}  // namespace fopd::eh

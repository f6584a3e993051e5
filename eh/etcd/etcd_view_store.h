#pragma once

#include "core/gate.h"
#include "core/offload.h"
#include "core/reactor.h"
#include "eh/etcd/client.h"
#include "eh/view_store.h"

namespace fopd::eh {

// Keeps the newest view in etcd, so that any member can become root. Lives on one reactor; the
// blocking calls run on the offload.
class EtcdViewStore final : public ViewStore {
public:
    // REQUIRES: problem_of(options) is empty. All references outlive the store.
    EtcdViewStore(EtcdStoreOptions options, etcd::Http& http, const core::Clock& clock,
                  core::EventSink& events, core::Reactor& reactor, core::Offload& offload);

    bool is_shared() const override { return true; }
    void read(ViewStoreUser& user) override;
    void swap(ViewNumber expected, ViewHandle next, ViewStoreUser& user) override;

    // Cancels the call in flight, and waits until its user has been answered; false if that has not
    // happened by the deadline. Awaited before the store is destroyed. REQUIRES: no call is made
    // afterwards.
    Task<bool> stop(Instant deadline);

private:
    Task<void> run_read(ViewStoreUser* user);
    Task<void> run_swap(ViewNumber expected, ViewHandle next, ViewStoreUser* user);

    etcd::Http& http_;
    core::Reactor& reactor_;
    core::Offload& offload_;
    etcd::EtcdClient client_;  // Used by the offloaded call only.
    core::Gate calls_;
    bool is_asked_ = false;  // A user waits for an answer.
};

}  // namespace fopd::eh

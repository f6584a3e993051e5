#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/clock.h"
#include "core/events.h"
#include "core/offload.h"
#include "core/reactor.h"
#include "daemon/epoch_stores.h"
#include "daemon/start_problem.h"
#include "eh/etcd/etcd_view_store.h"
#include "eh/etcd/http.h"
#include "eh/posix_small_file.h"
#include "eh/settings.h"
#include "eh/static_view_store.h"

namespace fopd::daemon {

// What a store in etcd needs besides its settings.
struct EtcdAccess {
    std::unique_ptr<eh::etcd::Http> http{};
    std::string password{};
};

// Reads the password for etcd, and looks whether the files for TLS can be read. Asks etcd nothing.
// Empty: the view is not kept in etcd.
Started<std::optional<EtcdAccess>> read_etcd_access(const eh::EpochSettings::Store& settings);

// The incarnation, the numbers of epochs without peers and, at the root, the view in files of the
// data directory (docs/formats/data_dir.md). The view may be in etcd instead.
class LocalEpochStores final : public EpochStores {
public:
    // All outlive the stores.
    struct World {
        core::Reactor& reactor;
        core::Offload& offload;
        const core::Clock& clock;
        core::EventSink& events;
    };
    // The threads that the offload should have: one for the files, and one for etcd.
    static unsigned thread_count(const std::optional<EtcdAccess>& etcd) { return etcd ? 2 : 1; }

    // REQUIRES: `etcd` is what read_etcd_access() returned for these settings.
    LocalEpochStores(const World& world, const eh::EpochSettings::Store& settings,
                     std::optional<EtcdAccess> etcd, const std::string& data_dir);

    eh::SmallFile& incarnation() override { return incarnation_; }
    eh::ViewStore& views() override;
    eh::SmallFile& numbers() override { return numbers_; }
    Task<bool> close(Instant deadline) override;

private:
    eh::PosixSmallFile incarnation_;
    eh::PosixSmallFile view_file_;
    eh::StaticViewStore file_views_;
    eh::PosixSmallFile numbers_;
    std::unique_ptr<eh::etcd::Http> http_;
    std::unique_ptr<eh::EtcdViewStore> etcd_views_;  // Null: the view is in the file.
};

}  // namespace fopd::daemon

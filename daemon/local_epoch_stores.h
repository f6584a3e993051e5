#pragma once

#include <memory>
#include <string>

#include "core/offload.h"
#include "core/reactor.h"
#include "daemon/epoch_stores.h"
#include "eh/posix_small_file.h"
#include "eh/static_view_store.h"

namespace fopd::daemon {

// The incarnation and, at the root, the view in files of the data directory
// (docs/formats/data_dir.md).
class LocalEpochStores final : public EpochStores {
public:
    // Both outlive it.
    LocalEpochStores(core::Reactor& reactor, core::Offload& offload, const std::string& data_dir);

    eh::SmallFile& incarnation() override { return incarnation_; }
    eh::ViewStore& views() override { return views_; }
    Task<void> close() override;

private:
    eh::PosixSmallFile incarnation_;
    eh::PosixSmallFile view_file_;
    eh::StaticViewStore views_;
};

}  // namespace fopd::daemon

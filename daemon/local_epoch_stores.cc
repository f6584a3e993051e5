#include "daemon/local_epoch_stores.h"

namespace fopd::daemon {

LocalEpochStores::LocalEpochStores(core::Reactor& reactor, core::Offload& offload,
                                   const std::string& data_dir)
    : incarnation_(reactor, offload, data_dir + "/epochs.incarnation"),
      view_file_(reactor, offload, data_dir + "/epochs.view"),
      views_(view_file_) {}

Task<void> LocalEpochStores::close() {
    co_await incarnation_.close();
    co_await view_file_.close();
}

}  // namespace fopd::daemon

#pragma once

#include <string>

#include "core/events.h"
#include "core/offload.h"
#include "daemon/disk_bay.h"

namespace fopd::daemon {

// This machine's disks, and below the data directory what is kept beside them: index/ID/ has the
// index of the disk with that id, the file slots the table of slots. Safe from all threads of
// localities.
class LocalDiskBay final : public DiskBay {
public:
    // All outlive it. The directory is there, and this process's alone.
    LocalDiskBay(core::Offload& offload, core::EventSink& events, std::string data_dir);

    Task<Result<std::unique_ptr<BayDisk>>> open(core::Reactor* reactor,
                                                devices::DeviceSettings settings) override;
    Task<Result<std::unique_ptr<store::Index>>> open_index(core::Reactor* reactor,
                                                           devices::DiskId disk) override;
    Task<Result<std::unique_ptr<store::Index>>> make_index(core::Reactor* reactor,
                                                           devices::DiskId disk) override;
    Result<std::string> read_slots() override;
    Result<void> write_slots(const std::string& text) override;

private:
    std::string index_dir(const devices::DiskId& disk) const;

    core::Offload& offload_;
    core::EventSink& events_;
    const std::string data_dir_;
};

}  // namespace fopd::daemon

#pragma once

#include <cstddef>
#include <string>

#include "core/events.h"
#include "core/offload.h"
#include "daemon/disk_bay.h"

namespace fopd::daemon {

// This machine's disks, and below the data directory what is kept beside them: index/ID/ has the
// index of the disk with that id, names/N that of a part of the names, the file slots the table of
// slots. Safe from all threads of localities.
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
    Task<Result<std::unique_ptr<store::Index>>> open_names(core::Reactor* reactor,
                                                           Owner owner) override;
    Task<Result<std::unique_ptr<store::Index>>> make_names(core::Reactor* reactor,
                                                           Owner owner) override;
    // Disks have threads of their own, up to a few: one that does not answer holds up nobody else's
    // calls. And one is for a backup, which takes its time.
    static unsigned threads_for(std::size_t disk_count);
    Result<void> make_room(std::size_t disk_count) override;
    Result<std::string> read_slots() override;
    Result<void> write_slots(const std::string& text) override;

private:
    // Where an index is, in a directory of its own, and whose it says it is.
    struct IndexFile {
        core::Reactor& reactor;
        std::string parent;
        std::string name;
        devices::DiskId owner{};

        std::string directory() const { return parent + '/' + name; }
        std::string path() const { return directory() + "/index.mdb"; }
    };
    IndexFile index_of(core::Reactor& reactor, const devices::DiskId& disk) const;
    IndexFile names_of(core::Reactor& reactor, const Owner& owner) const;
    Task<Result<std::unique_ptr<store::Index>>> open_file(IndexFile file);
    Task<Result<std::unique_ptr<store::Index>>> make_file(IndexFile file);

    core::Offload& offload_;
    core::EventSink& events_;
    const std::string data_dir_;
};

}  // namespace fopd::daemon

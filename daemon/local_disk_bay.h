#pragma once

#include <cstddef>
#include <string>

#include "core/events.h"
#include "core/offload.h"
#include "daemon/disk_bay.h"

namespace fopd::daemon {

// This machine's disks, and their files below the data directory: index/ID/ has the index of the
// disk with that id, names/N the index of part N of the names, and the file `slots` the table of
// slots. May be called from every locality's thread.
class LocalDiskBay final : public DiskBay {
public:
    // `offload` and `events` outlive it. The directory exists and is used by this process only.
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
    // The number of threads: a few for the disks, so that one disk that does not answer does not
    // delay calls for others, and one for a backup, which takes long.
    static unsigned threads_for(std::size_t disk_count);
    Result<void> make_room(std::size_t disk_count) override;
    Result<std::string> read_slots() override;
    Result<void> write_slots(const std::string& text) override;

private:
    // The location of an index, in a directory of its own, and the owner id stored in it.
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

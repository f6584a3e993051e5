#include "daemon/local_disk_bay.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <sys/stat.h>

#include "daemon/durable_file.h"
#include "devices/disk.h"
#include "store/lmdb_index.h"

namespace fopd::daemon {

namespace {

constexpr std::size_t kDiskThreadsMax = 16;

class LocalDisk final : public BayDisk {
public:
    LocalDisk(core::Reactor& reactor, core::Offload& offload, core::EventSink& events,
              devices::DiskOptions options)
        : disk_(reactor, offload, events, std::move(options)) {}

    Task<Result<void>> open() { return disk_.open(); }
    devices::Device& device() override { return disk_; }
    Task<void> close() override { return disk_.close(); }

private:
    devices::Disk disk_;
};

Result<void> make_directory(const std::string& path) {
    if (::mkdir(path.c_str(), kDirectoryMode) == 0 || errno == EEXIST) return {};
    return std::unexpected(os_error(errno, "make the directory of the index"));
}

Result<std::unique_ptr<store::Index>> as_index(Result<std::unique_ptr<store::LmdbIndex>> index) {
    if (!index) return std::unexpected(index.error());
    return *std::move(index);
}

}  // namespace

LocalDiskBay::LocalDiskBay(core::Offload& offload, core::EventSink& events, std::string data_dir)
    : offload_(offload), events_(events), data_dir_(std::move(data_dir)) {}

Task<Result<std::unique_ptr<BayDisk>>> LocalDiskBay::open(core::Reactor* reactor,
                                                          devices::DeviceSettings settings) {
    devices::DiskOptions options{.name = settings.name,
                                 .path = settings.path,
                                 .create_bytes = settings.size_bytes.value_or(0),
                                 .thin = settings.thin};
    auto disk = std::make_unique<LocalDisk>(*reactor, offload_, events_, std::move(options));
    const auto opened = co_await disk->open();
    if (!opened) co_return std::unexpected(opened.error());
    co_return std::move(disk);
}

Task<Result<std::unique_ptr<store::Index>>> LocalDiskBay::open_file(IndexFile file) {
    const store::LmdbIndex::World world{.reactor = file.reactor, .offload = offload_};
    store::LmdbIndex::Options options{.path = file.path(), .disk_id = file.owner};
    auto index = co_await store::LmdbIndex::open(world, std::move(options));
    co_return as_index(std::move(index));
}

Task<Result<std::unique_ptr<store::Index>>> LocalDiskBay::make_file(IndexFile file) {
    auto make = [&file] {
        auto made = make_directory(file.parent);
        if (made) made = make_directory(file.directory());
        return made;
    };
    const auto made = co_await offload_.run(file.reactor, make);
    if (!made) co_return std::unexpected(made.error());
    if (!*made) co_return std::unexpected(made->error());
    const store::LmdbIndex::World world{.reactor = file.reactor, .offload = offload_};
    store::LmdbIndex::Options options{.path = file.path(), .disk_id = file.owner};
    auto index = co_await store::LmdbIndex::create(world, std::move(options));
    co_return as_index(std::move(index));
}

LocalDiskBay::IndexFile LocalDiskBay::index_of(core::Reactor& reactor,
                                               const devices::DiskId& disk) const {
    return {.reactor = reactor,
            .parent = data_dir_ + "/index",
            .name = devices::format_id(disk),
            .owner = disk};
}

LocalDiskBay::IndexFile LocalDiskBay::names_of(core::Reactor& reactor, const Owner& owner) const {
    return {.reactor = reactor,
            .parent = data_dir_ + "/names",
            .name = std::to_string(owner.part),
            .owner = owner.node};
}

Task<Result<std::unique_ptr<store::Index>>> LocalDiskBay::open_index(core::Reactor* reactor,
                                                                     devices::DiskId disk) {
    return open_file(index_of(*reactor, disk));
}

Task<Result<std::unique_ptr<store::Index>>> LocalDiskBay::make_index(core::Reactor* reactor,
                                                                     devices::DiskId disk) {
    return make_file(index_of(*reactor, disk));
}

Task<Result<std::unique_ptr<store::Index>>> LocalDiskBay::open_names(core::Reactor* reactor,
                                                                     Owner owner) {
    return open_file(names_of(*reactor, owner));
}

Task<Result<std::unique_ptr<store::Index>>> LocalDiskBay::make_names(core::Reactor* reactor,
                                                                     Owner owner) {
    return make_file(names_of(*reactor, owner));
}

unsigned LocalDiskBay::threads_for(std::size_t disk_count) {
    return static_cast<unsigned>(std::min(disk_count, kDiskThreadsMax)) + 1;
}

Result<void> LocalDiskBay::make_room(std::size_t disk_count) {
    return offload_.grow(threads_for(disk_count));
}

Result<std::string> LocalDiskBay::read_slots() {
    return read_small_file(data_dir_ + "/slots");
}

Result<void> LocalDiskBay::write_slots(const std::string& text) {
    return replace_file(data_dir_ + "/slots", text, kFileMode);
}

}  // namespace fopd::daemon

#include "daemon/local_disk_bay.h"

#include <array>
#include <cerrno>
#include <utility>

#include <sys/stat.h>

#include "daemon/durable_file.h"
#include "devices/disk.h"
#include "store/lmdb_index.h"

namespace fopd::daemon {

namespace {

constexpr mode_t kDirectoryMode = 0700;
constexpr mode_t kSlotsMode = 0644;
constexpr const char* kIndexDir = "/index";
constexpr const char* kIndexFile = "/index.mdb";

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
                                 .create_bytes = settings.size_bytes.value_or(0)};
    auto disk = std::make_unique<LocalDisk>(*reactor, offload_, events_, std::move(options));
    const auto opened = co_await disk->open();
    if (!opened) co_return std::unexpected(opened.error());
    co_return std::move(disk);
}

std::string LocalDiskBay::index_dir(const devices::DiskId& disk) const {
    return data_dir_ + kIndexDir + '/' + devices::format_id(disk);
}

Task<Result<std::unique_ptr<store::Index>>> LocalDiskBay::open_index(core::Reactor* reactor,
                                                                     devices::DiskId disk) {
    const store::LmdbIndex::World world{.reactor = *reactor, .offload = offload_};
    store::LmdbIndex::Options options{.path = index_dir(disk) + kIndexFile, .disk_id = disk};
    auto index = co_await store::LmdbIndex::open(world, std::move(options));
    co_return as_index(std::move(index));
}

Task<Result<std::unique_ptr<store::Index>>> LocalDiskBay::make_index(core::Reactor* reactor,
                                                                     devices::DiskId disk) {
    const std::array directories{data_dir_ + kIndexDir, index_dir(disk)};
    auto make = [&directories] {
        Result<void> made;
        for (const std::string& each : directories) {
            if (made) made = make_directory(each);
        }
        return made;
    };
    const auto made = co_await offload_.run(*reactor, make);
    if (!made) co_return std::unexpected(made.error());
    if (!*made) co_return std::unexpected(made->error());
    const store::LmdbIndex::World world{.reactor = *reactor, .offload = offload_};
    store::LmdbIndex::Options options{.path = directories.back() + kIndexFile, .disk_id = disk};
    auto index = co_await store::LmdbIndex::create(world, std::move(options));
    co_return as_index(std::move(index));
}

Result<std::string> LocalDiskBay::read_slots() {
    return read_small_file(data_dir_ + "/slots");
}

Result<void> LocalDiskBay::write_slots(const std::string& text) {
    return replace_file(data_dir_ + "/slots", text, kSlotsMode);
}

}  // namespace fopd::daemon

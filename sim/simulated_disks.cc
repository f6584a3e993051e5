#include "sim/simulated_disks.h"

#include <array>
#include <utility>

#include "core/ensure.h"

namespace fopd::sim {

class SimulatedDisks::OpenDisk final : public daemon::BayDisk {
public:
    OpenDisk(SimulatedDisks& disks, std::string path, core::Reactor& reactor,
             devices::DiskImage& image, devices::MemoryDiskOptions options)
        : disks_(disks), path_(std::move(path)), disk_(reactor, image, std::move(options)) {
        disks_.open_[path_] = &disk_;
    }
    ~OpenDisk() override { disks_.open_.erase(path_); }

    devices::Device& device() override { return disk_; }
    Task<void> close() override { co_return; }

private:
    SimulatedDisks& disks_;
    const std::string path_;
    devices::MemoryDisk disk_;
};

SimulatedDisks::SimulatedDisks(std::uint64_t seed, std::vector<SimulatedDiskOptions> disks)
    : random_(seed), disks_(std::move(disks)) {
    for (std::byte& each : node_id_) each = static_cast<std::byte>(random_.below(256));
}

std::string SimulatedDisks::configuration(std::string_view more_pools) const {
    if (disks_.empty()) return {};
    std::string pools;
    std::string devices;
    for (const SimulatedDiskOptions& each : disks_) {
        const std::string pool = "  - { name: " + each.pool + " }\n";
        if (pools.find(pool) == std::string::npos) pools += pool;
        devices += "  - { name: " + each.name + ", path: " + path_of(each.name) +
                   ", size: " + std::to_string(each.size_bytes >> 20) + "MiB, pool: " + each.pool +
                   " }\n";
    }
    return "pools:\n" + pools.append(more_pools) + "devices:\n" + devices;
}

void SimulatedDisks::begin_life() {
    for (auto& each : images_) each.second.end_writes();
    power_ = std::make_unique<devices::Power>();
}

void SimulatedDisks::crash() {
    for (auto& [path, image] : images_) image.crash(random_);
}

void SimulatedDisks::set_faults(const std::string& name, const devices::DiskFaults& faults) {
    open_.at(path_of(name))->faults() = faults;
}

void SimulatedDisks::unplug(const std::string& name) {
    images_.erase(path_of(name));
}

void SimulatedDisks::plug_in(const std::string& name, devices::DiskImage image) {
    images_.insert_or_assign(path_of(name), std::move(image));
}

void SimulatedDisks::take_away(const std::string& name) {
    const std::string path = path_of(name);
    const auto image = images_.find(path);
    ENSURE(image != images_.end() && !open_.contains(path));
    image->second.end_writes();
    devices::DiskImage other(image->second.size_bytes());
    const std::array<std::byte, devices::kBlockBytes> used{std::byte{1}};
    other.end_write(other.begin_write(0, used), 0, used.size());
    other.settle();
    away_.insert_or_assign(path, std::exchange(image->second, std::move(other)));
}

void SimulatedDisks::bring_back(const std::string& name) {
    auto away = away_.extract(path_of(name));
    ENSURE(!away.empty());
    images_.insert_or_assign(away.key(), std::move(away.mapped()));
}

Task<Result<std::unique_ptr<daemon::BayDisk>>> SimulatedDisks::open(
    core::Reactor* reactor, devices::DeviceSettings settings) {
    co_await reactor->yield();
    auto image = images_.find(settings.path);
    if (image == images_.end()) {
        if (!settings.size_bytes) {
            co_return std::unexpected(
                Error{.code = Errc::kNotFound, .context = "cannot open the disk"});
        }
        image = images_.try_emplace(settings.path, *settings.size_bytes).first;
    }
    if (open_.contains(settings.path)) {
        co_return std::unexpected(Error{.code = Errc::kBusy, .context = "cannot open the disk"});
    }
    devices::MemoryDiskOptions options{
        .name = settings.name, .seed = random_.next(), .power = power_.get()};
    co_return std::make_unique<OpenDisk>(*this, settings.path, *reactor, image->second,
                                         std::move(options));
}

Task<Result<std::unique_ptr<store::Index>>> SimulatedDisks::open_index(core::Reactor* reactor,
                                                                       devices::DiskId disk) {
    co_await reactor->yield();
    const auto image = indexes_.find(disk);
    if (image == indexes_.end()) {
        co_return std::unexpected(Error{.code = Errc::kNotFound, .context = "open the index"});
    }
    co_return index_on(*reactor, image->second);
}

Task<Result<std::unique_ptr<store::Index>>> SimulatedDisks::make_index(core::Reactor* reactor,
                                                                       devices::DiskId disk) {
    co_await reactor->yield();
    co_return index_on(*reactor, indexes_.insert_or_assign(disk, store::MapImage{}).first->second);
}

Task<Result<std::unique_ptr<store::Index>>> SimulatedDisks::open_names(core::Reactor* reactor,
                                                                       Owner owner) {
    co_await reactor->yield();
    const auto image = names_.find(owner.part);
    if (image == names_.end()) {
        co_return std::unexpected(Error{.code = Errc::kNotFound, .context = "open the names"});
    }
    co_return index_on(*reactor, image->second);
}

Task<Result<std::unique_ptr<store::Index>>> SimulatedDisks::make_names(core::Reactor* reactor,
                                                                       Owner owner) {
    co_await reactor->yield();
    co_return index_on(*reactor,
                       names_.insert_or_assign(owner.part, store::MapImage{}).first->second);
}

Result<std::unique_ptr<store::Index>> SimulatedDisks::index_on(core::Reactor& reactor,
                                                               store::MapImage& image) {
    return std::make_unique<store::MapIndex>(
        store::MapIndex::World{.reactor = reactor, .random = random_}, image);
}

Result<std::string> SimulatedDisks::read_slots() {
    if (slots_.empty()) {
        return std::unexpected(Error{.code = Errc::kNotFound, .context = "the file slots"});
    }
    return slots_;
}

Result<void> SimulatedDisks::write_slots(const std::string& text) {
    slots_ = text;
    if (!slots_doubted_) return {};
    return std::unexpected(Error{.code = Errc::kIo, .context = "the folder of the file slots"});
}

}  // namespace fopd::sim

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/random.h"
#include "daemon/disk_bay.h"
#include "devices/disk_image.h"
#include "devices/memory_disk.h"
#include "store/map_index.h"

namespace fopd::sim {

struct SimulatedDiskOptions {
    std::string name = "d0";
    std::string pool = "fast";
    std::uint64_t size_bytes = 32UL << 20;
};

// The persistent state of one simulated node: its disks, their indexes, its names and its table of
// slots. The state outlives each life of the node; a power loss drops what was not durable yet.
class SimulatedDisks final : public daemon::DiskBay {
public:
    SimulatedDisks(std::uint64_t seed, std::vector<SimulatedDiskOptions> disks);

    // The sections of the configuration that name the disks, with other pools beside theirs.
    std::string configuration(std::string_view more_pools = {}) const;
    const devices::NodeId& node_id() const { return node_id_; }

    // Switches the node's machine on. REQUIRES: the process of its previous life was destroyed.
    void begin_life();
    // The machine's power. Once it is cut, operations in flight never end, and later operations
    // never begin.
    devices::Power& power() { return *power_; }
    // Drops what was not durable at the power cut. REQUIRES: the machine's coroutines were
    // destroyed.
    void crash();

    // The path of the disk with this name.
    static std::string path_of(const std::string& name) { return "/sim/" + name; }
    devices::DiskImage& image(const std::string& name) { return images_.at(path_of(name)); }
    bool has_image(const std::string& name) const { return images_.contains(path_of(name)); }
    void unplug(const std::string& name);
    void plug_in(const std::string& name, devices::DiskImage image);
    // Replaces the disk by another one until bring_back(). REQUIRES: it is not open.
    void take_away(const std::string& name);
    void bring_back(const std::string& name);
    // set_faults(): from now on, until the disk is opened again. REQUIRES: is_open().
    bool is_open(const std::string& name) const { return open_.contains(path_of(name)); }
    void set_faults(const std::string& name, const devices::DiskFaults& faults);
    void lose_indexes() { indexes_.clear(); }
    void lose_slots() { slots_.clear(); }
    // While set, writing the table of slots takes effect, but reports a failure.
    void doubt_slots(bool doubted) { slots_doubted_ = doubted; }
    void lose_names() { names_.clear(); }
    // REQUIRES: the disk with this id has an index.
    store::MapImage& index(const devices::DiskId& disk) { return indexes_.at(disk); }

    Task<Result<std::unique_ptr<daemon::BayDisk>>> open(core::Reactor* reactor,
                                                        devices::DeviceSettings settings) override;
    Task<Result<std::unique_ptr<store::Index>>> open_index(core::Reactor* reactor,
                                                           devices::DiskId disk) override;
    Task<Result<std::unique_ptr<store::Index>>> make_index(core::Reactor* reactor,
                                                           devices::DiskId disk) override;
    Task<Result<std::unique_ptr<store::Index>>> open_names(core::Reactor* reactor,
                                                           Owner owner) override;
    Task<Result<std::unique_ptr<store::Index>>> make_names(core::Reactor* reactor,
                                                           Owner owner) override;
    Result<void> make_room(std::size_t /*disk_count*/) override { return {}; }
    Result<std::string> read_slots() override;
    Result<void> write_slots(const std::string& text) override;

private:
    class OpenDisk;

    Result<std::unique_ptr<store::Index>> index_on(core::Reactor& reactor, store::MapImage& image);

    core::Random random_;
    const std::vector<SimulatedDiskOptions> disks_;
    devices::NodeId node_id_{};
    std::unique_ptr<devices::Power> power_;
    std::map<std::string, devices::MemoryDisk*> open_;  // By path.
    std::map<std::string, devices::DiskImage> images_;  // By path.
    std::map<std::string, devices::DiskImage> away_;    // By path.
    std::map<devices::DiskId, store::MapImage> indexes_;
    std::map<std::uint32_t, store::MapImage> names_;  // By part.
    std::string slots_;
    bool slots_doubted_ = false;
};

}  // namespace fopd::sim

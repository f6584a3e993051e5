#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/offload.h"
#include "core/owned_fd.h"
#include "core/reactor.h"
#include "devices/tape/cartridge_text.h"
#include "devices/tape/changer.h"
#include "devices/tape/element_address.h"
#include "devices/tape/virtual_drive.h"

namespace fopd::devices {

struct VirtualLibraryOptions {
    std::string name = {};
    // A directory that exists. It is locked while the library is in use.
    std::string path = {};
    std::string technology = "lto9";  // Of the drives.
    std::uint32_t drive_count = 2;
    std::uint32_t storage_count = 32;
    std::uint32_t exchange_count = 2;
    TapeTiming timing = TapeTiming::kNone;
    // Of cartridges whose own text names none; 0: that of their technology.
    std::uint64_t capacity_bytes = 0;
    // For tests: the id of another boot is what the system's crash leaves. Empty: the system's.
    std::string boot_id = {};
};

// A tape library in a directory, for users without a tape library, and for tests. Cartridges are
// files; people put new ones into the directory, and take files away. Lives on its reactor.
//
// Where cartridges are is in a file that is replaced as a whole, so that it survives a kill of the
// process at any time. A cartridge without an element, and one whose element there is no more, gets
// the first free storage element, then the first free exchange element. For each cartridge in a
// drive a storage element stays free, so that the drive can give it back.
class VirtualLibrary final : public Changer {
public:
    // The reactor and the offload outlive it. The offload has a thread for each drive and one for
    // the changer, so that none waits for another. REQUIRES: at most kElementsMax drives and
    // exchange elements, at most kStorageMax storage elements, and a technology with a model.
    VirtualLibrary(core::Reactor& reactor, core::Offload& offload, VirtualLibraryOptions options);
    ~VirtualLibrary() override;

    // kBusy: another process uses the directory. Called once.
    Task<Result<void>> open();
    // Unloads all loaded cartridges. REQUIRES: no operation of a drive or the changer is in flight.
    // Returns the first failure of an unload. Nothing may be called afterwards.
    Task<Result<void>> close();

    std::string_view name() const override { return options_.name; }
    std::uint32_t drive_count() const { return options_.drive_count; }
    VirtualDrive& drive(std::uint32_t index) { return *drives_[index]; }

    Task<Result<std::vector<LibraryElement>>> inventory() override;
    Task<Result<void>> move(std::uint32_t from, std::uint32_t to) override;

    // How long the changer's moves took by the model.
    Duration clock() const { return clock_; }

private:
    struct Found;

    Result<core::OwnedFd> lock() const;
    Result<Found> look() const;
    bool has_element(std::uint32_t address) const;
    bool place_found(const Found& found);
    Task<Result<void>> keep_positions(CartridgePositions positions);
    Task<Result<void>> refresh();
    void fill_drive(std::uint32_t index);
    VirtualDrive* drive_at(std::uint32_t address);

    core::Reactor& reactor_;
    core::Offload& offload_;
    VirtualLibraryOptions options_;
    core::OwnedFd lock_;
    std::vector<std::unique_ptr<VirtualDrive>> drives_;
    CartridgePositions positions_;
    std::map<std::string, std::string> barcodes_;  // By name; of those whose text can be read.
    Duration clock_{0};
    bool in_flight_ = false;
};

}  // namespace fopd::devices

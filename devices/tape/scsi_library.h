#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/offload.h"
#include "core/reactor.h"
#include "devices/tape/changer.h"
#include "devices/tape/scsi_changer.h"
#include "devices/tape/scsi_drive.h"

namespace fopd::devices {

// The devices of a library.
struct ScsiLibraryPorts {
    std::unique_ptr<ScsiPort> changer;
    std::vector<std::unique_ptr<ScsiPort>> drives;
};

struct ScsiLibraryOptions {
    std::string name;
    // The technology to assume for drives whose product name does not tell it.
    std::string technology = "lto9";
};

// A library of SCSI devices: a media changer, and those of its tape drives that this node uses.
// Lives on its reactor.
//
// Which drive is in which element is known from the serial numbers that drives and changer tell. If
// the changer tells none, the drives are those in its first elements for drives, in their order.
class ScsiLibrary final : public Changer {
public:
    // The reactor and the offload outlive it. The offload has a thread for each drive and one for
    // the changer, so that none waits for another.
    ScsiLibrary(core::Reactor& reactor, core::Offload& offload, ScsiLibraryPorts ports,
                ScsiLibraryOptions options);

    // kUnsupported: a device is of another kind. kNotFound: a drive is not in this library. Called
    // once.
    Task<Result<void>> open();

    std::string_view name() const override { return options_.name; }
    std::uint32_t drive_count() const { return static_cast<std::uint32_t>(drives_.size()); }
    ScsiDrive& drive(std::uint32_t index) { return *drives_[index]; }

    Task<Result<std::vector<LibraryElement>>> inventory() override;
    // A cartridge that an earlier process has left in a drive is given back first.
    Task<Result<void>> move(std::uint32_t from, std::uint32_t to) override;

private:
    Task<Result<std::vector<ElementStatus>>> ask();
    Result<void> place_drives(const std::vector<ElementStatus>& elements);
    ScsiDrive* drive_at(std::uint32_t address);

    core::Reactor& reactor_;
    core::Offload& offload_;
    const std::unique_ptr<ScsiPort> port_;
    const ScsiLibraryOptions options_;
    ScsiChanger changer_;
    std::vector<std::unique_ptr<ScsiDrive>> drives_;
    std::vector<std::uint32_t> addresses_;  // Of the drives.
    bool in_flight_ = false;
};

}  // namespace fopd::devices

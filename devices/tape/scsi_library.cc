#include "devices/tape/scsi_library.h"

#include <algorithm>
#include <utility>

#include "devices/tape/in_flight.h"
#include "devices/tape/tape_error.h"

namespace fopd::devices {

ScsiLibrary::ScsiLibrary(core::Reactor& reactor, core::Offload& offload, ScsiLibraryPorts ports,
                         ScsiLibraryOptions options)
    : reactor_(reactor),
      offload_(offload),
      port_(std::move(ports.changer)),
      options_(std::move(options)),
      changer_(*port_) {
    for (std::unique_ptr<ScsiPort>& each : ports.drives) {
        const std::string name = options_.name + "-drive" + std::to_string(drives_.size());
        drives_.push_back(std::make_unique<ScsiDrive>(
            reactor_, offload_, std::move(each),
            ScsiDriveOptions{.name = name, .technology = options_.technology}));
    }
}

Task<Result<void>> ScsiLibrary::open() {
    const auto identify = [this] { return changer_.identify(); };
    auto called = co_await offload_.run(reactor_, identify);
    const auto identified = flat(std::move(called));
    if (!identified) co_return identified;
    for (const auto& drive : drives_) {
        const auto opened = co_await drive->open();
        if (!opened) co_return opened;
    }
    const auto elements = co_await ask();
    if (!elements) co_return std::unexpected(elements.error());
    co_return place_drives(*elements);
}

Result<void> ScsiLibrary::place_drives(const std::vector<ElementStatus>& elements) {
    std::vector<const ElementStatus*> reported;
    for (const ElementStatus& each : elements) {
        if (each.element.kind == LibraryElement::Kind::kDrive) reported.push_back(&each);
    }
    const bool tells = std::ranges::any_of(
        reported, [](const ElementStatus* each) { return each->device.has_value(); });
    for (const auto& drive : drives_) {
        const DriveIdentity& identity = drive->identity();
        const auto is_its = [&](const ElementStatus* each) {
            if (!tells) return each == reported[std::min(addresses_.size(), reported.size() - 1)];
            return each->device &&
                   names_device(*each->device, identity.serial, identity.designators);
        };
        const auto found = std::ranges::find_if(reported, is_its);
        if (found == reported.end()) {
            return tape_refused(Errc::kNotFound, "the changer does not report one of the drives");
        }
        const std::uint32_t address = (*found)->element.address;
        if (std::ranges::find(addresses_, address) != addresses_.end()) {
            return tape_refused(Errc::kInvalid,
                                "two drives are in the same element of the library");
        }
        addresses_.push_back(address);
    }
    return {};
}

ScsiDrive* ScsiLibrary::drive_at(std::uint32_t address) {
    const auto found = std::ranges::find(addresses_, address);
    if (found == addresses_.end()) return nullptr;
    return drives_[static_cast<std::size_t>(found - addresses_.begin())].get();
}

Task<Result<std::vector<ElementStatus>>> ScsiLibrary::ask() {
    const auto call = [this] { return changer_.inventory(); };
    auto called = co_await offload_.run(reactor_, call);
    co_return flat(std::move(called));
}

Task<Result<std::vector<LibraryElement>>> ScsiLibrary::inventory() {
    const InFlight in_flight(in_flight_);
    auto elements = co_await ask();
    if (!elements) co_return std::unexpected(elements.error());
    std::vector<LibraryElement> inventory;
    for (ElementStatus& each : *elements) {
        if (const ScsiDrive* const drive = drive_at(each.element.address); drive != nullptr) {
            each.element.drive_serial = drive->serial();
        }
        inventory.push_back(std::move(each.element));
    }
    co_return inventory;
}

Task<Result<void>> ScsiLibrary::move(std::uint32_t from, std::uint32_t to) {
    const InFlight in_flight(in_flight_);
    if (from == to) co_return tape_refused(Errc::kBusy, "element is full");
    for (const std::uint32_t address : {from, to}) {
        const ScsiDrive* const drive = drive_at(address);
        if (drive != nullptr && drive->busy()) {
            co_return tape_refused(Errc::kBusy, "drive is in use");
        }
    }
    if (ScsiDrive* const drive = drive_at(from); drive != nullptr) {
        const auto given = co_await drive->unload();
        if (!given && given.error().code == Errc::kBusy) co_return given;
        // After other failures the changer decides: it does not move a threaded cartridge.
    }
    const auto call = [this, from, to] { return changer_.move(from, to); };
    auto called = co_await offload_.run(reactor_, call);
    co_return flat(std::move(called));
}

}  // namespace fopd::devices

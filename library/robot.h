#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/events.h"
#include "core/reactor.h"
#include "core/result.h"
#include "core/task.h"
#include "core/wait_queue.h"
#include "devices/tape/changer.h"

namespace fopd::library {

// Moves cartridges for several drives, one at a time, and knows where they are. Lives on one
// reactor.
class Robot {
public:
    // All outlive it.
    struct Parts {
        core::Reactor& reactor;
        core::EventSink& events;
        devices::Changer& changer;
        const std::string& library;  // Its name.
    };
    explicit Robot(const Parts& parts) : parts_(parts), free_(parts.reactor) {}

    // Asks the changer where everything is.
    Task<Result<void>> look();
    // A move or a look() is in progress.
    bool is_busy() const { return busy_; }
    // As of the last look() and the moves since.
    const std::vector<devices::LibraryElement>& elements() const { return elements_; }

    // Moves the only cartridge with this barcode into a drive. kNotFound: it is not in the library.
    // kBusy: it is in another drive, or people use the changer. kInvalid: several have the barcode.
    // kUnsupported: the library does not know the drive.
    struct Load {
        std::string barcode;
        std::string drive_serial;
    };
    Task<Result<void>> load(Load what);
    // Moves the cartridge that a drive has given back to a free storage element. kNoSpace: there is
    // none.
    Task<Result<void>> put_away(std::string drive_serial);

    // The element of the drive with this serial number; null if the library does not know the
    // drive.
    const devices::LibraryElement* drive_element(std::string_view serial) const;
    // The error of the last inventory; empty: it has succeeded.
    const std::string& fault() const { return fault_; }
    // How many cartridges with this barcode are in the library.
    std::size_t count(std::string_view barcode) const;

private:
    class Turn;

    Task<Result<void>> look_now();
    Task<Result<void>> move(std::uint32_t from, std::uint32_t to);
    const devices::LibraryElement* cartridge(std::string_view barcode) const;
    void note(const Result<void>& looked);

    const Parts parts_;
    std::string fault_;
    bool busy_ = false;
    core::WaitQueue free_;
    std::vector<devices::LibraryElement> elements_;
};

}  // namespace fopd::library

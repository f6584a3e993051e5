#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/events.h"
#include "core/reactor.h"
#include "core/result.h"
#include "core/task.h"
#include "core/wait_queue.h"
#include "devices/tape/changer.h"
#include "devices/tape/tape_drive.h"

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
        const std::string& library;  // The name of the library.
    };
    explicit Robot(const Parts& parts) : parts_(parts), free_(parts.reactor) {}

    // Reads the contents of all elements from the changer. An inventory without any element counts
    // as an error.
    Task<Result<void>> look();
    // A move or a look() is in progress.
    bool is_busy() const { return busy_; }
    // The elements as of the last look(), and the moves since then.
    const std::vector<devices::LibraryElement>& elements() const { return elements_; }

    // Moves the only cartridge with this barcode into a drive. Another drive that does not use it
    // loses it: one that is down, that has not loaded it, or into which people have put it.
    // kNotFound: it is not in the library. kBusy: another drive uses it, or people use the changer.
    // kInvalid: several have the barcode. kUnsupported: the library does not know the drive.
    // kDenied: it stays in another drive, which is down or does not unload it.
    struct Load {
        std::string barcode;
        std::string drive_serial;
    };
    // kIo: it is unknown where the cartridge is, or the changer has brought another one, which was
    // put away again if possible.
    Task<Result<void>> load(Load what);
    // Moves the cartridge that a drive has given back to a free storage element. kNoSpace: there is
    // none. kIo: it is unknown where the cartridge is, or it has stayed in the drive.
    Task<Result<void>> put_away(std::string drive_serial);
    // Does the same with the cartridge of a drive that is down, and nothing if it is up by then.
    // Makes no inventory before the move: look() was called a moment ago.
    Task<Result<void>> take_from_down(std::string drive_serial);

    // The drives that may lose their cartridges to others. A drive may be asked to unload while it
    // does not use its cartridge, during a move of the robot. It lives until remove_drive().
    void add_drive(devices::TapeDrive& drive);
    void remove_drive(std::string_view serial);
    // The drive uses the cartridge in it, as after load().
    void note_used(std::string_view drive_serial);
    // The drive could not give back the cartridge in it. Another drive that wants it may take it.
    void note_given_back(std::string_view drive_serial);
    // Whether the drive has a cartridge that people have put into it.
    bool has_stray(std::string_view drive_serial) const;
    // A drive that is down is not entitled to the cartridge in it.
    void note_down(std::string_view drive_serial);
    void note_up(std::string_view drive_serial);
    // The name of the drive that has the cartridge; empty: there is none.
    std::string_view keeper(std::string_view barcode) const;

    // The number of exchange elements, and how many of them are empty.
    struct Exchange {
        std::size_t count = 0;
        std::size_t free = 0;
    };
    Exchange exchange() const;
    // Moves the only cartridge with this barcode from a storage element to a free exchange element,
    // unless it is in one. kNotFound, kInvalid: as load(). kNoSpace: none is free. kBusy: it is in
    // a drive, or people use the changer. kIo: it is unknown where the cartridge is, or the changer
    // has moved another one.
    Task<Result<void>> take_out(std::string barcode);
    // Moves the cartridge from an exchange element to a free storage element. One free storage
    // element is reserved for each cartridge in a drive. kNoSpace: no other storage element is
    // free. Otherwise as take_out(). Moves nothing if the cartridge is in a storage element or a
    // drive.
    Task<Result<void>> bring_in(std::string barcode);
    // Whether the cartridge is in an exchange element.
    bool is_outside(std::string_view barcode) const;

    // The element of the drive with this serial number; null if the library does not know the
    // drive.
    const devices::LibraryElement* drive_element(std::string_view serial) const;
    // The error of the last inventory; empty: it has succeeded.
    const std::string& fault() const { return fault_; }
    // How many cartridges with this barcode are in the library.
    std::size_t count(std::string_view barcode) const;

private:
    class Turn;
    // What a drive does with the cartridge in it. A cartridge of which nothing is known was put in
    // by people.
    enum class Use : std::uint8_t {
        kUsed,
        kGivenBack,  // It was to be put away, or has not arrived as it should.
    };

    Task<Result<void>> look_now();
    Task<Result<void>> clear_drive(std::string drive_serial);
    Task<Result<void>> move(std::uint32_t from, std::uint32_t to);
    // Does the same, and fails with kIo if the changer has moved another cartridge.
    Task<Result<void>> move_exactly(std::uint32_t from, std::uint32_t to);
    Task<Result<std::uint32_t>> get_out(std::string barcode, std::uint32_t to);
    bool is_used(std::string_view drive_serial) const;
    Task<Result<void>> unload(std::string drive_serial);
    Task<Result<void>> check_brought(Load what);
    Result<const devices::LibraryElement*> only_cartridge(std::string_view barcode) const;
    const devices::LibraryElement* element(std::uint32_t address) const;
    const devices::LibraryElement* cartridge(std::string_view barcode) const;
    const devices::LibraryElement* free_element(devices::LibraryElement::Kind kind) const;
    std::size_t count_elements(devices::LibraryElement::Kind kind, bool full) const;
    void note(const Result<void>& looked);

    const Parts parts_;
    std::string fault_;
    bool busy_ = false;
    core::WaitQueue free_;
    std::vector<devices::LibraryElement> elements_;
    // By serial numbers of drives.
    std::map<std::string, Use, std::less<>> uses_;
    std::map<std::string, devices::TapeDrive*, std::less<>> drives_;
    std::set<std::string, std::less<>> down_;
};

}  // namespace fopd::library

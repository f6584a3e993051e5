#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "core/task.h"

namespace fopd::devices {

// A holder of one cartridge in a library: a storage element, an exchange element, through which
// people exchange cartridges, or a drive.
struct LibraryElement {
    enum class Kind : std::uint8_t { kStorage, kExchange, kDrive };

    Kind kind = Kind::kStorage;
    std::uint32_t address = 0;  // Unique in the library.
    bool accessible = true;     // The changer can reach it now.
    bool full = false;
    // The cartridge's barcode, without trailing spaces; empty: it has none, or it cannot be read.
    // Two cartridges may have the same barcode.
    std::string barcode;
    // For drives: TapeDrive::serial().
    std::string drive_serial;

    friend bool operator==(const LibraryElement&, const LibraryElement&) = default;
};

// The robot of a tape library, which moves cartridges between elements. Lives on one reactor. One
// operation at a time. Operations can take minutes and cannot be cancelled.
class Changer {
public:
    virtual ~Changer() = default;

    virtual std::string_view name() const = 0;

    // All elements, by address, as the library knows them now. People may have moved cartridges
    // since the last call.
    virtual Task<Result<std::vector<LibraryElement>>> inventory() = 0;
    // Moves the cartridge in element `from` to the empty element `to`. kNotFound: there is no such
    // element, or no cartridge in `from`. kBusy: `to` is full, the drive has not unloaded, or
    // somebody has the door open; nothing was moved. kIo: it is unknown where the cartridge is
    // until the next inventory().
    virtual Task<Result<void>> move(std::uint32_t from, std::uint32_t to) = 0;
};

}  // namespace fopd::devices

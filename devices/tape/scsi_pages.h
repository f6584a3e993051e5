#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/time.h"
#include "devices/tape/scsi_bytes.h"
#include "devices/tape/tape_drive.h"

namespace fopd::devices {

// Parsers of data that SCSI devices send about themselves. The bytes may be anything: parts that do
// not fit are ignored.

enum class ScsiDeviceType : std::uint8_t { kTape = 1, kChanger = 8, kOther = 0xff };
// The device type for the peripheral device type in an INQUIRY answer.
ScsiDeviceType scsi_device_type(std::uint8_t number);

struct Inquiry {
    ScsiDeviceType type = ScsiDeviceType::kOther;
    std::string vendor = {};
    std::string product = {};

    friend bool operator==(const Inquiry&, const Inquiry&) = default;
};
std::optional<Inquiry> parse_inquiry(ScsiBytes bytes);

// A name by which devices are known, from page 0x83 of their INQUIRY, and from the elements of a
// changer.
struct Designator {
    enum Kind : std::uint8_t { kVendorSpecific = 0, kT10 = 1, kEui64 = 2, kNaa = 3 };

    std::uint8_t kind = kVendorSpecific;
    bool is_text = false;
    std::string value = {};  // Text without spaces around it, or bytes.

    friend bool operator==(const Designator&, const Designator&) = default;
};
// Reads a designator: a header of four bytes and the value. None: it is cut short or empty.
std::optional<Designator> parse_designator(ScsiBytes bytes);

// Page 0x80; empty: there is none.
std::string parse_serial(ScsiBytes page);
// Page 0x83: of the device itself, not of its ports.
std::vector<Designator> parse_designators(ScsiBytes page);

// Whether an element's designator is that of the device with this serial and these designators.
bool names_device(const Designator& of_element, std::string_view serial,
                  std::span<const Designator> of_device);

// "lto9", from the product's name: "ULTRIUM-TD9", "ULT3580-TD9", "Ultrium 9-SCSI". Empty: unknown.
std::string technology_of_product(std::string_view product);
// The technology of a cartridge, from its density code. Empty: unknown.
std::string technology_of_density(std::uint8_t density);

// The part of an answer to MODE SENSE(6) with a block descriptor that drives need.
struct TapeMode {
    bool write_protected = false;
    std::optional<std::uint8_t> density = {};

    friend bool operator==(const TapeMode&, const TapeMode&) = default;
};
std::optional<TapeMode> parse_tape_mode(ScsiBytes bytes);

// The cartridge's own memory, as READ ATTRIBUTE lists it.
struct CartridgeMemory {
    std::uint64_t capacity_bytes = 0;  // 0: unknown.
    std::string serial = {};
    bool cleaning = false;

    friend bool operator==(const CartridgeMemory&, const CartridgeMemory&) = default;
};
CartridgeMemory parse_attributes(ScsiBytes bytes);

// READ POSITION. Nothing: the drive does not know where it is.
std::optional<std::uint64_t> parse_short_position(ScsiBytes bytes);
struct LongPosition {
    bool at_beginning = false;
    TapePosition position;

    friend bool operator==(const LongPosition&, const LongPosition&) = default;
};
std::optional<LongPosition> parse_long_position(ScsiBytes bytes);

// How long a drive's commands may take, by its own words.
struct CommandTime {
    std::uint8_t code = 0;
    Duration longest{0};

    friend bool operator==(const CommandTime&, const CommandTime&) = default;
};
// REPORT SUPPORTED OPERATION CODES for all commands, with timeouts. Those without one are left out.
std::vector<CommandTime> parse_command_times(ScsiBytes bytes);

}  // namespace fopd::devices

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/result.h"

namespace fopd::devices {

// The sense data of a SCSI device: why a command failed, or an event during a command.
struct ScsiSense {
    enum Key : std::uint8_t {
        kNoSense = 0,
        kRecovered = 1,
        kNotReady = 2,
        kMediumError = 3,
        kHardwareError = 4,
        kIllegalRequest = 5,
        kUnitAttention = 6,
        kDataProtect = 7,
        kBlankCheck = 8,
        kVolumeOverflow = 13,
    };

    std::uint8_t key = kNoSense;
    std::uint16_t code = 0;  // The additional sense code and its qualifier: 0x3a00.
    // The data are about an earlier command. The present command was not executed.
    bool deferred = false;
    bool filemark = false;
    bool end_of_medium = false;
    bool wrong_length = false;
    // The requested count or size minus the actual one, if the device reports it.
    std::optional<std::int64_t> information = {};

    // The code without its qualifier.
    std::uint8_t subject() const { return static_cast<std::uint8_t>(code >> 8U); }

    // Whether the command was executed; the other members describe an event during the command.
    bool is_success() const { return key == kNoSense || key == kRecovered; }

    friend bool operator==(const ScsiSense&, const ScsiSense&) = default;
};

// Reads sense data in the fixed or the descriptor format. Nothing: they are neither.
std::optional<ScsiSense> parse_sense(std::span<const std::byte> bytes);

// The error of a tape drive's command with this sense. REQUIRES: the command has failed.
Error tape_sense_error(const ScsiSense& sense);
// The error of a changer's command with this sense. REQUIRES: the command has failed.
Error changer_sense_error(const ScsiSense& sense);

// The device needs more time, after which the command can be repeated.
bool becomes_ready(const ScsiSense& sense);
// There is no cartridge in the drive, or it was given back.
bool has_no_medium(const ScsiSense& sense);
// A unit attention that says nothing about the cartridge or the position: the command was not
// executed, and is repeated.
bool is_harmless(const ScsiSense& sense);

}  // namespace fopd::devices

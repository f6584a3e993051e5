#include "devices/tape/scsi_sense.h"

#include <algorithm>
#include <array>

#include "devices/tape/scsi_bytes.h"

namespace fopd::devices {

namespace {

constexpr std::size_t kFixedMin = 14;  // Up to the additional sense code's qualifier.
constexpr std::size_t kDescriptorMin = 8;

void set_stream_flags(ScsiSense& sense, std::uint8_t flags) {
    sense.filemark = (flags & 0x80U) != 0;
    sense.end_of_medium = (flags & 0x40U) != 0;
    sense.wrong_length = (flags & 0x20U) != 0;
}

std::optional<ScsiSense> parse_fixed(std::span<const std::byte> bytes) {
    if (bytes.size() < kFixedMin) return std::nullopt;
    ScsiSense sense;
    sense.key = byte_at(bytes, 2) & 0x0fU;
    set_stream_flags(sense, byte_at(bytes, 2));
    sense.code = two_at(bytes, 12);
    if ((byte_at(bytes, 0) & 0x80U) != 0) {
        sense.information = static_cast<std::int32_t>(four_at(bytes, 3));
    }
    return sense;
}

std::optional<ScsiSense> parse_descriptors(std::span<const std::byte> bytes) {
    if (bytes.size() < kDescriptorMin) return std::nullopt;
    ScsiSense sense;
    sense.key = byte_at(bytes, 1) & 0x0fU;
    sense.code = two_at(bytes, 2);
    const std::size_t end = std::min<std::size_t>(bytes.size(), kDescriptorMin + byte_at(bytes, 7));
    for (std::size_t offset = kDescriptorMin; offset + 2 <= end;) {
        const std::size_t size = 2UL + byte_at(bytes, offset + 1);
        if (offset + size > end) break;
        const auto descriptor = bytes.subspan(offset, size);
        const std::uint8_t type = byte_at(descriptor, 0);
        if (type == 0 && size >= 12 && (byte_at(descriptor, 2) & 0x80U) != 0) {
            sense.information = static_cast<std::int64_t>(eight_at(descriptor, 4));
        }
        if (type == 4 && size >= 4) set_stream_flags(sense, byte_at(descriptor, 3));
        offset += size;
    }
    return sense;
}

Error sense_error(Errc code, const char* context) {
    return {.code = code, .context = context};
}

// Of any device.
Error general_error(const ScsiSense& sense) {
    switch (sense.key) {
        case ScsiSense::kNoSense:
        case ScsiSense::kRecovered:
            return sense_error(Errc::kIo, "the command failed without a sense key");
        case ScsiSense::kNotReady:
            if (has_no_medium(sense)) return sense_error(Errc::kNotFound, "drive has no cartridge");
            return sense_error(Errc::kIo, "device is not ready");
        case ScsiSense::kMediumError:
            return sense_error(Errc::kIo, "the drive reports a medium error");
        case ScsiSense::kHardwareError:
            return sense_error(Errc::kIo, "the device reports a hardware error");
        case ScsiSense::kIllegalRequest:
            if (sense.subject() == 0x20) {
                return sense_error(Errc::kUnsupported, "device does not know the command");
            }
            return sense_error(Errc::kInvalid, "device refuses the command");
        case ScsiSense::kUnitAttention:
            return sense_error(Errc::kIo, "device was reset or changed");
        case ScsiSense::kDataProtect:
            return sense_error(Errc::kDenied, "cartridge is write-protected");
        case ScsiSense::kBlankCheck:
            return sense_error(Errc::kNotFound, "the data end before the requested position");
        case ScsiSense::kVolumeOverflow: return sense_error(Errc::kIo, "end of the tape");
        default: return sense_error(Errc::kIo, "the device has aborted the command");
    }
}

}  // namespace

std::optional<ScsiSense> parse_sense(std::span<const std::byte> bytes) {
    if (bytes.empty()) return std::nullopt;
    const std::uint8_t format = byte_at(bytes, 0) & 0x7fU;
    std::optional<ScsiSense> sense;
    if (format == 0x70 || format == 0x71) sense = parse_fixed(bytes);
    if (format == 0x72 || format == 0x73) sense = parse_descriptors(bytes);
    if (sense) sense->deferred = (format & 1U) != 0;
    return sense;
}

Error tape_sense_error(const ScsiSense& sense) {
    if (sense.deferred)
        return sense_error(Errc::kIo, "the drive reports a late error of an earlier write");
    // 0x30: of the wrong kind, or damaged.
    if (sense.subject() == 0x30 && sense.key != ScsiSense::kDataProtect) {
        return sense_error(Errc::kUnsupported, "drive cannot use this cartridge");
    }
    return general_error(sense);
}

Error changer_sense_error(const ScsiSense& sense) {
    switch (sense.code) {
        case 0x2101: return sense_error(Errc::kNotFound, "library has no such element");
        case 0x3b0d: return sense_error(Errc::kBusy, "element is full");
        case 0x3b0e: return sense_error(Errc::kNotFound, "element is empty");
        // Magazines that cannot be reached, are away, are being moved; elements that are disabled.
        case 0x3b11:
        case 0x3b12:
        case 0x3b13:
        case 0x3b14:
        case 0x3b18:
        case 0x3b1a:
        case 0x3b1b: return sense_error(Errc::kBusy, "element cannot be reached");
        // The removal is prevented.
        case 0x5302: return sense_error(Errc::kBusy, "drive is in use");
        default: break;
    }
    if (sense.key == ScsiSense::kNotReady) {
        return sense_error(Errc::kBusy, "library is not ready, or its door is open");
    }
    return general_error(sense);
}

bool becomes_ready(const ScsiSense& sense) {
    // Of "not ready": no cause, becoming ready, an operation, a self-test, a start in progress.
    static constexpr std::array<std::uint16_t, 6> kWaiting{0x0400, 0x0401, 0x0407,
                                                           0x0409, 0x040d, 0x041a};
    return sense.key == ScsiSense::kNotReady &&
           std::ranges::find(kWaiting, sense.code) != kWaiting.end();
}

bool has_no_medium(const ScsiSense& sense) {
    return sense.key == ScsiSense::kNotReady && sense.subject() == 0x3a;
}

bool is_harmless(const ScsiSense& sense) {
    if (sense.key != ScsiSense::kUnitAttention || sense.deferred) return false;
    // Parameters, the device's description, an operator's wish, the log.
    const std::uint8_t subject = sense.subject();
    return subject == 0x2a || subject == 0x3f || subject == 0x5a || subject == 0x5b;
}

}  // namespace fopd::devices

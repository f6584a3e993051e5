#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/time.h"

namespace fopd::fop {

// The parts of a fop's time on the server. The numbers are on the wire: new ones are added, none is
// reused.
enum class SpentOn : std::uint8_t {
    kTotal = 0,      // From the fop's arrival to its reply.
    kPolicy = 1,     // Waited for its turn in the request scheduler.
    kBuffer = 2,     // Waited for a buffer, or for its client's share of the buffers.
    kLock = 3,       // Waited for another fop: a lock, a name, the same request.
    kClient = 4,     // The client's memory was read or written.
    kRoom = 5,       // Waited for space: in the log of the disk, or on the disk.
    kDiskQueue = 6,  // Waited for a turn at the disk.
    kDisk = 7,       // The disk read or wrote data.
    kLog = 8,        // Waited until the log of the disk was durable: writes and a flush.
    kLocality = 9,   // Travelled to another locality and back.
};
inline constexpr std::size_t kSpentOnCount = 10;

// How a server has spent the time of a fop: 24 bytes. A duration is rounded to 1/2048 of its value,
// or to 100 ns. The server computed during the rest of the total.
class TimeSpent {
public:
    static constexpr std::size_t kParts = 12;  // The last two parts are not used yet.

    void set(SpentOn what, Duration time) { parts_[index_of(what)] = packed(time); }
    Duration of(SpentOn what) const { return unpacked(parts_[index_of(what)]); }

    // As on the wire.
    const std::array<std::uint16_t, kParts>& parts() const { return parts_; }
    static TimeSpent from_parts(const std::array<std::uint16_t, kParts>& parts) {
        TimeSpent spent;
        spent.parts_ = parts;
        return spent;
    }
    friend bool operator==(const TimeSpent&, const TimeSpent&) = default;

private:
    static constexpr Duration kUnit{100};
    static constexpr unsigned kMantissaBits = 11;
    static constexpr std::uint64_t kHidden = 1U << kMantissaBits;

    static std::size_t index_of(SpentOn what) { return static_cast<std::size_t>(what); }

    // Small numbers of units are kept as they are. A larger number is (2048 + mantissa) << shift,
    // and its exponent is shift + 1.
    static std::uint16_t packed(Duration time) {
        const auto units = static_cast<std::uint64_t>(std::max(time, Duration::zero()) / kUnit);
        if (units < kHidden) return static_cast<std::uint16_t>(units);
        const unsigned shift = static_cast<unsigned>(std::bit_width(units)) - kMantissaBits - 1;
        if (shift > kShiftMax) return UINT16_MAX;
        return static_cast<std::uint16_t>(((shift + 1) << kMantissaBits) |
                                          ((units >> shift) - kHidden));
    }
    static Duration unpacked(std::uint16_t part) {
        const std::uint64_t mantissa = part % kHidden;
        const unsigned exponent = part >> kMantissaBits;
        const std::uint64_t units =
            exponent == 0 ? mantissa : (kHidden + mantissa) << (exponent - 1);
        return kUnit * static_cast<std::int64_t>(units);
    }
    static constexpr unsigned kShiftMax = (1U << (16 - kMantissaBits)) - 2;

    std::array<std::uint16_t, kParts> parts_{};
};

}  // namespace fopd::fop

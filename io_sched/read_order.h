#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/time.h"
#include "devices/tape/drive_model.h"

namespace fopd::io_sched {

// The order in which the files that are wanted of a cartridge are read.
enum class ReadOrder : std::uint8_t {
    kArrival,
    kLinear,  // As they were written.
    kScan,    // Those of all forward wraps along the tape, then those of all backward wraps back.
    kSltf,    // Always the one that takes the shortest time to locate.
    kAuto,    // The cheapest of these by the drive's model, improved.
};
inline constexpr std::array<std::string_view, 5> kReadOrderNames{"arrival", "linear", "scan",
                                                                 "sltf", "auto"};

// Where a file begins on the tape, and where the drive is after it was read.
struct TapeStretch {
    devices::PhysicalPosition begin;
    devices::PhysicalPosition end;
};
// The stretch of `size_bytes` from `begin`.
TapeStretch stretch_from(const devices::DriveModel& model, devices::PhysicalPosition begin,
                         std::uint64_t size_bytes);

// The indexes of `files`, which are in the order of arrival, in the order in which to read them
// from `start`. Pure.
std::vector<std::uint32_t> plan_reads(const devices::DriveModel& model,
                                      devices::PhysicalPosition start,
                                      std::span<const TapeStretch> files, ReadOrder order);
// The time that all locates of an order take, which is what plan_reads() makes small.
Duration locate_total(const devices::DriveModel& model, devices::PhysicalPosition start,
                      std::span<const TapeStretch> files, std::span<const std::uint32_t> order);

}  // namespace fopd::io_sched

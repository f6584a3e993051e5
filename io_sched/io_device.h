#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "core/counter.h"
#include "core/ensure.h"
#include "core/time.h"
#include "io_sched/depth_control.h"
#include "io_sched/io_request.h"

namespace fopd::io_sched {

enum class DeviceState : std::uint8_t {
    kReady,
    kDown,  // Gets no operations; running ones end. Another drive may get its medium.
    kHeld,  // Gets no operations and keeps its medium: it is reserved for other use.
};

// The kind of medium that a device accepts: "disk" for disks, for drives and cartridges their
// generation, such as "lto9". In static storage.
using Technology = std::string_view;
inline constexpr Technology kDiskTechnology = "disk";

// A device as schedulers see it: its state, its medium if it has one, the position there, and
// whether it has room for another operation. Several schedulers may share a device. Used on one
// reactor.
class IoDevice {
public:
    // A disk, which is one medium for life.
    IoDevice(MediumId medium, DepthOptions options)
        : family_(IoFamily::kDisk), technology_(kDiskTechnology), medium_(medium), depth_(options) {
        allowed_.set(depth_.depth());
    }
    // A drive, which has one medium after the other, or none, and does one operation at a time.
    // `number` is unique among the drives of a library, and not 0.
    struct Drive {
        std::uint8_t number;
        Technology technology;
    };
    explicit IoDevice(const Drive& drive)
        : family_(IoFamily::kTape),
          number_(drive.number),
          technology_(drive.technology),
          depth_({.min = 1, .max = 1}) {
        ENSURE(drive.number != 0);
        allowed_.set(depth_.depth());
    }
    IoDevice(const IoDevice&) = delete;
    IoDevice& operator=(const IoDevice&) = delete;

    IoFamily family() const { return family_; }
    std::uint8_t number() const { return number_; }
    Technology technology() const { return technology_; }
    bool is_fixed() const { return family_ == IoFamily::kDisk; }

    DeviceState state() const { return state_; }
    void set_state(DeviceState state) { state_ = state; }

    // Of a drive: its cartridge, or the cartridge that the running operation brings.
    std::optional<MediumId> medium() const { return medium_; }
    // Where the last operation on that medium ended, in the terms of IoPart::offset.
    std::uint64_t position() const { return position_; }
    // REQUIRES: a drive.
    void set_medium(std::optional<MediumId> medium, std::uint64_t position = 0) {
        ENSURE(!is_fixed());
        medium_ = medium;
        leaving_.reset();
        position_ = position;
    }
    // The operation that begins exchanges the medium. Until it ends, the drive may have the old
    // medium or the new one.
    void exchange(MediumId medium) {
        const auto old = medium_;
        set_medium(medium);
        leaving_ = old;
    }
    std::optional<MediumId> leaving() const { return leaving_; }
    // An operation has ended at this position.
    void set_position(std::uint64_t position) {
        leaving_.reset();
        position_ = position;
    }
    // Of a drive: when its last operation ended.
    Instant idle_since() const { return idle_since_; }
    void set_idle_since(Instant now) { idle_since_ = now; }

    // Reads and writes share the queue depth. Formats of a disk do not count in it, because a
    // format takes long and says nothing about read or write latency; one format runs at a time.
    // A drive does one operation at a time, of whatever type.
    bool has_room(IoType type) const {
        if (state_ != DeviceState::kReady) return false;
        if (!is_fixed()) return is_idle();
        if (type == IoType::kFormat) return running_count(IoType::kFormat) == 0;
        return weight_ < depth_.depth() || in_flight() < std::min(kAlways, depth_.depth());
    }
    // Nothing runs.
    bool is_idle() const { return in_flight() == 0 && running_count(IoType::kFormat) == 0; }

    void begin(IoType type, std::uint64_t size_bytes = 0) {
        core::Counter& running = running_[index(type)];
        running.set(running.get() + 1);
        if (type == IoType::kFormat) return;
        weight_ += weight_of(size_bytes);
        depth_.began(weight_);
    }
    // A running operation of `size_bytes` is extended by `more_bytes`.
    void grow(std::uint64_t size_bytes, std::uint64_t more_bytes) {
        weight_ += weight_of(size_bytes + more_bytes) - weight_of(size_bytes);
        depth_.began(weight_);
    }
    // `size_bytes` is the total given to begin() and grow().
    void end(IoType type, std::uint64_t size_bytes = 0) {
        core::Counter& running = running_[index(type)];
        running.set(running.get() - 1);
        if (type != IoType::kFormat) weight_ -= weight_of(size_bytes);
    }
    // Reports the latency of a successful read or write, measured from begin(). Failed operations
    // are not reported.
    void learn(Duration latency, std::uint64_t size_bytes = 0) {
        depth_.ended(latency, weight_of(size_bytes));
        allowed_.set(depth_.depth());
    }

    // Reads and writes.
    std::uint64_t in_flight() const {
        return running_count(IoType::kRead) + running_count(IoType::kWrite);
    }

    // Any thread.
    std::uint64_t running_count(IoType type) const { return running_[index(type)].get(); }
    std::uint64_t depth() const { return allowed_.get(); }

private:
    // Two operations may always run (one at a depth of 1), however large, so that the device does
    // not idle between them.
    static constexpr std::uint32_t kAlways = 2;

    static std::size_t index(IoType type) { return static_cast<std::size_t>(type); }

    const IoFamily family_;
    DeviceState state_ = DeviceState::kReady;
    const std::uint8_t number_ = 0;
    const Technology technology_;
    std::optional<MediumId> medium_;
    std::optional<MediumId> leaving_;
    std::uint64_t position_ = 0;
    Instant idle_since_{};
    DepthControl depth_;
    std::uint64_t weight_ = 0;  // The weight of the reads and writes in flight.
    std::array<core::Counter, kIoTypeCount> running_;
    core::Counter allowed_;
};

}  // namespace fopd::io_sched

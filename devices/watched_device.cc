#include "devices/watched_device.h"

namespace fopd::devices {

WatchedDevice::WatchedDevice(core::Reactor& reactor, Device& device, core::EventSink& events,
                             HealthRule rule)
    : Timer(&on_tick),
      reactor_(reactor),
      device_(device),
      events_(events),
      health_(rule),
      tick_length_(rule.stuck_after) {}

Task<Result<void>> WatchedDevice::read(core::Buffer into, std::uint64_t offset,
                                       core::WaitOptions wait) {
    const Begun begun = begin();
    const auto result = co_await device_.read(into, offset, wait);
    ended(begun, {.op = DeviceOp::kRead, .size_bytes = into.size_bytes, .result = result});
    co_return result;
}

Task<Result<void>> WatchedDevice::write(core::Buffer from, std::uint64_t offset) {
    if (const auto writable = check_writable(); !writable) co_return writable;
    const Begun begun = begin();
    const auto result = co_await device_.write(from, offset);
    ended(begun, {.op = DeviceOp::kWrite, .size_bytes = from.size_bytes, .result = result});
    co_return result;
}

Task<Result<void>> WatchedDevice::gather(std::span<const core::Buffer> parts,
                                         std::uint64_t offset) {
    if (const auto writable = check_writable(); !writable) co_return writable;
    const Begun begun = begin();
    const auto result = co_await device_.gather(parts, offset);
    ended(begun, {.op = DeviceOp::kWrite, .size_bytes = bytes_of(parts), .result = result});
    co_return result;
}

Task<Result<void>> WatchedDevice::flush() {
    if (const auto writable = check_writable(); !writable) co_return writable;
    const Begun begun = begin();
    auto result = co_await device_.flush();
    ended(begun, {.op = DeviceOp::kFlush, .result = result});
    // This flush may not report the error of a write that failed meanwhile, or one that another
    // flush has already received.
    if (result) result = check_writable();
    co_return result;
}

Task<Result<void>> WatchedDevice::discard(std::uint64_t offset, std::uint64_t size_bytes) {
    if (const auto writable = check_writable(); !writable) co_return writable;
    const Begun begun = begin();
    const auto result = co_await device_.discard(offset, size_bytes);
    ended(begun, {.op = DeviceOp::kDiscard, .size_bytes = size_bytes, .result = result});
    co_return result;
}

// Asks the file system, not the disk.
Task<Result<Stretch>> WatchedDevice::find_hole(std::uint64_t offset, std::uint64_t size_bytes) {
    return device_.find_hole(offset, size_bytes);
}

void WatchedDevice::mark_suspect(const char* reason) {
    if (health_.mark_suspect(reason, reactor_.now())) report();
}

void WatchedDevice::mark_read_only(const char* reason) {
    if (health_.mark_read_only(reason)) report();
}

Result<void> WatchedDevice::check_writable() const {
    if (health_.state() != DeviceState::kReadOnly) return {};
    return std::unexpected(Error{.code = Errc::kIo, .context = "device is read-only"});
}

WatchedDevice::Begun WatchedDevice::begin() {
    if (under_way_++ == 0) {
        busy_since_ = reactor_.now();
        reactor_.arm(*this, after(reactor_.now(), tick_length_));
    }
    return {.at = reactor_.now(), .tick = ticks_};
}

void WatchedDevice::ended(const Begun& begun, Health::Ended what) {
    what.took = reactor_.now() - begun.at;
    if (--under_way_ == 0) {
        busy_ += reactor_.now() - busy_since_;
        Timer::disarm();
    }
    if (begun.tick < ticks_) --old_under_way_;
    if (is_stuck_ && old_under_way_ == 0) {
        is_stuck_ = false;
        core::emit(events_, core::Level::kInfo, "devices.answers", {{"device", name()}});
    }
    if (!what.result && what.result.error().code == Errc::kIo) {
        core::emit(events_, core::Level::kError, "devices.error",
                   {{"device", name()},
                    {"op", std::string_view(to_string(what.op))},
                    {"error", std::string_view(what.result.error().context)},
                    {"errno", std::int64_t{what.result.error().os_errno}}});
    }
    if (health_.ended(what, reactor_.now())) report();
}

void WatchedDevice::on_tick(core::Timer& timer) {
    static_cast<WatchedDevice&>(timer).tick();
}

// Operations that were old at the previous tick and are still in flight have lasted more than one
// tick.
void WatchedDevice::tick() {
    if (old_under_way_ > 0) {
        if (!is_stuck_) {
            core::emit(
                events_, core::Level::kError, "devices.stuck",
                {{"device", name()}, {"operations", static_cast<std::int64_t>(old_under_way_)}});
        }
        is_stuck_ = true;
        // Repeated at each tick, so that the state does not expire meanwhile.
        mark_suspect("it does not answer");
    }
    ++ticks_;
    old_under_way_ = under_way_;
    reactor_.arm(*this, after(reactor_.now(), tick_length_));
}

void WatchedDevice::report() const {
    const bool is_good = health_.state() == DeviceState::kGood;
    core::emit_each(events_, is_good ? core::Level::kInfo : core::Level::kError, "devices.state",
                    {{"device", name()},
                     {"state", std::string_view(to_string(health_.state()))},
                     {"reason", std::string_view(health_.reason())}});
}

}  // namespace fopd::devices

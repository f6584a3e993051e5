#include "devices/watched_device.h"

namespace fopd::devices {

WatchedDevice::WatchedDevice(core::Reactor& reactor, Device& device, core::EventSink& events,
                             HealthRule rule)
    : reactor_(reactor), device_(device), events_(events), health_(rule) {}

Task<Result<void>> WatchedDevice::read(core::Buffer into, std::uint64_t offset,
                                       core::WaitOptions wait) {
    const Instant began = begin();
    const auto result = co_await device_.read(into, offset, wait);
    ended({.op = DeviceOp::kRead,
           .size_bytes = into.size_bytes,
           .took = reactor_.now() - began,
           .result = result});
    co_return result;
}

Task<Result<void>> WatchedDevice::write(core::Buffer from, std::uint64_t offset) {
    if (const auto writable = check_writable(); !writable) co_return writable;
    const Instant began = begin();
    const auto result = co_await device_.write(from, offset);
    ended({.op = DeviceOp::kWrite,
           .size_bytes = from.size_bytes,
           .took = reactor_.now() - began,
           .result = result});
    co_return result;
}

Task<Result<void>> WatchedDevice::gather(std::span<const core::Buffer> pieces,
                                         std::uint64_t offset) {
    if (const auto writable = check_writable(); !writable) co_return writable;
    const Instant began = begin();
    const auto result = co_await device_.gather(pieces, offset);
    ended({.op = DeviceOp::kWrite,
           .size_bytes = bytes_of(pieces),
           .took = reactor_.now() - began,
           .result = result});
    co_return result;
}

Task<Result<void>> WatchedDevice::flush() {
    if (const auto writable = check_writable(); !writable) co_return writable;
    const Instant began = begin();
    auto result = co_await device_.flush();
    ended({.op = DeviceOp::kFlush, .took = reactor_.now() - began, .result = result});
    // Of a write that failed meanwhile, or of another flush that took its error along, this one
    // may know nothing.
    if (result) result = check_writable();
    co_return result;
}

Task<Result<void>> WatchedDevice::discard(std::uint64_t offset, std::uint64_t size_bytes) {
    if (const auto writable = check_writable(); !writable) co_return writable;
    const Instant began = begin();
    const auto result = co_await device_.discard(offset, size_bytes);
    ended({.op = DeviceOp::kDiscard,
           .size_bytes = size_bytes,
           .took = reactor_.now() - began,
           .result = result});
    co_return result;
}

// A look at what the file system knows; the disk is not asked.
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

Instant WatchedDevice::begin() {
    if (under_way_++ == 0) busy_since_ = reactor_.now();
    return reactor_.now();
}

void WatchedDevice::ended(const Health::Ended& what) {
    if (--under_way_ == 0) busy_ += reactor_.now() - busy_since_;
    if (!what.result && what.result.error().code == Errc::kIo) {
        core::emit(events_, core::Level::kError, "devices.error",
                   {{"device", name()},
                    {"op", std::string_view(to_string(what.op))},
                    {"error", std::string_view(what.result.error().context)},
                    {"errno", std::int64_t{what.result.error().os_errno}}});
    }
    if (health_.ended(what, reactor_.now())) report();
}

void WatchedDevice::report() const {
    const bool is_good = health_.state() == DeviceState::kGood;
    core::emit_each(events_, is_good ? core::Level::kInfo : core::Level::kError, "devices.state",
                    {{"device", name()},
                     {"state", std::string_view(to_string(health_.state()))},
                     {"reason", std::string_view(health_.reason())}});
}

}  // namespace fopd::devices

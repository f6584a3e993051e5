#include "devices/tape/scsi_drive.h"

#include "core/ensure.h"
#include "devices/tape/in_flight.h"
#include "devices/tape/tape_error.h"

namespace fopd::devices {

namespace {

// How long a drive may take to thread a cartridge. New ones of LTO-9 are calibrated first, for up
// to two hours.
constexpr Duration kLoadMax = Duration(3h);
constexpr Duration kAskAgain = Duration(1s);

}  // namespace

ScsiDrive::ScsiDrive(core::Reactor& reactor, core::Offload& offload, std::unique_ptr<ScsiPort> port,
                     ScsiDriveOptions options)
    : reactor_(reactor),
      offload_(offload),
      port_(std::move(port)),
      options_(std::move(options)),
      tape_(*port_) {}

// Runs `what` on a thread of the offload.
template <typename Call>
auto ScsiDrive::call(Call what) -> Task<std::invoke_result_t<Call&>> {
    const InFlight in_flight(in_flight_);
    auto called = co_await offload_.run(reactor_, what);
    co_return flat(std::move(called));
}

Task<Result<void>> ScsiDrive::open() {
    auto task = call([this] { return tape_.identify(options_.technology); });
    auto identity = co_await std::move(task);
    if (!identity) co_return std::unexpected(identity.error());
    identity_ = *std::move(identity);
    co_return Result<void>{};
}

Task<Result<LoadedTape>> ScsiDrive::load() {
    const Instant deadline = reactor_.now() + kLoadMax;
    for (;;) {
        auto task = call([this] { return tape_.try_load(); });
        auto tried = co_await std::move(task);
        if (!tried) co_return std::unexpected(tried.error());
        if (tried->has_value()) {
            loaded_ = **tried;
            co_return *loaded_;
        }
        if (reactor_.now() >= deadline) {
            co_return tape_refused(Errc::kIo, "cartridge does not become ready");
        }
        const InFlight in_flight(in_flight_);
        const auto slept = co_await reactor_.sleep_for(kAskAgain);
        ENSURE(slept.has_value());
    }
}

Task<Result<void>> ScsiDrive::unload() {
    auto task = call([this] { return tape_.unload(); });
    const auto unloaded = co_await std::move(task);
    loaded_ = tape_.loaded();
    co_return unloaded;
}

Task<Result<TapePosition>> ScsiDrive::position() {
    ENSURE(!in_flight_);
    if (loaded_ && tape_.known_position()) co_return *tape_.known_position();
    auto task = call([this] { return tape_.position(); });
    co_return co_await std::move(task);
}

Task<Result<TapeRead>> ScsiDrive::read(core::Buffer into) {
    return call([this, into] { return tape_.read(into); });
}

Task<Result<TapeRoom>> ScsiDrive::write(core::Buffer from) {
    return call([this, from] { return tape_.write(from); });
}

Task<Result<TapeRoom>> ScsiDrive::write_filemarks(std::uint32_t count, Marks marks) {
    return call([this, count, marks] { return tape_.write_filemarks(count, marks); });
}

Task<Result<void>> ScsiDrive::locate(std::uint64_t block) {
    return call([this, block] { return tape_.locate(block); });
}

Task<Result<void>> ScsiDrive::skip_filemarks(std::uint32_t count) {
    return call([this, count] { return tape_.skip_filemarks(count); });
}

Task<Result<void>> ScsiDrive::to_end_of_data() {
    return call([this] { return tape_.to_end_of_data(); });
}

}  // namespace fopd::devices

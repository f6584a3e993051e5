#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/offload.h"
#include "core/reactor.h"
#include "devices/tape/scsi_tape.h"
#include "devices/tape/tape_drive.h"

namespace fopd::devices {

struct ScsiDriveOptions {
    std::string name;
    // The technology to assume if the product name of the drive does not tell it.
    std::string technology = "lto9";
};

// A tape drive of a ScsiLibrary.
class ScsiDrive final : public TapeDrive {
public:
    // The reactor and the offload outlive it.
    ScsiDrive(core::Reactor& reactor, core::Offload& offload, std::unique_ptr<ScsiPort> port,
              ScsiDriveOptions options);

    // Asks which drive it is. Called once, before all others. kUnsupported: it is no tape drive.
    Task<Result<void>> open();

    std::string_view name() const override { return options_.name; }
    std::string_view serial() const override { return identity_.serial; }
    std::string_view technology() const override { return identity_.technology; }
    const DriveIdentity& identity() const { return identity_; }

    // Waits until a cartridge that is being threaded is ready.
    Task<Result<LoadedTape>> load() override;
    Task<Result<void>> unload() override;
    const std::optional<LoadedTape>& loaded() const override { return loaded_; }
    Task<Result<TapePosition>> position() override;
    Task<Result<TapeRead>> read(core::Buffer into) override;
    Task<Result<TapeRoom>> write(core::Buffer from) override;
    Task<Result<TapeRoom>> write_filemarks(std::uint32_t count, Marks marks) override;
    Task<Result<void>> locate(std::uint64_t block) override;
    Task<Result<void>> skip_filemarks(std::uint32_t count) override;
    Task<Result<void>> to_end_of_data() override;

    // An operation is in flight, or a tape is loaded.
    bool busy() const { return in_flight_ || loaded_.has_value(); }

private:
    template <typename Call>
    auto call(Call what) -> Task<std::invoke_result_t<Call&>>;

    core::Reactor& reactor_;
    core::Offload& offload_;
    const std::unique_ptr<ScsiPort> port_;
    const ScsiDriveOptions options_;
    // Used by one call of the offload at a time, and between them by the reactor.
    ScsiTape tape_;
    DriveIdentity identity_;
    std::optional<LoadedTape> loaded_;
    bool in_flight_ = false;
};

}  // namespace fopd::devices

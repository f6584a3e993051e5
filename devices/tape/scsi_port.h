#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/io.h"
#include "core/result.h"
#include "core/time.h"
#include "devices/tape/scsi_sense.h"

namespace fopd::devices {

enum class ScsiDirection : std::uint8_t { kNoData, kFromDevice, kToDevice };

struct ScsiCommand {
    std::array<std::uint8_t, 16> bytes{};
    std::uint8_t size = 6;  // The number of bytes of the command.
    ScsiDirection direction = ScsiDirection::kNoData;
    core::Buffer data = {};
    Duration timeout = Duration(60s);
};

struct ScsiReply {
    // Empty if the command has succeeded and the device reports nothing else.
    std::optional<ScsiSense> sense = {};
    std::size_t transferred_bytes = 0;
};

// The way to a SCSI device: executes one command after the other. All calls block, and belong on an
// Offload.
class ScsiPort {
public:
    virtual ~ScsiPort() = default;

    // kBusy: somebody else has reserved the device. kTimedOut, kIo: it is unknown whether the
    // command was executed.
    virtual Result<ScsiReply> execute(const ScsiCommand& command) = 0;
    // Keeps other programs of this machine from using the tape until release(). kBusy: one uses it.
    virtual Result<void> hold() { return {}; }
    virtual void release() {}
};

}  // namespace fopd::devices

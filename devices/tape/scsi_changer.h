#pragma once

#include <cstdint>
#include <vector>

#include "core/result.h"
#include "devices/tape/element_status.h"
#include "devices/tape/scsi_port.h"

namespace fopd::devices {

// The commands of a media changer (SMC). All calls block, and belong on an Offload, one at a time.
class ScsiChanger {
public:
    // The port outlives it.
    explicit ScsiChanger(ScsiPort& port) : port_(port) {}

    // kUnsupported: it is no media changer. Called first.
    Result<void> identify();
    // All elements but the robot's hand, by address.
    Result<std::vector<ElementStatus>> inventory();
    // Moves a cartridge; fails as Changer::move() does.
    Result<void> move(std::uint32_t from, std::uint32_t to);

private:
    enum class Ids : std::uint8_t { kAsked, kNotAsked };

    Result<ScsiReply> run(const ScsiCommand& command);
    Result<ElementReport> read_elements(std::uint8_t type, Ids ids);
    Result<ElementReport> read_part(std::uint8_t type, Ids ids, std::size_t size_max);

    ScsiPort& port_;
    bool tells_drives_ = true;  // False: it has refused to tell which drive is at which element.
};

}  // namespace fopd::devices

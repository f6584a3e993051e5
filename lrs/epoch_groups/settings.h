#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/record.h"
#include "core/time.h"

namespace fopd::lrs {

// Says which requests a node serves after a group's time, until the next epoch begins.
enum class AtEnd : std::uint8_t {
    kGoOn,   // It serves the same requests as before.
    kPause,  // It serves nothing.
};
// Says which requests a node serves while the group of the epoch has no waiting requests there.
enum class OtherGroups : std::uint8_t {
    kServe,  // It serves requests of the next groups.
    kWait,   // It serves nothing.
};

// The settings of epoch_groups. The rules are texts for GroupRules::load().
struct EpochGroupsSettings {
    Duration length = 100ms;  // The longest time of a group's turn.
    AtEnd at_end = AtEnd::kGoOn;
    OtherGroups others = OtherGroups::kServe;
    std::vector<std::string> rules{};

    friend bool operator==(const EpochGroupsSettings&, const EpochGroupsSettings&) = default;
};

config::Record<EpochGroupsSettings> epoch_groups_record();

}  // namespace fopd::lrs

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/record.h"
#include "core/time.h"

namespace fopd::lrs {

// What is served after a group's time until the next epoch begins.
enum class AtEnd : std::uint8_t {
    kGoOn,   // The same as before.
    kPause,  // Nothing.
};
// What is served while the group of the epoch has no waiting requests here.
enum class OtherGroups : std::uint8_t {
    kServe,  // Requests of the next groups.
    kWait,   // Nothing.
};

// The settings of epoch_groups. The rules are texts for GroupRules::load().
struct EpochGroupsSettings {
    Duration length = 100ms;  // Of a group's turn, at most.
    AtEnd at_end = AtEnd::kGoOn;
    OtherGroups others = OtherGroups::kServe;
    std::vector<std::string> rules{};

    friend bool operator==(const EpochGroupsSettings&, const EpochGroupsSettings&) = default;
};

config::Record<EpochGroupsSettings> epoch_groups_record();

}  // namespace fopd::lrs

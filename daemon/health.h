#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/clock.h"
#include "daemon/configuration.h"
#include "daemon/json_writer.h"
#include "daemon/node.h"

namespace fopd::daemon {

// The state of a node, in short, for a monitoring system.
struct NodeHealth {
    enum class Level : std::uint8_t { kGood, kWarning, kCritical };
    enum class Cause : std::uint8_t {
        kCartridgeSuspect,
        kCartridgeUnreadable,
        kChangerFailed,
        kCheckFindings,
        kDiskDamaged,
        kDiskFull,
        kDiskGivenUp,
        kDiskMissing,
        kDiskNearlyFull,
        kDiskReadOnly,
        kDiskSuspect,
        kDiskWrittenOff,
        kDriveDown,
        kEpochMembersAway,
        kLibraryMissing,
        kLibraryNotOpen,
        kLocalityStuck,
        kNoDisk,
        kNoEpochs,
        kNotReady,
        kQuotaNearlyUsed,
        kRecallFailed,
        kReloadFailed,
        kRestartPending,
        kScrubFailed,
        kScrubOld,
    };
    struct Problem {
        Cause cause = Cause::kNotReady;
        Level level = Level::kWarning;
        std::string text{};  // One line.
    };
    // One row for each cause, in the order of Cause.
    struct CauseRow {
        Cause cause;
        Level level;
        const char* name;
    };
    static constexpr std::array kCauses{
        CauseRow{Cause::kCartridgeSuspect, Level::kWarning, "cartridge_suspect"},
        CauseRow{Cause::kCartridgeUnreadable, Level::kCritical, "cartridge_unreadable"},
        CauseRow{Cause::kChangerFailed, Level::kCritical, "changer_failed"},
        CauseRow{Cause::kCheckFindings, Level::kCritical, "check_findings"},
        CauseRow{Cause::kDiskDamaged, Level::kCritical, "disk_damaged"},
        CauseRow{Cause::kDiskFull, Level::kCritical, "disk_full"},
        CauseRow{Cause::kDiskGivenUp, Level::kCritical, "disk_given_up"},
        CauseRow{Cause::kDiskMissing, Level::kCritical, "disk_missing"},
        CauseRow{Cause::kDiskNearlyFull, Level::kWarning, "disk_nearly_full"},
        CauseRow{Cause::kDiskReadOnly, Level::kCritical, "disk_read_only"},
        CauseRow{Cause::kDiskSuspect, Level::kWarning, "disk_suspect"},
        CauseRow{Cause::kDiskWrittenOff, Level::kWarning, "disk_written_off"},
        CauseRow{Cause::kDriveDown, Level::kWarning, "drive_down"},
        CauseRow{Cause::kEpochMembersAway, Level::kWarning, "epoch_members_away"},
        CauseRow{Cause::kLibraryMissing, Level::kCritical, "library_missing"},
        CauseRow{Cause::kLibraryNotOpen, Level::kCritical, "library_not_open"},
        CauseRow{Cause::kLocalityStuck, Level::kCritical, "locality_stuck"},
        CauseRow{Cause::kNoDisk, Level::kWarning, "no_disk"},
        CauseRow{Cause::kNoEpochs, Level::kWarning, "no_epochs"},
        CauseRow{Cause::kNotReady, Level::kWarning, "not_ready"},
        CauseRow{Cause::kQuotaNearlyUsed, Level::kWarning, "quota_nearly_used"},
        CauseRow{Cause::kRecallFailed, Level::kCritical, "recall_failed"},
        CauseRow{Cause::kReloadFailed, Level::kWarning, "reload_failed"},
        CauseRow{Cause::kRestartPending, Level::kWarning, "restart_pending"},
        CauseRow{Cause::kScrubFailed, Level::kWarning, "scrub_failed"},
        CauseRow{Cause::kScrubOld, Level::kWarning, "scrub_old"},
    };
    static_assert(std::ranges::is_sorted(kCauses, {}, &CauseRow::cause));

    std::vector<Problem> problems;  // The worst first.
    std::uint64_t open_disks = 0;
    std::uint64_t objects = 0;  // On open disks.

    Level level() const { return problems.empty() ? Level::kGood : problems.front().level; }
};

// Reads only figures that are published already, so it never waits for a locality or a disk. Lives
// on the control reactor.
NodeHealth health_of(const Node& node, const Configuration& configuration,
                     const core::Clock& clock);

// "ok", "warning", "critical".
const char* to_string(NodeHealth::Level level);

// A list of objects with state, cause and text.
void write_problems(JsonWriter& json, const NodeHealth& health);
// The body of the reply to GET /v1/health.
std::string health_json(const NodeHealth& health);

}  // namespace fopd::daemon

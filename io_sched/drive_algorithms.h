#pragma once

#include <array>
#include <memory>
#include <span>
#include <string_view>

#include "io_sched/io_media.h"
#include "io_sched/io_scheduler.h"

namespace fopd::io_sched {

struct TapeSettings;

// An algorithm for drives, whose media change.
struct DriveAlgorithm {
    std::string_view name;
    std::string_view summary;
    std::array<bool, kIoTypeCount> serves;
    // `media` outlives the scheduler.
    std::unique_ptr<IoScheduler> (*make)(const TapeSettings& settings, const IoMedia& media);
};

// All algorithms for drives, by name. Static.
std::span<const DriveAlgorithm> drive_algorithms();
const DriveAlgorithm& default_drive_algorithm();

// In the order of arrival, whatever is loaded: a cartridge is changed whenever the next request
// needs another one.
std::unique_ptr<IoScheduler> make_drive_fifo(const TapeSettings& settings, const IoMedia& media);
// One mount for all reads that wait for a cartridge, in an order that makes locates short. The
// loaded cartridge is read first; the next is a cartridge whose oldest read has waited for too
// long, else one with requests of the first level by priority and urgency, and of these the one for
// which most bytes wait. Requests of a level go before those of later levels, also on the same
// cartridge; requests of later levels that have waited for too long are read with them, at most as
// many as there are of the first, or a few.
std::unique_ptr<IoScheduler> make_grouped_read(const TapeSettings& settings, const IoMedia& media);
// Writes of a collection go to the cartridge of its last write, and a drive keeps its cartridge
// while writes wait for it.
std::unique_ptr<IoScheduler> make_grouped_write(const TapeSettings& settings, const IoMedia& media);

}  // namespace fopd::io_sched

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

// All of them, by name. Static.
std::span<const DriveAlgorithm> drive_algorithms();
const DriveAlgorithm& default_drive_algorithm();

// In the order of arrival, whatever is loaded: a cartridge is changed whenever the next request
// needs another one.
std::unique_ptr<IoScheduler> make_drive_fifo(const TapeSettings& settings, const IoMedia& media);
// One mount for all reads that wait for a cartridge, in an order that makes locates short. The
// cartridge that is loaded goes on; the next is the one that has waited for too long, else the one
// for which most bytes wait. Foreground requests go before those of the background, but what of
// these has waited for too long is read with them, in as many parts as there are of the foreground
// or a few.
std::unique_ptr<IoScheduler> make_grouped_read(const TapeSettings& settings, const IoMedia& media);
// Writes of a collection stay on its cartridge, and a drive goes on with the cartridge that it has.
std::unique_ptr<IoScheduler> make_grouped_write(const TapeSettings& settings, const IoMedia& media);

}  // namespace fopd::io_sched

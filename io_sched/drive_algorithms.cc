#include "io_sched/drive_algorithms.h"

#include <algorithm>
#include <functional>

#include "io_sched/drive_scheduler.h"

namespace fopd::io_sched {

namespace {

class DriveFifo final : public DriveScheduler {
public:
    using DriveScheduler::DriveScheduler;

private:
    Answer choose(Instant now) override {
        for (const auto& [age, queue] : queues()) {
            IoRequest* const request = oldest_of(*queue);
            PartDrives chosen = choose_drives(*request, now);
            if (!chosen.empty()) return {.choice = {request, std::move(chosen)}};
        }
        return {};
    }
};

// The only code that knows every algorithm for drives. To add one: write it and add its row.
constexpr std::array kDriveAlgorithms{
    DriveAlgorithm{"fifo", "In the order of arrival.", {true, true, true}, &make_drive_fifo},
    DriveAlgorithm{"grouped_read",
                   "One mount for all that waits for a cartridge.",
                   {true, false, false},
                   &make_grouped_read},
    DriveAlgorithm{"grouped_write",
                   "A collection stays on its cartridge.",
                   {false, true, false},
                   &make_grouped_write},
};
static_assert(std::ranges::adjacent_find(kDriveAlgorithms, std::ranges::greater_equal{},
                                         &DriveAlgorithm::name) == kDriveAlgorithms.end(),
              "not sorted, or two share a name");
static_assert(kDriveAlgorithms[0].name == "fifo");

}  // namespace

std::span<const DriveAlgorithm> drive_algorithms() {
    return kDriveAlgorithms;
}

const DriveAlgorithm& default_drive_algorithm() {
    return kDriveAlgorithms[0];
}

std::unique_ptr<IoScheduler> make_drive_fifo(const TapeSettings& /*settings*/,
                                             const IoMedia& media) {
    return std::make_unique<DriveFifo>(media);
}

}  // namespace fopd::io_sched

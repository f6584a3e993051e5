#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/time.h"
#include "devices/tape/drive_model.h"
#include "library/cartridge.h"
#include "library/tape_figures.h"

namespace fopd::library {

// Estimates when recalls end, from the models of the drives and the pending recalls. Later requests
// are not considered. Pure.
class RecallForecast {
public:
    struct Options {
        Instant now{};
        // All recalls of a cartridge are read together, by priority and then in the order of the
        // tape; if false, recalls are read in the order in which they were added.
        bool grouped = true;
        // Drives take the time of their models; if false, they take no time.
        bool takes_time = true;
    };
    struct Drive {
        devices::DriveModel model{};
        std::optional<CartridgeId> cartridge{};  // The cartridge in the drive, or moving there.
        std::uint64_t position = 0;              // Comparable to Wait::offset.
        DriveActivity activity = DriveActivity::kIdle;
        Instant busy_since{};  // The begin of the activity.
        std::uint64_t busy_bytes = 0;
    };
    struct Wait {
        CartridgeId cartridge = 0;  // 0: it is not known.
        std::uint64_t capacity_bytes = 0;
        std::uint64_t offset = 0;  // The bytes on the cartridge before the copy.
        std::uint64_t size_bytes = 0;
        bool reads = false;         // A drive that has the cartridge reads it now.
        std::uint8_t priority = 0;  // A higher one goes first.
    };

    explicit RecallForecast(const Options& options) : options_(options) {}

    // All drives that can be used.
    void add(const Drive& drive);
    // In the order in which recalls are begun.
    void add(const Wait& wait) { waits_.push_back(wait); }

    // The expected end of each wait, in the order in which they were added. Called once. Nothing:
    // there is no drive, or the cartridge of the wait is unknown.
    std::vector<std::optional<Instant>> ends();

private:
    struct State {
        Drive drive{};
        Instant free_at{};
    };
    using Group = std::vector<std::size_t>;  // Indexes of waits for the same cartridge.

    std::vector<Group> groups() const;
    State* loaded(CartridgeId cartridge);
    State* first_free();
    void read(State& drive, const Group& group);
    Duration taking(Duration by_model) const {
        return options_.takes_time ? by_model : Duration{0};
    }

    const Options options_;
    std::vector<State> drives_;
    std::vector<Wait> waits_;
    std::vector<std::optional<Instant>> ends_;
};

}  // namespace fopd::library

#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/counter.h"
#include "core/metrics.h"
#include "core/time.h"
#include "library/cartridge.h"
#include "library/options.h"

namespace fopd::library {

// The activity of a drive. The order is that of the names below.
enum class DriveActivity : std::uint8_t {
    kIdle,
    kExchanging,  // A cartridge is brought, loaded, unloaded or put away.
    kReading,
    kWriting,  // Writes, or labels a cartridge.
    kDown,     // The drive is not used.
};
inline constexpr std::array<std::string_view, 5> kDriveActivityNames{"idle", "exchanging",
                                                                     "reading", "writing", "down"};

constexpr std::string_view to_string(DriveActivity activity) {
    return kDriveActivityNames[static_cast<std::size_t>(activity)];
}

// The figures of a drive.
struct DriveFigures {
    explicit DriveFigures(std::string_view its_name) : name(its_name) {}

    const std::string name;
    core::Counter is_present;  // 1 while the library has the drive.
    core::Counter activity;    // A DriveActivity.
    core::Counter mounts;
    core::Counter unmounts;
    core::Counter locates;  // Locates that moved the tape.
    // The time of these locates as predicted by the drive's model.
    core::Counter locate_predicted_ns;
    core::Counter locate_ns;  // The measured time of these locates.
    core::Counter read_bytes;
    core::Counter written_bytes;
    core::Counter failures;  // Requests that failed on the drive.
};

// The figures of a tape pool.
struct TapePoolFigures {
    explicit TapePoolFigures(std::string_view its_name) : name(its_name) {}

    const std::string name;
    core::Counter waiting_objects;  // Objects that need a copy.
    core::Counter waiting_bytes;
    core::Counter oldest_ns;  // An Instant: when the oldest of them began to wait.
    core::Counter copies;     // Copies that were written.
    core::Counter copied_bytes;
    core::Counter failures;  // Batches that ended early, and objects that cannot be copied.
};

// The figures of a tape library, for metrics. Written on the library's reactor, as things happen;
// collect() may be called on any thread.
class TapeFigures {
public:
    explicit TapeFigures(const std::vector<TapePoolOptions>& pools);
    TapeFigures(const TapeFigures&) = delete;
    TapeFigures& operator=(const TapeFigures&) = delete;

    // The figures of the drive with that name; valid as long as this object. A drive keeps its
    // figures when the library is opened again. Null: there were too many drives.
    static constexpr std::size_t kDrivesMax = 255;
    DriveFigures* drive(std::string_view name);
    // The figures of a pool, by its index in the options.
    TapePoolFigures& pool(std::size_t index) { return *pools_[index]; }
    core::Counter& media(CartridgeState state) { return media_[static_cast<std::size_t>(state)]; }

    struct Recalls {
        core::Counter waiting;  // Recalls that have not ended.
        core::Counter waiting_bytes;
        core::Counter oldest_ns;  // An Instant: when the oldest of them was asked for.
        core::Counter done;
        core::Counter failed;
    };
    Recalls recalls;

    // The figures of repacks and scrubs.
    struct Works {
        core::Counter moved_copies;
        core::Counter moved_bytes;
        core::Counter unmoved;  // Objects that could not be moved.
        core::Counter scrubbed_copies;
        core::Counter scrubbed_bytes;
        core::Counter damaged_copies;
    };
    Works works;

    void collect(core::MetricSink& sink, Instant now) const;

private:
    void collect_drive(core::MetricSink& sink, const DriveFigures& drive) const;
    void collect_pool(core::MetricSink& sink, const TapePoolFigures& pool, Instant now) const;
    void collect_recalls(core::MetricSink& sink, Instant now) const;
    void collect_works(core::MetricSink& sink) const;

    std::vector<std::unique_ptr<TapePoolFigures>> pools_;
    // The first drive_count_ pointers are set, and do not change any more.
    std::array<std::unique_ptr<DriveFigures>, kDrivesMax> drives_;
    std::atomic<std::size_t> drive_count_ = 0;
    std::array<core::Counter, kCartridgeStateNames.size()> media_;
};

// Stores an Instant in a counter.
inline void put_instant(core::Counter& into, Instant time) {
    into.set(static_cast<std::uint64_t>((time - Instant{}).count()));
}

}  // namespace fopd::library

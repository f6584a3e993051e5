#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/events.h"
#include "core/time.h"

namespace fopd::daemon {

// Lets events of each name through at kRatePerSecond, with bursts of kBurst, and counts the others.
// Thread-safe; the lock is held for a look-up only.
class RepeatLimiter {
public:
    static constexpr std::uint32_t kRatePerSecond = 10;
    static constexpr std::uint32_t kBurst = 20;
    // A flood ends, and is reported, when no event was held back for this long.
    static constexpr Duration kQuietAfter = 1s;
    // A flood that continues is reported this often.
    static constexpr Duration kReportEvery = 10s;
    // Further names share one limit; each emit() in the source has its own name.
    static constexpr std::size_t kNamesMax = 1024;
    static constexpr std::string_view kOtherNames = "other";

    // The events held back under one name.
    struct Repeats {
        std::string name;
        core::Level level = core::Level::kInfo;  // The level of the last event.
        std::uint64_t count = 0;
    };
    enum class Which : std::uint8_t { kDue, kAll };

    // Whether this event may be written; if not, it is counted.
    bool admit(std::string_view name, core::Level level, Instant now);
    // Takes the counts to be reported.
    std::vector<Repeats> take(Which which, Instant now);
    // Returns a count that could not be reported.
    void give_back(const Repeats& repeats);

private:
    struct Kind {
        Instant next_free;  // When the full burst is available again.
        Repeats held_back;
        Instant first_held_back;
        Instant last_held_back;
    };

    Kind& kind_of(std::string_view name, Instant now);

    std::mutex mutex_;
    std::map<std::string, Kind, std::less<>> kinds_;
};

}  // namespace fopd::daemon

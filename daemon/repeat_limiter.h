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

// Lets each kind of event through at most kRatePerSecond times a second, kBurst at once, and counts
// the others. Thread-safe; its lock is held for a look-up only.
class RepeatLimiter {
public:
    static constexpr std::uint32_t kRatePerSecond = 10;
    static constexpr std::uint32_t kBurst = 20;
    // A flood that was quiet for this long is over, and is reported.
    static constexpr Duration kQuietAfter = 1s;
    // One that goes on is reported this often.
    static constexpr Duration kReportEvery = 10s;
    // Names beyond these share one limit; there is one for each emit() in the source.
    static constexpr std::size_t kNamesMax = 1024;
    static constexpr std::string_view kOtherNames = "other";

    // What was held back of one name.
    struct Repeats {
        std::string name;
        core::Level level = core::Level::kInfo;  // Of the last of them.
        std::uint64_t count = 0;
    };
    enum class Which : std::uint8_t { kDue, kAll };

    // May this event be written? If not, it is counted.
    bool admit(std::string_view name, core::Level level, Instant now);
    // Takes what is to be reported.
    std::vector<Repeats> take(Which which, Instant now);
    // Puts back what could not be reported.
    void give_back(const Repeats& repeats);

private:
    struct Kind {
        Instant next_free;  // When the burst is whole again.
        Repeats held_back;
        Instant first_held_back;
        Instant last_held_back;
    };

    Kind& kind_of(std::string_view name, Instant now);

    std::mutex mutex_;
    std::map<std::string, Kind, std::less<>> kinds_;
};

}  // namespace fopd::daemon

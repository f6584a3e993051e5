#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/time.h"
#include "store/fid.h"

namespace fopd::library {

// Work on everything that is on a cartridge, which takes long. What it has done so far, since the
// node was started last.
struct MediumWork {
    enum class State : std::uint8_t {
        kRunning,
        kDone,
        kPartly,     // It is over, and something could not be done; `reason` says what.
        kCancelled,  // On request.
    };

    State state = State::kRunning;
    std::uint64_t copies = 0;  // That were on the cartridge when it began or went on.
    std::uint64_t bytes = 0;   // Theirs.
    std::uint64_t copies_done = 0;
    std::uint64_t bytes_done = 0;
    std::uint64_t failures = 0;
    std::string reason = {};
    Instant began_at{};
    Instant ended_at{};  // Once it is over.

    // A copy that failed.
    struct Failure {
        store::Fid fid{};
        std::uint32_t file = 0;  // The number of its tape file.
        std::string name = {};   // The object's; empty: it has none.
        std::string reason = {};
    };
    static constexpr std::size_t kListedMax = 1000;
    std::vector<Failure> listed = {};  // The first of them.

    void add(Failure failure) {
        ++failures;
        if (listed.size() < kListedMax) listed.push_back(std::move(failure));
    }
};

inline constexpr std::array<std::string_view, 4> kMediumWorkStateNames{"running", "done", "partly",
                                                                       "cancelled"};

constexpr std::string_view to_string(MediumWork::State state) {
    return kMediumWorkStateNames[static_cast<std::size_t>(state)];
}

}  // namespace fopd::library

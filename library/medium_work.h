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

// The progress of a repack or scrub, which takes long: it handles every live copy on a cartridge.
// Counts from the start of the work, or from the start of the node if that is later.
struct MediumWork {
    enum class State : std::uint8_t {
        kRunning,
        kDone,
        kPartly,     // The work is over, and some of it failed; `reason` says what.
        kCancelled,  // An administrator has ended it.
    };

    State state = State::kRunning;
    std::uint64_t copies = 0;  // The live copies on the cartridge when the work began or went on.
    std::uint64_t bytes = 0;   // The bytes of these copies.
    std::uint64_t copies_done = 0;
    std::uint64_t bytes_done = 0;
    std::uint64_t failures = 0;
    std::string reason = {};
    Instant began_at{};
    Instant ended_at{};  // Valid unless the state is kRunning.

    // A copy that failed.
    struct Failure {
        store::Fid fid{};
        std::uint32_t file = 0;  // The number of the tape file that has the copy.
        std::string name = {};   // The name of the object; empty: the object has none.
        std::string reason = {};
    };
    static constexpr std::size_t kListedMax = 1000;
    std::vector<Failure> listed = {};  // The first kListedMax failures.

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

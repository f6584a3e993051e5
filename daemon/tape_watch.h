#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/locality.h"
#include "library/library.h"

namespace fopd::daemon {

// The faults of the node's tapes that a locality knows.
struct TapeFindings {
    // Set only by the locality that has the library.
    std::optional<library::LibraryCondition> library{};
    // The live copies of objects of its disks, by the barcode of their cartridge.
    std::map<std::string, std::uint64_t> live_copies{};
    // Objects that are on tape only and could not be recalled.
    std::uint64_t unreadable_objects = 0;
    // Copies on tape that objects of its disks have, while the node has no library.
    std::uint64_t copies_without_library = 0;
};

// Counts copies on these cartridges. Runs on the reactor of the locality.
TapeFindings look_at_tapes(Locality& locality, const std::vector<library::Cartridge>& media);

// Brings together what the localities know of faults of the node's tapes. Lives on the control
// reactor.
class TapeWatch {
public:
    explicit TapeWatch(std::size_t locality_count) : findings_(locality_count) {}

    // The cartridges that are asked about next.
    const std::vector<library::Cartridge>& bad_media() const { return library().bad_media; }
    void take(std::uint32_t locality, TapeFindings findings) {
        findings_[locality] = std::move(findings);
    }

    // The condition of the library: no fault if the node has none.
    const library::LibraryCondition& library() const;
    // How many live copies are on a cartridge.
    std::uint64_t live_copies(const std::string& barcode) const;
    std::uint64_t unreadable_objects() const;
    std::uint64_t copies_without_library() const;

private:
    std::vector<TapeFindings> findings_;  // By locality; some seconds old.
};

}  // namespace fopd::daemon

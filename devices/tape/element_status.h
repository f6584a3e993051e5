#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "devices/tape/changer.h"
#include "devices/tape/scsi_pages.h"

namespace fopd::devices {

// An element as READ ELEMENT STATUS describes it.
struct ElementStatus {
    LibraryElement element;
    std::optional<Designator> device = {};  // Of a drive: which drive it is.

    friend bool operator==(const ElementStatus&, const ElementStatus&) = default;
};

struct ElementReport {
    // How many bytes the changer has; the report is cut if there are more than were sent.
    std::uint32_t size_bytes = 0;
    std::vector<ElementStatus> elements;
};

// Parses a report. If it is truncated, returns the elements before the cut. Elements of the robot's
// hand are left out.
ElementReport parse_element_status(ScsiBytes bytes);

}  // namespace fopd::devices

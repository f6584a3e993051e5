#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "devices/label.h"
#include "store/fid.h"

namespace fopd::daemon {

struct SlotEntry {
    store::Slot slot = 0;
    devices::DiskId disk{};
    std::string pool;
    bool empty = false;  // Nothing is on the disk: it was let go, or never opened.

    friend bool operator==(const SlotEntry&, const SlotEntry&) = default;
};

// Which disk has which slot of a node, now or ever before. A slot is in the name of every object of
// its disk, so the slot of a disk that is not there today is given to no other. Each disk's label
// says the same of itself.
class SlotTable {
public:
    // The first slot there is: 0 is nobody's.
    static constexpr store::Slot kFirst = 1;

    // Nothing when the text is no table.
    static std::optional<SlotTable> parse(std::string_view text);
    // A line for each slot: the slot, the disk's id, the pool, and whether it is empty.
    std::string text() const;

    // By ascending slot.
    const std::vector<SlotEntry>& entries() const { return entries_; }
    const SlotEntry* find(store::Slot slot) const;
    const SlotEntry* find(const devices::DiskId& disk) const;
    // Requires: neither the slot nor the disk is in the table.
    void add(SlotEntry entry);
    // Requires: the slot is in the table.
    void set_empty(store::Slot slot, bool empty);
    // One that nobody ever had; nothing when there is none.
    std::optional<store::Slot> unused() const;

private:
    std::vector<SlotEntry> entries_;
};

}  // namespace fopd::daemon

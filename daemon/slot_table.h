#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "devices/label.h"
#include "store/fid.h"

namespace fopd::daemon {

enum class SlotUse : std::uint8_t {
    kInUse,       // There may be objects on the disk.
    kEmpty,       // There are none: it was let go, or never opened.
    kWrittenOff,  // Those on it are forgotten, and it is not the node's any more.
};

struct SlotEntry {
    store::Slot slot = 0;
    devices::DiskId disk{};
    std::string pool;
    SlotUse use = SlotUse::kInUse;

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
    // A line for each slot: the slot, the disk's id, the pool, and what it is if not in use.
    std::string text() const;

    // By ascending slot.
    const std::vector<SlotEntry>& entries() const { return entries_; }
    const SlotEntry* find(store::Slot slot) const;
    const SlotEntry* find(const devices::DiskId& disk) const;
    // Requires: neither the slot nor the disk is in the table.
    void add(SlotEntry entry);
    // Requires: the slot is in the table.
    void set_use(store::Slot slot, SlotUse use);
    // One that nobody ever had; nothing when there is none.
    std::optional<store::Slot> unused() const;

private:
    std::vector<SlotEntry> entries_;
};

}  // namespace fopd::daemon

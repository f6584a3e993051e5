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
    kInUse,       // The disk may have objects.
    kEmpty,       // The disk has no objects: it was released, or never opened.
    kWrittenOff,  // The disk's objects are forgotten, and it is not the node's any more.
};

struct SlotEntry {
    store::Slot slot = 0;
    devices::DiskId disk{};
    std::string pool;
    SlotUse use = SlotUse::kInUse;
    // The disk's name and path in the configuration when it was opened last; empty if none was
    // recorded.
    std::string device{};
    std::string path{};
    // The end of the disk's last complete scrub, or when the disk was taken; 0 if unknown. Unix
    // time.
    std::int64_t scrubbed_at_s = 0;
    // Damaged blocks that this scrub found, and those that were read since.
    std::uint64_t damaged_blocks = 0;

    friend bool operator==(const SlotEntry&, const SlotEntry&) = default;
};

// Knows the disk that has each slot of a node, now or in the past. Because a slot is part of every
// object id of its disk, the slot of an absent disk is not given to another. Each disk's label
// records its slot, too.
class SlotTable {
public:
    // The lowest slot; 0 is never assigned.
    static constexpr store::Slot kFirst = 1;

    // Nothing if the text is not a table.
    static std::optional<SlotTable> parse(std::string_view text);
    // One line per slot: the slot, the disk's id, the pool, the facts that are recorded, and the
    // slot's use unless it is in use.
    std::string text() const;

    // By ascending slot.
    const std::vector<SlotEntry>& entries() const { return entries_; }
    const SlotEntry* find(store::Slot slot) const;
    const SlotEntry* find(const devices::DiskId& disk) const;
    // REQUIRES: neither the slot nor the disk is in the table.
    void add(SlotEntry entry);
    // REQUIRES: the slot is in the table.
    void set_use(store::Slot slot, SlotUse use);
    // REQUIRES: the slot is in the table; the name has no blank.
    void set_device(store::Slot slot, std::string device, std::string path);
    // REQUIRES: the slot is in the table.
    void set_damage(store::Slot slot, std::int64_t scrubbed_at_s, std::uint64_t damaged_blocks);
    // A slot that was never assigned; nothing if there is none.
    std::optional<store::Slot> unused() const;

private:
    std::vector<SlotEntry> entries_;
};

}  // namespace fopd::daemon

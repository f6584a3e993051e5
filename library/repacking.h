#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "core/cancel.h"
#include "library/medium_work.h"
#include "library/staging_disks.h"
#include "library/tape_library.h"
#include "store/copy.h"

namespace fopd::library {

// A repack of a cartridge, from its begin or since the node was started. Kept for those who ask
// what it has done.
struct TapeLibrary::Repacking {
    CartridgeId id = 0;
    store::Cartridge on{};
    objects::PoolId pool = 0;
    MediumWork work{};
    core::CancelSource cancel{};
    bool runs = true;
    store::CopyPlace from{};  // Copies before it have had their turn.
    bool at_end = false;
    std::set<store::Fid> failed{};       // Objects.
    std::uint32_t failures_in_turn = 0;  // Batches.
};

// Objects whose copies are moved at the same time.
struct TapeLibrary::MoveBatch {
    struct Item {
        StagingDisks::Move move{};
        std::uint32_t locality = 0;
        bool is_recalled = false;
        bool has_failed = false;
    };
    std::vector<Item> items{};

    Item* find(store::Fid fid) {
        for (Item& each : items) {
            if (each.move.copy.fid == fid) return &each;
        }
        return nullptr;
    }
};

// Live copies on a cartridge, in the order of the tape.
struct TapeLibrary::CopyPage {
    std::vector<MoveBatch::Item> items{};
    // More follow behind it; nothing: these are the last ones.
    std::optional<store::CopyPlace> known_to{};
    std::map<store::Slot, std::uint64_t> room{};  // For objects that come back, of each disk.
};

}  // namespace fopd::library

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
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
            if (each.move.fid == fid) return &each;
        }
        return nullptr;
    }
};

}  // namespace fopd::library

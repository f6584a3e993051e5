#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "library/medium_tasks.h"
#include "library/staging_disks.h"
#include "library/tape_library.h"
#include "store/copy.h"

namespace fopd::library {

// A repack of a cartridge. Repacks of several cartridges run at the same time.
struct TapeLibrary::Repacking : MediumTask {
    store::Cartridge on{};
    objects::PoolId pool = 0;
    store::CopyPosition from{};  // Copies before this position were handled in this pass.
    bool at_end = false;
    std::set<store::Fid> failed{};       // The objects that could not be moved.
    std::set<store::Fid> asked_for{};    // The objects of the batch that it has recalled.
    std::uint32_t failures_in_turn = 0;  // Batches in a row that moved no object.
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

// A page of the live copies on a cartridge, in the order of the tape.
struct TapeLibrary::CopyPage {
    std::vector<MoveBatch::Item> items{};
    // The page is complete up to this position, and further copies may follow; nothing: the page
    // has the last copies of the cartridge.
    std::optional<store::CopyPosition> known_to{};
    std::map<store::Slot, std::uint64_t> room{};  // The bytes of each disk for recalled objects.
};

}  // namespace fopd::library

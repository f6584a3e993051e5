#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "store/copy.h"

namespace fopd::library {

// The number of a cartridge in its node, by which records of copies name it. Never used again for
// another cartridge.
using CartridgeId = std::uint32_t;

// The state of a cartridge, by which it may be read, written or neither. The order is that of docs
// and of the names below.
enum class CartridgeState : std::uint8_t {
    kBlank,     // Nothing is on it; it can be labelled for any pool.
    kOk,        // Has the node's label; can be read and written.
    kFull,      // Can be read. Nothing more fits.
    kReadOnly,  // Can be read. Writing it failed, or it is write-protected.
    kSuspect,   // Can be read. Its content is not as recorded, such as shorter.
    kForeign,   // Has data that the node has not written, or another cartridge's label.
    kFailed,    // Cannot be read.
    kMissing,   // Not in the library.
    kExported,  // An administrator has taken it out of use, so that it may leave the library.
    kDisabled,  // Cannot be told from another one of the library.
};
inline constexpr std::array<std::string_view, 10> kCartridgeStateNames{
    "blank",   "ok",     "full",    "read-only", "suspect",
    "foreign", "failed", "missing", "exported",  "disabled"};

constexpr std::string_view to_string(CartridgeState state) {
    return kCartridgeStateNames[static_cast<std::size_t>(state)];
}
std::optional<CartridgeState> parse_cartridge_state(std::string_view name);

// Copies on a cartridge in this state can be read.
constexpr bool is_readable(CartridgeState state) {
    return state == CartridgeState::kOk || state == CartridgeState::kFull ||
           state == CartridgeState::kReadOnly || state == CartridgeState::kSuspect;
}

// The cartridge is not there, or shall not be used, or cannot be told to be the right one.
constexpr bool is_away(CartridgeState state) {
    return state == CartridgeState::kMissing || state == CartridgeState::kExported ||
           state == CartridgeState::kForeign || state == CartridgeState::kDisabled;
}

// The reason of a state begins so that the next mount may end.
inline constexpr std::string_view kDoesNotLoad = "it does not load: ";

// Whether its live copies are moved to other cartridges of the pool. Unless it is kNone, nothing is
// written to it; as long as it is kRunning, its copies do not count.
enum class Repack : std::uint8_t {
    kNone,
    kRunning,
    kPartly,  // It is over; some copies could not be moved.
    kDone,    // Nothing on it is needed any more.
};
inline constexpr std::array<std::string_view, 4> kRepackNames{"none", "running", "partly", "done"};

constexpr std::string_view to_string(Repack repack) {
    return kRepackNames[static_cast<std::size_t>(repack)];
}
std::optional<Repack> parse_repack(std::string_view name);

// A cartridge of a library, as the node knows it.
struct Cartridge {
    CartridgeId id = 0;
    std::string barcode;
    // Of the label VOL1; empty until the cartridge is labelled.
    std::string vsn = {};
    // The pool of its objects; empty until it is labelled.
    std::string pool = {};
    std::string technology = {};  // Such as "lto9"; empty until it was loaded once.
    std::string serial = {};      // Of the cartridge's own memory; empty if it has none.
    // Grows with each label. Copies that were made under an earlier generation are gone.
    std::uint32_t generation = 0;
    CartridgeState state = CartridgeState::kBlank;
    std::string reason = {};  // Why it has this state, in words; empty if it needs none.
    std::uint64_t capacity_bytes = 0;
    // The durable end of its data: complete tape files, and the block behind the last of them.
    std::uint64_t files = 0;
    std::uint64_t end_block = 0;
    // The last of the files that lists the others; 0: there is none.
    std::uint64_t index_file = 0;
    std::uint64_t index_block = 0;
    std::uint64_t used_bytes = 0;  // By the tape files up to there.
    std::uint64_t mounts = 0;
    // Reads and writes of it that failed, since its label was written.
    std::uint64_t failures = 0;
    std::string collection = {};  // Of the objects that were written last; empty: of none.
    // The number in the ids of its tape files, unless it is its own: the table of media was lost
    // since. kUnknownNumber: the next read or write finds it on the tape.
    std::optional<CartridgeId> number_on_tape = {};
    static constexpr CartridgeId kUnknownNumber = 0;
    // What it was before it became missing, exported, foreign or disabled, if it is that again when
    // it can be used again: full, read-only, suspect or failed, and why.
    std::optional<CartridgeState> state_before = {};
    std::string reason_before = {};
    // A label of this generation was begun, and may not be there.
    bool is_label_pending = false;
    Repack repack = Repack::kNone;
    // The tape file and the place in it with which a scrub goes on; 0: none is in progress.
    std::uint32_t scrub_file = 0;
    std::uint64_t scrub_member = 0;
    std::uint64_t scrubbed_s = 0;      // When one ended last, since 1970 UTC; 0: never.
    std::uint64_t damaged_copies = 0;  // That the latest one has found.

    // The number that its label has, or will have, as records of copies have it: the first
    // characters of the barcode.
    store::VsnText vsn_text() const;
    // What lists say of it: the reason of its state, or that it is repacked; empty: nothing.
    std::string_view remark() const;
    // Notes a label without files behind it. The pool is empty if it is not known.
    void begin_generation(std::uint32_t number, std::string_view of_pool);

    friend bool operator==(const Cartridge&, const Cartridge&) = default;
};

// The cartridge on which a copy was made. Null: it is none of these, or was formatted since.
const Cartridge* find_cartridge(std::span<const Cartridge> all, const store::Cartridge& copied_to);

}  // namespace fopd::library

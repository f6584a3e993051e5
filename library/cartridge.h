#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "devices/label.h"
#include "store/copy.h"

namespace fopd::library {

// The number of a cartridge in the table of media. A number is never given to another cartridge.
using CartridgeId = std::uint32_t;

// The state of a cartridge; it decides whether the cartridge may be read or written. The order is
// that of the documents and of the names below.
enum class CartridgeState : std::uint8_t {
    kBlank,     // Nothing is on it; it can be labelled for any pool.
    kOk,        // Has the node's label; can be read and written.
    kFull,      // Can be read. Nothing more fits.
    kReadOnly,  // Can be read. Writing it failed, or it is write-protected.
    kSuspect,   // Can be read. Its data differ from the records, or reading failed.
    kForeign,   // Has data that this node did not write, or the label of another cartridge.
    kFailed,    // Cannot be read.
    kMissing,   // Not in the library.
    kExported,  // An administrator has taken it out of use, so that it may leave the library.
    kDisabled,  // Cannot be told from another cartridge of the library.
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

// Whether the cartridge is not in the library, must not be used, or may not be the cartridge of
// this record.
constexpr bool is_away(CartridgeState state) {
    return state == CartridgeState::kMissing || state == CartridgeState::kExported ||
           state == CartridgeState::kForeign || state == CartridgeState::kDisabled;
}

// The begin of the reason of a state that ends when the cartridge is loaded successfully.
inline constexpr std::string_view kDoesNotLoad = "it does not load: ";

// The repack of a cartridge, which moves its live copies to other cartridges of the pool. Unless it
// is kNone, nothing is written to the cartridge; while it is kRunning, copies there do not count.
enum class Repack : std::uint8_t {
    kNone,
    kRunning,
    kPartly,  // The repack is over; some copies could not be moved.
    kDone,    // The repack is over; the cartridge has no live copy.
};
inline constexpr std::array<std::string_view, 4> kRepackNames{"none", "running", "partly", "done"};

constexpr std::string_view to_string(Repack repack) {
    return kRepackNames[static_cast<std::size_t>(repack)];
}
std::optional<Repack> parse_repack(std::string_view name);

// The rescue of a cartridge, which makes objects from the copies that a lost node has written to
// it.
enum class Rescue : std::uint8_t {
    kNone,
    kRunning,  // Nothing is written to the cartridge meanwhile.
    kPartly,   // The rescue is over; some copies have become no object.
    kDone,
};
inline constexpr std::array<std::string_view, 4> kRescueNames{"none", "running", "partly", "done"};

constexpr std::string_view to_string(Rescue rescue) {
    return kRescueNames[static_cast<std::size_t>(rescue)];
}
std::optional<Rescue> parse_rescue(std::string_view name);

// The record of a cartridge in the table of media.
struct Cartridge {
    CartridgeId id = 0;
    std::string barcode;
    // The volume serial number in the label VOL1; empty until the cartridge is labelled.
    std::string vsn = {};
    // The pool of its objects; empty until it is labelled.
    std::string pool = {};
    std::string technology = {};  // Such as "lto9"; empty until it was loaded once.
    std::string serial = {};      // From the cartridge's own memory; empty if it has none.
    // How often the cartridge was labelled. Copies of an earlier generation are gone.
    std::uint32_t generation = 0;
    CartridgeState state = CartridgeState::kBlank;
    std::string reason = {};  // Why it has this state, for people; empty if there is no reason.
    std::uint64_t capacity_bytes = 0;
    // The durable end of its data: complete tape files, and the block behind the last of them.
    std::uint64_t files = 0;
    std::uint64_t end_block = 0;
    // The last index file, which lists the copies in files before it; 0: there is none.
    std::uint64_t index_file = 0;
    std::uint64_t index_block = 0;
    std::uint64_t used_bytes = 0;  // The bytes that tape files take, up to end_block.
    std::uint64_t mounts = 0;
    // Failed reads and writes of the cartridge, since its label was written.
    std::uint64_t failures = 0;
    std::string collection = {};  // The collection of the objects that were written last.
    // The number in the ids of its tape files, if that is not `id`: they were written before the
    // table of media was lost. kUnknownNumber: the next read or write finds the number on the tape.
    std::optional<CartridgeId> number_on_tape = {};
    static constexpr CartridgeId kUnknownNumber = 0;
    // The node in its label and files, if that is another node, whose objects were rescued.
    std::optional<devices::NodeId> node_on_tape = {};
    // The state and reason that a missing, exported, foreign or disabled cartridge has again when
    // it can be used again: full, read-only, suspect or failed. Nothing: it becomes ok or blank.
    std::optional<CartridgeState> state_before = {};
    std::string reason_before = {};
    // The write of the label of this generation has begun, and may not have succeeded.
    bool is_label_pending = false;
    Repack repack = Repack::kNone;
    Rescue rescue = Rescue::kNone;
    // A scrub goes on at this tape file, and at this offset in its data; file 0: no scrub is in
    // progress.
    std::uint32_t scrub_file = 0;
    std::uint64_t scrub_member = 0;
    std::uint64_t scrubbed_s = 0;      // The end of the last scrub, since 1970 UTC; 0: never.
    std::uint64_t damaged_copies = 0;  // The damaged copies that the latest scrub has found.

    // The volume serial number that its label has, or will have, and by which records of copies
    // name the cartridge: the first six characters of the barcode.
    store::VsnText vsn_text() const;
    // The remark in lists: the reason of its state, or the state of its repack; empty: none.
    std::string_view remark() const;
    // Notes a new label without files behind it. `of_pool` is empty if the pool is unknown.
    void begin_generation(std::uint32_t number, std::string_view of_pool);

    friend bool operator==(const Cartridge&, const Cartridge&) = default;
};

// The cartridge with the copy. Null: it is not in `all`, or was formatted after the copy was
// written.
const Cartridge* find_cartridge(std::span<const Cartridge> all, const store::Cartridge& copied_to);

}  // namespace fopd::library

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "fop/fid.h"

namespace fopd::fop {

// The payloads of replies that list many things: a sequence of entries, each with a fixed part and
// a text (docs/formats/listing.md). Texts are borrowed: during the call when writing, from the
// payload when reading.

// A payload of this size fits into every message to a client, whatever else the reply contains.
inline constexpr std::size_t kListingBytesMax = 32U << 10;

// The size of an object whose disk is missing, or that the caller may not read.
inline constexpr std::uint64_t kSizeUnknown = ~std::uint64_t{0};

// An object with a name.
struct ListEntry {
    Fid fid{};
    std::uint64_t size_bytes = 0;
    std::uint64_t changed_ns = 0;  // Nanoseconds since 1970.
    std::string_view name{};
    friend bool operator==(const ListEntry&, const ListEntry&) = default;
};

enum class ListedSlotState : std::uint8_t {
    kOnline = 1,
    kReadOnly = 2,
    kMissing = 3,  // Its disk is absent.
    kUnused = 4,   // It has no disk, and nothing is waited for.
    kOther = 255,  // When reading: a state that this reader does not know.
};

// A slot: the locality where fops on its objects run best, and whether it accepts new objects.
struct ListedSlot {
    std::uint16_t slot = 0;
    std::uint16_t locality = 0;
    ListedSlotState state = ListedSlotState::kOnline;
    bool in_default_pool = false;
    std::uint64_t free_bytes = 0;
    std::string_view pool{};
    friend bool operator==(const ListedSlot&, const ListedSlot&) = default;
};

struct PoolEntry {
    std::uint64_t total_bytes = 0;
    std::uint64_t used_bytes = 0;
    std::uint64_t free_bytes = 0;
    std::uint64_t objects = 0;
    std::string_view pool{};
    friend bool operator==(const PoolEntry&, const PoolEntry&) = default;
};

// The use and limits of a pool, or of one owner in it.
struct QuotaEntry {
    static constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};
    enum class Whose : std::uint8_t { kPool = 1, kOwner = 2 };

    std::uint64_t used_bytes = 0;
    std::uint64_t limit_bytes = kNoLimit;
    std::uint64_t used_objects = 0;
    std::uint64_t limit_objects = kNoLimit;
    Whose whose = Whose::kOwner;
    std::string_view pool{};
    std::string_view owner{};  // Empty for the pool itself.
    friend bool operator==(const QuotaEntry&, const QuotaEntry&) = default;
};

// A recall: an object whose bytes come back from tape.
struct RecallEntry {
    static constexpr std::uint64_t kUnknown = ~std::uint64_t{0};
    enum class State : std::uint8_t {
        kWaiting = 1,
        kReading = 2,
        kOther = 255,  // When reading: a state that this reader does not know.
    };

    Fid fid{};
    std::uint64_t size_bytes = 0;
    std::uint64_t place = 0;               // How many recalls are to end before it.
    std::uint64_t asked_ms = 0;            // How long ago it was asked for.
    std::uint64_t expected_ms = kUnknown;  // How long it will take.
    State state = State::kWaiting;
    std::uint8_t priority = 0;
    std::string_view cartridge{};  // The barcode of the copy that will be read.
    std::string_view name{};       // Empty: it has none, or the caller may not know it.
    std::string_view requester{};  // The principal who asked first; empty: unknown.
    friend bool operator==(const RecallEntry&, const RecallEntry&) = default;
};

// A format of a cartridge that has not ended.
struct FormatEntry {
    enum class State : std::uint8_t {
        kWaiting = 1,  // For a drive; it can be cancelled.
        kRunning = 2,
        kOther = 255,  // When reading: a state that this reader does not know.
    };

    std::uint64_t asked_ms = 0;  // How long ago it was asked for.
    State state = State::kWaiting;
    std::string_view cartridge{};  // Its barcode.
    std::string_view pool{};       // For which it gets a label.
    friend bool operator==(const FormatEntry&, const FormatEntry&) = default;
};

// A copy of bytes of an object on a cartridge.
struct CopyEntry {
    std::uint64_t offset = 0;  // In the object.
    std::uint64_t length = 0;
    std::uint64_t block = 0;       // The block of the tape at which the tape file begins.
    std::uint32_t file = 0;        // The number of the tape file.
    std::uint32_t written_s = 0;   // Since 1970 UTC.
    std::string_view cartridge{};  // Its barcode, or if that is unknown, the number in its label.
    std::string_view state{};      // Of the cartridge; a word, such as "ok"; empty: unknown.
    friend bool operator==(const CopyEntry&, const CopyEntry&) = default;
};

// A cartridge.
struct MediumEntry {
    std::uint64_t capacity_bytes = 0;
    std::uint64_t used_bytes = 0;
    std::uint64_t dead_bytes = 0;  // The part of `used_bytes` that no object has any more.
    std::uint64_t files = 0;
    std::uint64_t mounts = 0;
    std::uint32_t generation = 0;
    // When the last scrub ended, in seconds since 1970 UTC. 0: never.
    std::uint64_t scrubbed_s = 0;
    std::uint64_t damaged_copies = 0;  // How many damaged copies the latest scrub found.
    std::uint64_t live_bytes = 0;      // Of the copies that objects have.
    std::uint64_t failures = 0;        // Failed reads and writes since it was labelled.
    std::string_view barcode{};
    std::string_view pool{};
    std::string_view technology{};
    std::string_view state{};   // A word, such as "ok" or "full".
    std::string_view drive{};   // The drive that has loaded it; empty: none.
    std::string_view reason{};  // Why it has the state.
    friend bool operator==(const MediumEntry&, const MediumEntry&) = default;
};

// A copy on a cartridge that work on the cartridge could not handle.
struct FailedCopyEntry {
    Fid fid{};
    std::uint32_t file = 0;     // The number of its tape file.
    std::string_view name{};    // The object's; empty: it has none.
    std::string_view reason{};  // At most kReasonBytesMax.
    static constexpr std::size_t kReasonBytesMax = 512;
    friend bool operator==(const FailedCopyEntry&, const FailedCopyEntry&) = default;
};

// Builds a listing payload.
class ListingWriter {
public:
    explicit ListingWriter(std::span<std::byte> into) : into_(into) {}

    // Returns false, and changes nothing, if the entry does not fit.
    bool add(const ListEntry& entry);
    bool add(const ListedSlot& entry);
    bool add(const PoolEntry& entry);
    bool add(const QuotaEntry& entry);
    bool add(const RecallEntry& entry);
    bool add(const FormatEntry& entry);
    bool add(const CopyEntry& entry);
    bool add(const MediumEntry& entry);
    bool add(const FailedCopyEntry& entry);
    std::span<const std::byte> written() const { return into_.first(size_); }

private:
    template <typename Entry>
    bool put_entry(const Entry& entry);

    std::span<std::byte> into_;
    std::size_t size_ = 0;
};

// Read the entries of a payload. kInvalid if it is malformed.
Result<std::vector<ListEntry>> read_list(std::span<const std::byte> payload);
Result<std::vector<ListedSlot>> read_slots(std::span<const std::byte> payload);
Result<std::vector<PoolEntry>> read_pools(std::span<const std::byte> payload);
Result<std::vector<QuotaEntry>> read_quotas(std::span<const std::byte> payload);
Result<std::vector<RecallEntry>> read_recalls(std::span<const std::byte> payload);
Result<std::vector<FormatEntry>> read_formats(std::span<const std::byte> payload);
Result<std::vector<CopyEntry>> read_copies(std::span<const std::byte> payload);
Result<std::vector<MediumEntry>> read_media(std::span<const std::byte> payload);
Result<std::vector<FailedCopyEntry>> read_failed_copies(std::span<const std::byte> payload);

}  // namespace fopd::fop

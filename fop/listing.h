#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "fop/fid.h"

namespace fopd::fop {

// The payloads of replies that tell of many things: entries one behind the other, each of a fixed
// part and a text (docs/formats/listing.md). Texts are borrowed: for the call when writing, from
// the payload when reading.

// A payload of so many bytes fits into every message to a client, whatever else the reply says.
inline constexpr std::size_t kListingBytesMax = 32U << 10;

// The size of an object whose disk is missing, or that the caller may not read.
inline constexpr std::uint64_t kSizeUnknown = ~std::uint64_t{0};

// An object with a name.
struct ListEntry {
    Fid fid{};
    std::uint64_t size_bytes = 0;
    std::uint64_t changed_ns = 0;  // Since 1970.
    std::string_view name{};
    friend bool operator==(const ListEntry&, const ListEntry&) = default;
};

enum class SlotState : std::uint8_t {
    kOnline = 1,
    kReadOnly = 2,
    kMissing = 3,  // Its disk is not there.
    kOther = 255,  // Reading: a state newer than the reader.
};

// A slot: to which locality fops about its objects go best, and whether new ones may be made there.
struct SlotEntry {
    std::uint16_t slot = 0;
    std::uint16_t locality = 0;
    SlotState state = SlotState::kOnline;
    bool in_default_pool = false;
    std::uint64_t free_bytes = 0;
    std::string_view pool{};
    friend bool operator==(const SlotEntry&, const SlotEntry&) = default;
};

struct PoolEntry {
    std::uint64_t total_bytes = 0;
    std::uint64_t used_bytes = 0;
    std::uint64_t free_bytes = 0;
    std::uint64_t objects = 0;
    std::string_view pool{};
    friend bool operator==(const PoolEntry&, const PoolEntry&) = default;
};

// What a pool's objects have, or those of one owner in it, and what they may have.
struct QuotaEntry {
    static constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};
    enum class Whose : std::uint8_t { kPool = 1, kOwner = 2 };

    std::uint64_t used_bytes = 0;
    std::uint64_t limit_bytes = kNoLimit;
    std::uint64_t used_objects = 0;
    std::uint64_t limit_objects = kNoLimit;
    Whose whose = Whose::kOwner;
    std::string_view pool{};
    std::string_view owner{};  // Empty of a pool.
    friend bool operator==(const QuotaEntry&, const QuotaEntry&) = default;
};

// Puts a payload together.
class ListingWriter {
public:
    explicit ListingWriter(std::span<std::byte> into) : into_(into) {}

    // False: it does not fit any more, and nothing has changed.
    bool add(const ListEntry& entry);
    bool add(const SlotEntry& entry);
    bool add(const PoolEntry& entry);
    bool add(const QuotaEntry& entry);
    std::span<const std::byte> written() const { return into_.first(size_); }

private:
    std::span<std::byte> into_;
    std::size_t size_ = 0;
};

// The entries of a payload. kInvalid for what is none.
Result<std::vector<ListEntry>> read_list(std::span<const std::byte> payload);
Result<std::vector<SlotEntry>> read_slots(std::span<const std::byte> payload);
Result<std::vector<PoolEntry>> read_pools(std::span<const std::byte> payload);
Result<std::vector<QuotaEntry>> read_quotas(std::span<const std::byte> payload);

}  // namespace fopd::fop

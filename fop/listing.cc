#include "fop/listing.h"

#include "fop/bytes.h"
#include "fop/name.h"
#include "fop/principal.h"

namespace fopd::fop {

namespace {

constexpr std::size_t kListFixedBytes = 34;
constexpr std::size_t kSlotFixedBytes = 16;
constexpr std::size_t kPoolFixedBytes = 34;
constexpr std::size_t kQuotaFixedBytes = 37;

std::string_view take_text(ByteReader& reader) {
    const auto bytes = reader.take(reader.number<std::uint16_t>());
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void put_text(ByteWriter& writer, std::string_view text) {
    writer.number(static_cast<std::uint16_t>(text.size()));
    writer.put(std::as_bytes(std::span(text)));
}

ListedSlotState listed_slot_state(std::uint8_t number) {
    switch (number) {
        case static_cast<std::uint8_t>(ListedSlotState::kOnline): return ListedSlotState::kOnline;
        case static_cast<std::uint8_t>(ListedSlotState::kReadOnly):
            return ListedSlotState::kReadOnly;
        case static_cast<std::uint8_t>(ListedSlotState::kMissing): return ListedSlotState::kMissing;
        case static_cast<std::uint8_t>(ListedSlotState::kUnused): return ListedSlotState::kUnused;
        default: return ListedSlotState::kOther;
    }
}

// Each function reads one entry; false if the entry is malformed.
bool take(ByteReader& reader, ListEntry& entry) {
    entry.fid.high = reader.number<std::uint64_t>();
    entry.fid.low = reader.number<std::uint64_t>();
    entry.size_bytes = reader.number<std::uint64_t>();
    entry.changed_ns = reader.number<std::uint64_t>();
    entry.name = take_text(reader);
    return reader.ok() && check_object_name(entry.name).has_value();
}

bool take(ByteReader& reader, ListedSlot& entry) {
    entry.slot = reader.number<std::uint16_t>();
    entry.locality = reader.number<std::uint16_t>();
    entry.state = listed_slot_state(reader.number<std::uint8_t>());
    const auto in_default_pool = reader.number<std::uint8_t>();
    entry.in_default_pool = in_default_pool == 1;
    entry.free_bytes = reader.number<std::uint64_t>();
    entry.pool = take_text(reader);
    return reader.ok() && in_default_pool <= 1 && is_name(entry.pool);
}

bool take(ByteReader& reader, PoolEntry& entry) {
    entry.total_bytes = reader.number<std::uint64_t>();
    entry.used_bytes = reader.number<std::uint64_t>();
    entry.free_bytes = reader.number<std::uint64_t>();
    entry.objects = reader.number<std::uint64_t>();
    entry.pool = take_text(reader);
    return reader.ok() && is_name(entry.pool);
}

bool take(ByteReader& reader, QuotaEntry& entry) {
    entry.used_bytes = reader.number<std::uint64_t>();
    entry.limit_bytes = reader.number<std::uint64_t>();
    entry.used_objects = reader.number<std::uint64_t>();
    entry.limit_objects = reader.number<std::uint64_t>();
    entry.whose = static_cast<QuotaEntry::Whose>(reader.number<std::uint8_t>());
    entry.pool = take_text(reader);
    entry.owner = take_text(reader);
    const bool of_pool = entry.whose == QuotaEntry::Whose::kPool;
    const bool of_owner = entry.whose == QuotaEntry::Whose::kOwner;
    return reader.ok() && is_name(entry.pool) && is_name(entry.owner) &&
           (of_owner || (of_pool && entry.owner.empty()));
}

template <typename Entry>
Result<std::vector<Entry>> read_all(std::span<const std::byte> payload) {
    std::vector<Entry> entries;
    ByteReader reader(payload);
    while (!reader.complete()) {
        if (!take(reader, entries.emplace_back())) {
            return std::unexpected(Error{.code = Errc::kInvalid, .context = "entry of a listing"});
        }
    }
    return entries;
}

}  // namespace

bool ListingWriter::add(const ListEntry& entry) {
    ENSURE(check_object_name(entry.name).has_value());
    if (into_.size() - size_ < kListFixedBytes + entry.name.size()) return false;
    ByteWriter writer(into_.subspan(size_));
    writer.number(entry.fid.high);
    writer.number(entry.fid.low);
    writer.number(entry.size_bytes);
    writer.number(entry.changed_ns);
    put_text(writer, entry.name);
    size_ += writer.size();
    return true;
}

bool ListingWriter::add(const ListedSlot& entry) {
    ENSURE(is_name(entry.pool));
    if (into_.size() - size_ < kSlotFixedBytes + entry.pool.size()) return false;
    ByteWriter writer(into_.subspan(size_));
    writer.number(entry.slot);
    writer.number(entry.locality);
    writer.number(static_cast<std::uint8_t>(entry.state));
    writer.number(static_cast<std::uint8_t>(entry.in_default_pool ? 1 : 0));
    writer.number(entry.free_bytes);
    put_text(writer, entry.pool);
    size_ += writer.size();
    return true;
}

bool ListingWriter::add(const PoolEntry& entry) {
    ENSURE(is_name(entry.pool));
    if (into_.size() - size_ < kPoolFixedBytes + entry.pool.size()) return false;
    ByteWriter writer(into_.subspan(size_));
    writer.number(entry.total_bytes);
    writer.number(entry.used_bytes);
    writer.number(entry.free_bytes);
    writer.number(entry.objects);
    put_text(writer, entry.pool);
    size_ += writer.size();
    return true;
}

bool ListingWriter::add(const QuotaEntry& entry) {
    ENSURE(is_name(entry.pool));
    ENSURE(is_name(entry.owner));
    if (into_.size() - size_ < kQuotaFixedBytes + entry.pool.size() + entry.owner.size()) {
        return false;
    }
    ByteWriter writer(into_.subspan(size_));
    writer.number(entry.used_bytes);
    writer.number(entry.limit_bytes);
    writer.number(entry.used_objects);
    writer.number(entry.limit_objects);
    writer.number(static_cast<std::uint8_t>(entry.whose));
    put_text(writer, entry.pool);
    put_text(writer, entry.owner);
    size_ += writer.size();
    return true;
}

Result<std::vector<ListEntry>> read_list(std::span<const std::byte> payload) {
    return read_all<ListEntry>(payload);
}
Result<std::vector<ListedSlot>> read_slots(std::span<const std::byte> payload) {
    return read_all<ListedSlot>(payload);
}
Result<std::vector<PoolEntry>> read_pools(std::span<const std::byte> payload) {
    return read_all<PoolEntry>(payload);
}
Result<std::vector<QuotaEntry>> read_quotas(std::span<const std::byte> payload) {
    return read_all<QuotaEntry>(payload);
}

}  // namespace fopd::fop

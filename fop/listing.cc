#include "fop/listing.h"

#include <array>

#include "fop/bodies.h"
#include "fop/bytes.h"
#include "fop/name.h"
#include "fop/principal.h"

namespace fopd::fop {

namespace {

constexpr std::size_t kListFixedBytes = 34;
constexpr std::size_t kSlotFixedBytes = 16;
constexpr std::size_t kPoolFixedBytes = 34;
constexpr std::size_t kQuotaFixedBytes = 37;
constexpr std::size_t kRecallFixedBytes = 56;
constexpr std::size_t kFormatFixedBytes = 13;
constexpr std::size_t kCopyFixedBytes = 36;
constexpr std::size_t kMediumFixedBytes = 88;
constexpr std::size_t kFailedCopyFixedBytes = 24;

std::string_view take_text(ByteReader& reader) {
    const auto bytes = reader.take(reader.number<std::uint16_t>());
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void put_text(ByteWriter& writer, std::string_view text) {
    writer.number(static_cast<std::uint16_t>(text.size()));
    writer.put(std::as_bytes(std::span(text)));
}

// Each number has as many bytes as its type.
template <typename... Number>
void take_numbers(ByteReader& reader, Number&... into) {
    ((into = reader.number<Number>()), ...);
}

template <typename... Number>
void put_numbers(ByteWriter& writer, Number... numbers) {
    (writer.number(numbers), ...);
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
bool take_entry(ByteReader& reader, ListEntry& entry) {
    take_numbers(reader, entry.fid.high, entry.fid.low, entry.size_bytes, entry.changed_ns);
    entry.name = take_text(reader);
    return reader.ok() && check_object_name(entry.name).has_value();
}

bool take_entry(ByteReader& reader, ListedSlot& entry) {
    take_numbers(reader, entry.slot, entry.locality);
    entry.state = listed_slot_state(reader.number<std::uint8_t>());
    const auto in_default_pool = reader.number<std::uint8_t>();
    entry.in_default_pool = in_default_pool == 1;
    entry.free_bytes = reader.number<std::uint64_t>();
    entry.pool = take_text(reader);
    return reader.ok() && in_default_pool <= 1 && is_name(entry.pool);
}

bool take_entry(ByteReader& reader, PoolEntry& entry) {
    take_numbers(reader, entry.total_bytes, entry.used_bytes, entry.free_bytes, entry.objects);
    entry.pool = take_text(reader);
    return reader.ok() && is_name(entry.pool);
}

bool take_entry(ByteReader& reader, QuotaEntry& entry) {
    take_numbers(reader, entry.used_bytes, entry.limit_bytes, entry.used_objects,
                 entry.limit_objects);
    entry.whose = static_cast<QuotaEntry::Whose>(reader.number<std::uint8_t>());
    entry.pool = take_text(reader);
    entry.owner = take_text(reader);
    const bool of_pool = entry.whose == QuotaEntry::Whose::kPool;
    const bool of_owner = entry.whose == QuotaEntry::Whose::kOwner;
    return reader.ok() && is_name(entry.pool) && is_name(entry.owner) &&
           (of_owner || (of_pool && entry.owner.empty()));
}

RecallEntry::State recall_state(std::uint8_t number) {
    switch (number) {
        case static_cast<std::uint8_t>(RecallEntry::State::kWaiting):
            return RecallEntry::State::kWaiting;
        case static_cast<std::uint8_t>(RecallEntry::State::kReading):
            return RecallEntry::State::kReading;
        default: return RecallEntry::State::kOther;
    }
}

bool take_entry(ByteReader& reader, RecallEntry& entry) {
    take_numbers(reader, entry.fid.high, entry.fid.low, entry.size_bytes, entry.place,
                 entry.asked_ms, entry.expected_ms);
    entry.state = recall_state(reader.number<std::uint8_t>());
    entry.priority = reader.number<std::uint8_t>();
    entry.cartridge = take_text(reader);
    entry.name = take_text(reader);
    entry.requester = take_text(reader);
    return reader.ok() && entry.cartridge.size() <= kBarcodeBytesMax && is_name(entry.requester) &&
           (entry.name.empty() || check_object_name(entry.name).has_value());
}

FormatEntry::State format_state(std::uint8_t number) {
    switch (number) {
        case static_cast<std::uint8_t>(FormatEntry::State::kWaiting):
            return FormatEntry::State::kWaiting;
        case static_cast<std::uint8_t>(FormatEntry::State::kRunning):
            return FormatEntry::State::kRunning;
        default: return FormatEntry::State::kOther;
    }
}

bool take_entry(ByteReader& reader, FormatEntry& entry) {
    entry.asked_ms = reader.number<std::uint64_t>();
    entry.state = format_state(reader.number<std::uint8_t>());
    entry.cartridge = take_text(reader);
    entry.pool = take_text(reader);
    return reader.ok() && !entry.cartridge.empty() && entry.cartridge.size() <= kBarcodeBytesMax &&
           is_name(entry.pool);
}

bool take_entry(ByteReader& reader, CopyEntry& entry) {
    take_numbers(reader, entry.offset, entry.length, entry.block, entry.file, entry.written_s);
    entry.cartridge = take_text(reader);
    entry.state = take_text(reader);
    return reader.ok() && !entry.cartridge.empty() && entry.cartridge.size() <= kBarcodeBytesMax;
}

bool take_entry(ByteReader& reader, MediumEntry& entry) {
    take_numbers(reader, entry.capacity_bytes, entry.used_bytes, entry.dead_bytes, entry.files,
                 entry.mounts, entry.generation, entry.scrubbed_s, entry.damaged_copies,
                 entry.live_bytes, entry.failures);
    for (std::string_view* const text : {&entry.barcode, &entry.pool, &entry.technology,
                                         &entry.state, &entry.drive, &entry.reason}) {
        *text = take_text(reader);
    }
    return reader.ok() && !entry.barcode.empty() && entry.barcode.size() <= kBarcodeBytesMax;
}

bool take_entry(ByteReader& reader, FailedCopyEntry& entry) {
    take_numbers(reader, entry.fid.high, entry.fid.low, entry.file);
    entry.name = take_text(reader);
    entry.reason = take_text(reader);
    return reader.ok() && entry.reason.size() <= FailedCopyEntry::kReasonBytesMax &&
           (entry.name.empty() || check_object_name(entry.name).has_value());
}

template <typename Entry>
Result<std::vector<Entry>> read_all(std::span<const std::byte> payload) {
    std::vector<Entry> entries;
    ByteReader reader(payload);
    while (!reader.complete()) {
        if (!take_entry(reader, entries.emplace_back())) {
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
    put_numbers(writer, entry.fid.high, entry.fid.low, entry.size_bytes, entry.changed_ns);
    put_text(writer, entry.name);
    size_ += writer.size();
    return true;
}

bool ListingWriter::add(const ListedSlot& entry) {
    ENSURE(is_name(entry.pool));
    if (into_.size() - size_ < kSlotFixedBytes + entry.pool.size()) return false;
    ByteWriter writer(into_.subspan(size_));
    put_numbers(writer, entry.slot, entry.locality);
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
    put_numbers(writer, entry.total_bytes, entry.used_bytes, entry.free_bytes, entry.objects);
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
    put_numbers(writer, entry.used_bytes, entry.limit_bytes, entry.used_objects,
                entry.limit_objects);
    writer.number(static_cast<std::uint8_t>(entry.whose));
    put_text(writer, entry.pool);
    put_text(writer, entry.owner);
    size_ += writer.size();
    return true;
}

bool ListingWriter::add(const RecallEntry& entry) {
    ENSURE(is_name(entry.requester));
    const std::size_t texts = entry.cartridge.size() + entry.name.size() + entry.requester.size();
    if (into_.size() - size_ < kRecallFixedBytes + texts) return false;
    ByteWriter writer(into_.subspan(size_));
    put_numbers(writer, entry.fid.high, entry.fid.low, entry.size_bytes, entry.place,
                entry.asked_ms, entry.expected_ms);
    writer.number(static_cast<std::uint8_t>(entry.state));
    writer.number(entry.priority);
    put_text(writer, entry.cartridge);
    put_text(writer, entry.name);
    put_text(writer, entry.requester);
    size_ += writer.size();
    return true;
}

bool ListingWriter::add(const FormatEntry& entry) {
    const std::size_t texts = entry.cartridge.size() + entry.pool.size();
    if (into_.size() - size_ < kFormatFixedBytes + texts) return false;
    ByteWriter writer(into_.subspan(size_));
    writer.number(entry.asked_ms);
    writer.number(static_cast<std::uint8_t>(entry.state));
    put_text(writer, entry.cartridge);
    put_text(writer, entry.pool);
    size_ += writer.size();
    return true;
}

bool ListingWriter::add(const CopyEntry& entry) {
    const std::size_t texts = entry.cartridge.size() + entry.state.size();
    if (into_.size() - size_ < kCopyFixedBytes + texts) return false;
    ByteWriter writer(into_.subspan(size_));
    put_numbers(writer, entry.offset, entry.length, entry.block, entry.file, entry.written_s);
    put_text(writer, entry.cartridge);
    put_text(writer, entry.state);
    size_ += writer.size();
    return true;
}

bool ListingWriter::add(const MediumEntry& entry) {
    const std::array texts{entry.barcode, entry.pool,  entry.technology,
                           entry.state,   entry.drive, entry.reason};
    std::size_t bytes = kMediumFixedBytes;
    for (const std::string_view text : texts) bytes += text.size();
    if (into_.size() - size_ < bytes) return false;
    ByteWriter writer(into_.subspan(size_));
    put_numbers(writer, entry.capacity_bytes, entry.used_bytes, entry.dead_bytes, entry.files,
                entry.mounts, entry.generation, entry.scrubbed_s, entry.damaged_copies,
                entry.live_bytes, entry.failures);
    for (const std::string_view text : texts) put_text(writer, text);
    size_ += writer.size();
    return true;
}

bool ListingWriter::add(const FailedCopyEntry& entry) {
    const std::string_view reason = entry.reason.substr(0, FailedCopyEntry::kReasonBytesMax);
    const std::size_t texts = entry.name.size() + reason.size();
    if (into_.size() - size_ < kFailedCopyFixedBytes + texts) return false;
    ByteWriter writer(into_.subspan(size_));
    put_numbers(writer, entry.fid.high, entry.fid.low, entry.file);
    put_text(writer, entry.name);
    put_text(writer, reason);
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
Result<std::vector<RecallEntry>> read_recalls(std::span<const std::byte> payload) {
    return read_all<RecallEntry>(payload);
}
Result<std::vector<FormatEntry>> read_formats(std::span<const std::byte> payload) {
    return read_all<FormatEntry>(payload);
}
Result<std::vector<CopyEntry>> read_copies(std::span<const std::byte> payload) {
    return read_all<CopyEntry>(payload);
}
Result<std::vector<MediumEntry>> read_media(std::span<const std::byte> payload) {
    return read_all<MediumEntry>(payload);
}
Result<std::vector<FailedCopyEntry>> read_failed_copies(std::span<const std::byte> payload) {
    return read_all<FailedCopyEntry>(payload);
}

}  // namespace fopd::fop

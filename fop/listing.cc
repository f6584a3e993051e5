#include "fop/listing.h"

#include <concepts>
#include <tuple>
#include <type_traits>
#include <utility>

#include "fop/bodies.h"
#include "fop/bytes.h"
#include "fop/name.h"
#include "fop/principal.h"

namespace fopd::fop {

namespace {

// The fields of an entry in the order of their bytes, and what a reader demands of them. Numbers
// have as many bytes as their types; texts have their length in two bytes before them.
template <typename Entry>
struct Layout;

template <>
struct Layout<ListEntry> {
    using E = ListEntry;
    static constexpr std::tuple kFields{&E::fid, &E::size_bytes, &E::changed_ns, &E::name};
    static bool is_sound(const E& entry) { return check_object_name(entry.name).has_value(); }
};

template <>
struct Layout<ListedSlot> {
    using E = ListedSlot;
    static constexpr std::tuple kFields{
        &E::slot, &E::locality, &E::state, &E::in_default_pool, &E::free_bytes, &E::pool};
    static bool is_sound(const E& entry) { return is_name(entry.pool); }
};

template <>
struct Layout<PoolEntry> {
    using E = PoolEntry;
    static constexpr std::tuple kFields{&E::total_bytes, &E::used_bytes, &E::free_bytes,
                                        &E::objects, &E::pool};
    static bool is_sound(const E& entry) { return is_name(entry.pool); }
};

template <>
struct Layout<QuotaEntry> {
    using E = QuotaEntry;
    static constexpr std::tuple kFields{&E::used_bytes,    &E::limit_bytes, &E::used_objects,
                                        &E::limit_objects, &E::whose,       &E::pool,
                                        &E::owner};
    static bool is_sound(const E& entry) {
        const bool of_pool = entry.whose == E::Whose::kPool && entry.owner.empty();
        return is_name(entry.pool) && is_name(entry.owner) &&
               (entry.whose == E::Whose::kOwner || of_pool);
    }
};

bool is_name_of_object_or_empty(std::string_view name) {
    return name.empty() || check_object_name(name).has_value();
}

bool is_short_barcode(std::string_view barcode) {
    return barcode.size() <= kBarcodeBytesMax;
}

template <>
struct Layout<RecallEntry> {
    using E = RecallEntry;
    static constexpr std::tuple kFields{
        &E::fid,   &E::size_bytes, &E::place,     &E::asked_ms, &E::expected_ms,
        &E::state, &E::priority,   &E::cartridge, &E::name,     &E::requester};
    static bool is_sound(const E& entry) {
        return is_short_barcode(entry.cartridge) && is_name(entry.requester) &&
               is_name_of_object_or_empty(entry.name);
    }
};

template <>
struct Layout<FormatEntry> {
    using E = FormatEntry;
    static constexpr std::tuple kFields{&E::asked_ms, &E::state, &E::cartridge, &E::pool};
    static bool is_sound(const E& entry) {
        return !entry.cartridge.empty() && is_short_barcode(entry.cartridge) && is_name(entry.pool);
    }
};

template <>
struct Layout<CopyEntry> {
    using E = CopyEntry;
    static constexpr std::tuple kFields{&E::offset,    &E::length,    &E::block, &E::file,
                                        &E::written_s, &E::cartridge, &E::state};
    static bool is_sound(const E& entry) {
        return !entry.cartridge.empty() && is_short_barcode(entry.cartridge);
    }
};

template <>
struct Layout<MediumEntry> {
    using E = MediumEntry;
    static constexpr std::tuple kFields{
        &E::capacity_bytes, &E::used_bytes, &E::dead_bytes, &E::files,
        &E::mounts,         &E::generation, &E::scrubbed_s, &E::damaged_copies,
        &E::live_bytes,     &E::failures,   &E::barcode,    &E::pool,
        &E::technology,     &E::state,      &E::drive,      &E::reason};
    static bool is_sound(const E& entry) {
        return !entry.barcode.empty() && is_short_barcode(entry.barcode);
    }
};

template <>
struct Layout<FailedCopyEntry> {
    using E = FailedCopyEntry;
    static constexpr std::tuple kFields{&E::fid, &E::file, &E::name, &E::reason};
    static bool is_sound(const E& entry) {
        return entry.reason.size() <= E::kReasonBytesMax && is_name_of_object_or_empty(entry.name);
    }
};

// -- reading: false if the field is malformed --

template <std::unsigned_integral Number>
bool take(ByteReader& reader, Number& number) {
    number = reader.number<Number>();
    return true;
}
bool take(ByteReader& reader, bool& flag) {
    const auto number = reader.number<std::uint8_t>();
    flag = number == 1;
    return number <= 1;
}
bool take(ByteReader& reader, Fid& fid) {
    return take(reader, fid.high) && take(reader, fid.low);
}
bool take(ByteReader& reader, std::string_view& text) {
    const auto bytes = reader.take(reader.number<std::uint16_t>());
    text = {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    return true;
}
bool take(ByteReader& reader, QuotaEntry::Whose& whose) {
    whose = static_cast<QuotaEntry::Whose>(reader.number<std::uint8_t>());
    return true;
}
// A state beyond `last` is one that this reader does not know.
template <typename State>
bool take_state(ByteReader& reader, State& state, State last) {
    const auto number = reader.number<std::uint8_t>();
    const bool is_known = number >= 1 && number <= static_cast<std::uint8_t>(last);
    state = is_known ? static_cast<State>(number) : State::kOther;
    return true;
}
bool take(ByteReader& reader, ListedSlotState& state) {
    return take_state(reader, state, ListedSlotState::kUnused);
}
bool take(ByteReader& reader, RecallEntry::State& state) {
    return take_state(reader, state, RecallEntry::State::kReading);
}
bool take(ByteReader& reader, FormatEntry::State& state) {
    return take_state(reader, state, FormatEntry::State::kRunning);
}

template <typename Entry>
Result<std::vector<Entry>> read_all(std::span<const std::byte> payload) {
    std::vector<Entry> entries;
    ByteReader reader(payload);
    while (!reader.complete()) {
        Entry& entry = entries.emplace_back();
        const auto take_all = [&](auto... fields) { return (take(reader, entry.*fields) && ...); };
        const bool is_read = std::apply(take_all, Layout<Entry>::kFields) && reader.ok();
        if (!is_read || !Layout<Entry>::is_sound(entry)) {
            return std::unexpected(Error{.code = Errc::kInvalid, .context = "entry of a listing"});
        }
    }
    return entries;
}

// -- writing --

void put(ByteWriter& writer, std::unsigned_integral auto number) {
    writer.number(number);
}
void put(ByteWriter& writer, bool flag) {
    writer.number(std::uint8_t{flag});
}
template <typename Enum>
    requires std::is_enum_v<Enum>
void put(ByteWriter& writer, Enum value) {
    writer.number(std::to_underlying(value));
}
void put(ByteWriter& writer, const Fid& fid) {
    put(writer, fid.high);
    put(writer, fid.low);
}
void put(ByteWriter& writer, std::string_view text) {
    put(writer, static_cast<std::uint16_t>(text.size()));
    writer.put(std::as_bytes(std::span(text)));
}

std::size_t bytes_of(std::string_view text) {
    return sizeof(std::uint16_t) + text.size();
}
std::size_t bytes_of(const auto& field) {
    return sizeof(field);
}

}  // namespace

template <typename Entry>
bool ListingWriter::put_entry(const Entry& entry) {
    const auto put_all = [&](auto... fields) {
        if (into_.size() - size_ < (bytes_of(entry.*fields) + ...)) return false;
        ByteWriter writer(into_.subspan(size_));
        (put(writer, entry.*fields), ...);
        size_ += writer.size();
        return true;
    };
    return std::apply(put_all, Layout<Entry>::kFields);
}

bool ListingWriter::add(const ListEntry& entry) {
    ENSURE(check_object_name(entry.name).has_value());
    return put_entry(entry);
}
bool ListingWriter::add(const ListedSlot& entry) {
    ENSURE(is_name(entry.pool));
    return put_entry(entry);
}
bool ListingWriter::add(const PoolEntry& entry) {
    ENSURE(is_name(entry.pool));
    return put_entry(entry);
}
bool ListingWriter::add(const QuotaEntry& entry) {
    ENSURE(is_name(entry.pool));
    ENSURE(is_name(entry.owner));
    return put_entry(entry);
}
bool ListingWriter::add(const RecallEntry& entry) {
    ENSURE(is_name(entry.requester));
    return put_entry(entry);
}
bool ListingWriter::add(const FormatEntry& entry) {
    return put_entry(entry);
}
bool ListingWriter::add(const CopyEntry& entry) {
    return put_entry(entry);
}
bool ListingWriter::add(const MediumEntry& entry) {
    return put_entry(entry);
}
bool ListingWriter::add(const FailedCopyEntry& entry) {
    FailedCopyEntry shown = entry;
    shown.reason = entry.reason.substr(0, FailedCopyEntry::kReasonBytesMax);
    return put_entry(shown);
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

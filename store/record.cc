#include "store/record.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/byte_order.h"
#include "core/ensure.h"

namespace fopd::store {

namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::size_t kFidBytes = 16;
// The fid, the first block in the object and on the disk, and the number of dead blocks.
constexpr std::size_t kExtentRecordHeadBytes = kFidBytes + 8 + 8 + 1;
constexpr std::size_t kRecordBytesMax = UINT16_MAX;

// The head: the kind, a zero byte, and the size of head and body.
static_assert(kPutRecordBytesMax <= kRecordBytesMax);
static_assert(extent_record_bytes(kExtentBlocksMax) <= kRecordBytesMax);

template <typename T>
std::byte* write(std::byte* into, T value) {
    store_little(into, value);
    return into + sizeof value;
}

std::byte* write(std::byte* into, Bytes bytes) {
    if (!bytes.empty()) std::memcpy(into, bytes.data(), bytes.size());
    return into + bytes.size();
}

std::byte* write(std::byte* into, Fid fid) {
    return write(write(into, fid.high), fid.low);
}

Fid read_fid(Bytes bytes) {
    return {.high = get_little<std::uint64_t>(bytes, 0),
            .low = get_little<std::uint64_t>(bytes, 8)};
}

std::unexpected<Error> corrupt_record() {
    return std::unexpected(Error{.code = Errc::kCorrupt, .context = "a record of the log"});
}

bool is_range(std::uint64_t first, std::uint64_t count) {
    return count > 0 && first < kObjectBlocksMax && count <= kObjectBlocksMax - first;
}

bool ascend_below(Bytes distances, std::uint64_t limit) {
    int before = -1;
    for (const std::byte each : distances) {
        const int distance = std::to_integer<int>(each);
        if (distance <= before || static_cast<std::uint64_t>(distance) >= limit) return false;
        before = distance;
    }
    return true;
}

bool parse_extent(Bytes body, Record& record) {
    if (body.size() <= kExtentRecordHeadBytes) return false;
    record.fid = read_fid(body);
    record.first = get_little<std::uint64_t>(body, kFidBytes);
    record.block = get_little<std::uint64_t>(body, kFidBytes + 8);
    const auto dead_count = get_little<std::uint8_t>(body, kExtentRecordHeadBytes - 1);
    const Bytes rest = body.subspan(kExtentRecordHeadBytes);
    if (rest.size() <= dead_count || (rest.size() - dead_count) % 4 != 0) return false;
    record.dead = rest.first(dead_count);
    record.checksums = rest.subspan(dead_count);
    record.count = dead_count + record.checksums.size() / 4;
    return record.count <= kExtentBlocksMax && is_range(record.first, record.count) &&
           record.block <= UINT64_MAX / 4096 - record.count &&
           ascend_below(record.dead, record.count);
}

bool parse_hole(Bytes body, Record& record) {
    if (body.size() != kFidBytes + 16) return false;
    record.fid = read_fid(body);
    record.first = get_little<std::uint64_t>(body, kFidBytes);
    record.count = get_little<std::uint64_t>(body, kFidBytes + 8);
    return is_range(record.first, record.count);
}

bool parse_remove(Bytes body, Record& record) {
    if (body.size() != kFidBytes) return false;
    record.fid = read_fid(body);
    return true;
}

// The body: the length of the key, the key, and the value up to the end.
bool parse_key_value(Bytes body, Record& record) {
    if (body.size() < 2) return false;
    const auto key_bytes = get_little<std::uint16_t>(body, 0);
    if (key_bytes == 0 || body.size() - 2 < key_bytes) return false;
    record.key = body.subspan(2, key_bytes);
    record.value = body.subspan(2 + key_bytes);
    return record.value.size() <= kIndexValueBytesMax;
}

bool parse(RecordKind kind, Bytes body, Record& record) {
    switch (kind) {
        case RecordKind::kPut:
        case RecordKind::kCommit: return parse_key_value(body, record);
        case RecordKind::kExtent: return parse_extent(body, record);
        case RecordKind::kPunch:
        case RecordKind::kClear: return parse_hole(body, record);
        case RecordKind::kRemove: return parse_remove(body, record);
        case RecordKind::kForget: return parse_key_value(body, record) && record.value.empty();
    }
    return false;
}

}  // namespace

ExtentRuns::ExtentRuns(const Record& record) : record_(record) {
    ENSURE(record.kind == RecordKind::kExtent);
}

bool ExtentRuns::is_dead(std::uint64_t distance) const {
    return dead_passed_ < record_.dead.size() &&
           std::to_integer<std::uint64_t>(record_.dead[dead_passed_]) == distance;
}

std::optional<Extent> ExtentRuns::next() {
    for (; is_dead(distance_); ++distance_) ++dead_passed_;
    const std::uint64_t begin = distance_;
    for (; distance_ < record_.count && !is_dead(distance_); ++distance_) {
        checksums_[distance_ - begin] =
            get_little<std::uint32_t>(record_.checksums, 4 * checksums_read_);
        ++checksums_read_;
    }
    if (distance_ == begin) return std::nullopt;
    return Extent{.first = record_.first + begin,
                  .block = record_.block + begin,
                  .checksums = std::span(checksums_).first(distance_ - begin)};
}

std::byte* RecordWriter::begin(RecordKind kind, std::size_t body_bytes) {
    const std::size_t size = kRecordHeadBytes + body_bytes;
    ENSURE(size <= kRecordBytesMax);
    const std::size_t at = bytes_.size();
    bytes_.resize(at + size);
    ++count_;
    std::byte* into = bytes_.data() + at;
    into = write(into, static_cast<std::uint8_t>(kind));
    into = write(into, std::uint8_t{0});
    return write(into, static_cast<std::uint16_t>(size));
}

void RecordWriter::key_value(RecordKind kind, Bytes key, Bytes value) {
    std::byte* into = begin(kind, 2 + key.size() + value.size());
    write(write(write(into, static_cast<std::uint16_t>(key.size())), key), value);
}

void RecordWriter::extent(Fid fid, const Extent& extent) {
    ENSURE(extent.count() > 0 && extent.count() <= kExtentBlocksMax);
    std::byte* into =
        begin(RecordKind::kExtent, kExtentRecordHeadBytes + extent.checksums.size_bytes());
    into = write(write(write(into, fid), extent.first), extent.block);
    write(write(into, std::uint8_t{0}), std::as_bytes(extent.checksums));
}

void RecordWriter::rest_of_extent(const Record& record, const ExtentBlocks& live) {
    ENSURE(live.any());
    std::size_t begin = 0;
    while (!live[begin]) ++begin;
    std::size_t end = record.count;
    while (!live[end - 1]) --end;
    const std::size_t dead_count = end - begin - live.count();
    std::byte* into =
        this->begin(RecordKind::kExtent, kExtentRecordHeadBytes + dead_count + 4 * live.count());
    into = write(write(write(into, record.fid), record.first + begin), record.block + begin);
    into = write(into, static_cast<std::uint8_t>(dead_count));
    for (std::size_t at = begin; at < end; ++at) {
        if (!live[at]) into = write(into, static_cast<std::uint8_t>(at - begin));
    }
    ExtentRuns runs(record);
    while (const std::optional<Extent> run = runs.next()) {
        for (std::uint32_t i = 0; i < run->count(); ++i) {
            if (live[run->first - record.first + i]) into = write(into, run->checksums[i]);
        }
    }
}

void RecordWriter::hole(RecordKind kind, Fid fid, std::uint64_t first, std::uint64_t count) {
    ENSURE(is_range(first, count));
    write(write(write(begin(kind, kFidBytes + 16), fid), first), count);
}

void RecordWriter::remove(Fid fid) {
    write(begin(RecordKind::kRemove, kFidBytes), fid);
}

void RecordWriter::copy(Bytes record) {
    bytes_.insert(bytes_.end(), record.begin(), record.end());
    ++count_;
}

Result<std::optional<Record>> RecordReader::next() {
    if (rest_.empty()) return std::nullopt;
    if (rest_.size() < kRecordHeadBytes) return corrupt_record();
    const auto kind = get_little<std::uint8_t>(rest_, 0);
    const auto size = get_little<std::uint16_t>(rest_, 2);
    if (get_little<std::uint8_t>(rest_, 1) != 0) return corrupt_record();
    if (size < kRecordHeadBytes || size > rest_.size()) return corrupt_record();
    last_ = rest_.first(size);
    rest_ = rest_.subspan(size);
    Record record{.kind = static_cast<RecordKind>(kind)};
    if (!parse(record.kind, last_.subspan(kRecordHeadBytes), record)) return corrupt_record();
    return record;
}

}  // namespace fopd::store

#include "store/backup.h"

#include <algorithm>

#include "core/byte_order.h"
#include "core/crc32c.h"
#include "core/ensure.h"
#include "store/corrupt.h"

namespace fopd::store {

namespace {

constexpr std::string_view kBackupMagic = "FOPDBKUP";
constexpr std::uint32_t kVersionPlain = 1;
constexpr std::uint32_t kVersionWithMedia = 2;
constexpr std::size_t kTreeBytes = 32;
constexpr std::size_t kEntryHeadBytes = 4;
constexpr std::size_t kHeadSumAt = 40;
// A chunk of entries is finished when it has so many bytes.
constexpr std::size_t kEntriesWanted = 64UL << 10;

static_assert(kEntriesWanted + kEntryHeadBytes + kIndexKeyBytesMax + kIndexValueBytesMax <=
              kBackupChunkBytesMax);

// The checksum of a chunk covers its number, so that a chunk in the wrong place is detected.
std::uint32_t chunk_sum(Bytes head, Bytes payload) {
    return core::crc32c(payload, core::crc32c(head.first(12)));
}

}  // namespace

// -- writing --

BackupWriter::BackupWriter(const BackupHead& head) {
    ready_.resize(kBackupHeadBytes);
    const std::span bytes(ready_);
    std::ranges::copy(std::as_bytes(std::span(kBackupMagic)), bytes.begin());
    put_little(bytes, 8, head.has_media ? kVersionWithMedia : kVersionPlain);
    put_little(bytes, 12, head.schema_version);
    put_little(bytes, 16, static_cast<std::uint64_t>(head.made.unix_ns));
    std::ranges::copy(head.node, bytes.begin() + 24);
    put_little(bytes, kHeadSumAt, core::crc32c(bytes.first(kHeadSumAt)));
}

void BackupWriter::chunk(BackupChunk kind, Bytes payload) {
    ENSURE(payload.size() <= kBackupChunkBytesMax);
    std::array<std::byte, kBackupChunkHeadBytes> head{};
    put_little(std::span(head), 0, static_cast<std::uint32_t>(kind));
    put_little(std::span(head), 4, static_cast<std::uint32_t>(payload.size()));
    put_little(std::span(head), 8, chunk_count_++);
    put_little(std::span(head), 12, chunk_sum(head, payload));
    ready_.insert(ready_.end(), head.begin(), head.end());
    ready_.insert(ready_.end(), payload.begin(), payload.end());
}

void BackupWriter::slots(std::string_view text) {
    chunk(BackupChunk::kSlots, std::as_bytes(std::span(text)));
}

void BackupWriter::media(std::string_view text) {
    while (!text.empty()) {
        const std::string_view part = text.substr(0, kBackupChunkBytesMax);
        chunk(BackupChunk::kMedia, std::as_bytes(std::span(part)));
        text.remove_prefix(part.size());
    }
}

void BackupWriter::begin_tree(const BackupTree& tree) {
    std::array<std::byte, kTreeBytes> bytes{};
    bytes[0] = static_cast<std::byte>(tree.kind);
    put_little(std::span(bytes), 4, tree.part);
    std::ranges::copy(tree.owner, bytes.begin() + 8);
    put_little(std::span(bytes), 24, tree.applied);
    chunk(BackupChunk::kTree, bytes);
    entry_count_ = 0;
}

void BackupWriter::entry(const IndexEntry& entry) {
    ENSURE(entry.key.size() <= kIndexKeyBytesMax);
    ENSURE(entry.value.size() <= kIndexValueBytesMax);
    std::array<std::byte, kEntryHeadBytes> head{};
    put_little(std::span(head), 0, static_cast<std::uint16_t>(entry.key.size()));
    put_little(std::span(head), 2, static_cast<std::uint16_t>(entry.value.size()));
    entries_.insert(entries_.end(), head.begin(), head.end());
    entries_.insert(entries_.end(), entry.key.begin(), entry.key.end());
    entries_.insert(entries_.end(), entry.value.begin(), entry.value.end());
    ++entry_count_;
    if (entries_.size() >= kEntriesWanted) end_entries();
}

void BackupWriter::end_entries() {
    if (entries_.empty()) return;
    chunk(BackupChunk::kEntries, entries_);
    entries_.clear();
}

void BackupWriter::end_tree() {
    end_entries();
    std::array<std::byte, 8> bytes{};
    put_little(std::span(bytes), 0, entry_count_);
    chunk(BackupChunk::kTreeEnd, bytes);
}

void BackupWriter::end() {
    chunk(BackupChunk::kEnd, {});
}

// -- reading --

Result<std::optional<IndexEntry>> BackupEntries::next() {
    if (rest_.empty()) return std::nullopt;
    if (rest_.size() < kEntryHeadBytes) return corrupt("an entry of the backup");
    const std::size_t key_bytes = get_little<std::uint16_t>(rest_, 0);
    const std::size_t value_bytes = get_little<std::uint16_t>(rest_, 2);
    if (key_bytes == 0 || key_bytes > kIndexKeyBytesMax || value_bytes > kIndexValueBytesMax ||
        kEntryHeadBytes + key_bytes + value_bytes > rest_.size()) {
        return corrupt("length of an entry of the backup");
    }
    const IndexEntry entry{.key = rest_.subspan(kEntryHeadBytes, key_bytes),
                           .value = rest_.subspan(kEntryHeadBytes + key_bytes, value_bytes)};
    if (entry.key.front() == std::byte{0}) return corrupt("a key of the backup");
    rest_ = rest_.subspan(kEntryHeadBytes + key_bytes + value_bytes);
    return entry;
}

Result<BackupHead> BackupReader::head(Bytes bytes) {
    if (bytes.size() != kBackupHeadBytes ||
        !std::ranges::equal(bytes.first(kBackupMagic.size()),
                            std::as_bytes(std::span(kBackupMagic)))) {
        return corrupt("it is not a backup");
    }
    const auto version = get_little<std::uint32_t>(bytes, 8);
    if (version != kVersionPlain && version != kVersionWithMedia) {
        return std::unexpected(
            Error{.code = Errc::kUnsupported, .context = "version of the backup"});
    }
    if (get_little<std::uint32_t>(bytes, kHeadSumAt) != core::crc32c(bytes.first(kHeadSumAt)) ||
        get_little<std::uint32_t>(bytes, 44) != 0) {
        return corrupt("head of the backup");
    }
    BackupHead head{.made = {static_cast<std::int64_t>(get_little<std::uint64_t>(bytes, 16))},
                    .schema_version = std::max(get_little<std::uint32_t>(bytes, 12), 1U),
                    .has_media = version == kVersionWithMedia};
    if (head.schema_version > kSchema.version) {
        return std::unexpected(
            Error{.code = Errc::kUnsupported, .context = "the backup is of a newer version"});
    }
    std::ranges::copy(bytes.subspan(24, head.node.size()), head.node.begin());
    may_have_media_ = head.has_media;
    wants_media_ = head.has_media;
    return head;
}

Result<BackupReader::ChunkHead> BackupReader::chunk_head(Bytes bytes) const {
    ENSURE(bytes.size() == kBackupChunkHeadBytes);
    ENSURE(!ended());
    const ChunkHead head{.kind = static_cast<BackupChunk>(get_little<std::uint32_t>(bytes, 0)),
                         .payload_bytes = get_little<std::uint32_t>(bytes, 4),
                         .checksum = get_little<std::uint32_t>(bytes, 12)};
    if (head.payload_bytes > kBackupChunkBytesMax ||
        get_little<std::uint32_t>(bytes, 8) != chunk_count_) {
        return corrupt("head of a chunk of the backup");
    }
    return head;
}

Result<std::optional<BackupTree>> BackupReader::payload(const ChunkHead& head, Bytes bytes) {
    ENSURE(bytes.size() == head.payload_bytes);
    std::array<std::byte, kBackupChunkHeadBytes> head_bytes{};
    put_little(std::span(head_bytes), 0, static_cast<std::uint32_t>(head.kind));
    put_little(std::span(head_bytes), 4, head.payload_bytes);
    put_little(std::span(head_bytes), 8, chunk_count_);
    if (chunk_sum(head_bytes, bytes) != head.checksum) return corrupt("a chunk of the backup");
    ++chunk_count_;
    switch (head.kind) {
        case BackupChunk::kSlots:
            if (state_ != State::kStart || chunk_count_ != 1) break;
            return std::nullopt;
        case BackupChunk::kMedia:
            if (state_ != State::kStart || !may_have_media_ || bytes.empty()) break;
            wants_media_ = false;
            return std::nullopt;
        case BackupChunk::kTree: {
            const bool is_between = state_ == State::kStart || state_ == State::kBetweenTrees;
            if (!is_between || wants_media_ || bytes.size() != kTreeBytes) break;
            const auto kind = static_cast<std::uint8_t>(bytes[0]);
            if (kind < 1 || kind > 2 || bytes[1] != std::byte{0} ||
                get_little<std::uint16_t>(bytes, 2) != 0) {
                break;
            }
            BackupTree tree{.kind = static_cast<BackupTree::Kind>(kind),
                            .part = get_little<std::uint32_t>(bytes, 4),
                            .applied = get_little<std::uint64_t>(bytes, 24)};
            std::ranges::copy(bytes.subspan(8, tree.owner.size()), tree.owner.begin());
            state_ = State::kInTree;
            entry_count_ = 0;
            last_key_.clear();
            return tree;
        }
        case BackupChunk::kEntries: {
            if (state_ != State::kInTree || bytes.empty()) break;
            const auto taken = take_entries(bytes);
            if (!taken) return std::unexpected(taken.error());
            return std::nullopt;
        }
        case BackupChunk::kTreeEnd:
            if (state_ != State::kInTree || bytes.size() != 8 ||
                get_little<std::uint64_t>(bytes, 0) != entry_count_) {
                break;
            }
            state_ = State::kBetweenTrees;
            return std::nullopt;
        case BackupChunk::kEnd:
            if (state_ == State::kInTree || wants_media_ || !bytes.empty()) break;
            state_ = State::kEnded;
            return std::nullopt;
    }
    return corrupt("order of the backup");
}

Result<void> BackupReader::take_entries(Bytes bytes) {
    BackupEntries entries(bytes);
    for (;;) {
        const auto entry = entries.next();
        if (!entry) return std::unexpected(entry.error());
        if (!entry->has_value()) return {};
        const Bytes key = (*entry)->key;
        if (!last_key_.empty() && !std::ranges::lexicographical_compare(last_key_, key)) {
            return corrupt("order of the keys of the backup");
        }
        last_key_.assign(key.begin(), key.end());
        ++entry_count_;
    }
}

}  // namespace fopd::store

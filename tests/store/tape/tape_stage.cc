#include "tests/store/tape/tape_stage.h"

#include <algorithm>

#include "core/ensure.h"
#include "core/random.h"
#include "devices/tape/virtual_library.h"
#include "store/tape/block_checksum.h"

namespace fopd::store::testing {

Task<Result<std::vector<TapeEntry>>> write_objects(TapeWriter* writer, std::uint64_t file_id,
                                                   Objects objects) {
    std::vector<TapeEntry> entries;
    const auto begun = co_await writer->begin_file(TapeFileKind::kObjects, file_id, kTapeDay);
    if (!begun) co_return std::unexpected(begun.error());
    for (const auto& [number, size] : objects) {
        BytesSource source(some_bytes(number, size));
        auto entry = co_await writer->add(some_member(number, size), &source);
        if (!entry) co_return std::unexpected(entry.error());
        entries.push_back(std::move(*entry));
    }
    const auto ended = co_await writer->end_file();
    if (!ended) co_return std::unexpected(ended.error());
    co_return entries;
}

Task<Result<std::vector<std::byte>>> read_copy(TapeReader* reader, TapeEntry entry) {
    std::vector<std::byte> bytes;
    const auto opened = co_await reader->open(std::move(entry));
    if (!opened) co_return std::unexpected(opened.error());
    while (true) {
        const auto part = co_await reader->next();
        if (!part) co_return std::unexpected(part.error());
        if (part->bytes.empty()) co_return bytes;
        bytes.insert(bytes.end(), part->bytes.begin(), part->bytes.end());
    }
}

TapeIdentity some_identity() {
    TapeIdentity identity;
    identity.vsn = *Vsn::from_barcode("FPD001L9");
    for (std::size_t i = 0; i < identity.node.size(); ++i) {
        identity.node[i] = static_cast<std::byte>(0xa0 + i);
    }
    identity.generation = 3;
    return identity;
}

TapeSite some_site() {
    return {.site = "Lyon", .mover = "node-7.example", .vendor = "", .model = "", .serial = ""};
}

Member some_member(std::uint64_t number, std::uint64_t size_bytes) {
    Member member;
    member.fid = {.high = 3ULL << 48 | 1, .low = number};
    member.version = 100 + number;
    member.size_bytes = size_bytes;
    member.object_bytes = size_bytes;
    member.created_ns = 1'700'000'000'000'000'000;
    member.changed_ns = 1'700'000'001'500'000'000;
    member.mode = 0640;
    member.name_version = number + 7;
    member.name = "runs/n\xc3\xb6 " + std::to_string(number) + " 50%=x";
    member.pool = "cold";
    member.owner = "alice@example.org";
    member.group = "physics";
    member.collection = "run 7";
    return member;
}

std::vector<std::byte> some_bytes(std::uint64_t number, std::uint64_t size_bytes) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(size_bytes));
    std::uint64_t state = number * 0x9e3779b97f4a7c15 + 1;
    for (std::byte& byte : bytes) {
        state = state * 6364136223846793005 + 1442695040888963407;
        byte = static_cast<std::byte>(state >> 56);
    }
    return bytes;
}

Task<Result<void>> BytesSource::read(std::uint64_t offset, core::Buffer into) {
    const auto part = std::span(bytes_).subspan(static_cast<std::size_t>(offset), into.size_bytes);
    std::ranges::copy(part, into.data);
    const bool damages =
        damaged_at_ && *damaged_at_ >= offset && *damaged_at_ < offset + into.size_bytes;
    if (damages) into.data[*damaged_at_ - offset] ^= std::byte{1};
    co_return Result<void>();
}

Task<Result<void>> BytesSource::checksums(std::uint64_t first, std::span<std::uint32_t> into) {
    const std::span<const std::byte> bytes(bytes_);
    for (std::size_t i = 0; i < into.size(); ++i) {
        const std::size_t at = static_cast<std::size_t>(first + i) * kMemberBlockBytes;
        const std::size_t size = std::min<std::size_t>(bytes.size() - at, kMemberBlockBytes);
        into[i] = block_checksum(bytes.subspan(at, size));
    }
    co_return Result<void>();
}

Task<Result<std::optional<TapeEntry>>> EntriesSource::next() {
    std::optional<TapeEntry> entry;
    if (at_ < entries_.size()) entry = entries_[at_++];
    co_return entry;
}

Task<Result<void>> FoundEntries::found(TapeEntry entry) {
    const auto key = std::pair(entry.file.number, entry.position);
    entries[key] = std::move(entry);
    co_return Result<void>();
}

Task<Result<void>> FoundEntries::damaged(std::uint64_t file_number, Error error) {
    bad_files.insert_or_assign(file_number, error);
    co_return Result<void>();
}

TapeStage::TapeStage(TapeStageOptions options)
    : Replay(options.seed),
      world_(options.seed),
      image_({.drives = 1, .exchange = 1, .storage = 1}) {
    const std::uint32_t home = image_.add(
        {.barcode = "FPD001L9", .serial = "M1", .capacity_bytes = options.capacity_bytes});
    image_.move(home, devices::kDriveAddress);
    begin();
}

TapeStage::~TapeStage() {
    end();
}

devices::CartridgeImage& TapeStage::cartridge() {
    return *image_.at(devices::kDriveAddress);
}

void TapeStage::begin() {
    reactor_ = world_.make_reactor();
    power_ = std::make_unique<devices::Power>();
    library_ = std::make_unique<devices::MemoryLibrary>(
        *reactor_, image_,
        devices::MemoryLibraryOptions{.seed = world_.seed(), .power = power_.get()});
    const auto loaded = run(drive().load());
    ENSURE(loaded.has_value());
    writer = std::make_unique<TapeWriter>(drive(), identity, some_site());
}

void TapeStage::end() {
    reactor_->drop_coroutines();
    writer.reset();
    library_.reset();
    power_.reset();
    reactor_.reset();
}

void TapeStage::reload() {
    end();
    image_.settle();
    begin();
}

void TapeStage::lose_power(std::uint64_t kept) {
    end();
    cartridge().cut(cartridge().durable_count() + kept);
    cartridge().make_durable();
    begin();
}

void TapeStage::lose_power_by(std::uint64_t seed) {
    end();
    core::Random random(seed);
    image_.crash(random);
    begin();
}

std::vector<RecordBytes> TapeStage::records() {
    std::vector<RecordBytes> records;
    const devices::RecordMap map = cartridge().map();
    for (std::uint64_t number = 0; number < map.count(); ++number) {
        RecordBytes record(map.find(number).size_bytes);
        if (!record.empty()) cartridge().read(number, record);
        records.push_back(std::move(record));
    }
    return records;
}

void TapeStage::set_records(const std::vector<RecordBytes>& records) {
    end();
    cartridge().cut(0);
    for (const RecordBytes& record : records) {
        if (record.empty()) {
            cartridge().append_filemark();
        } else {
            cartridge().append(record);
        }
    }
    cartridge().make_durable();
    begin();
}

void TapeStage::start() {
    const auto formatted = format_tape();
    ENSURE(formatted.has_value());
    const auto opened = run(writer->open({}));
    ENSURE(opened.has_value());
}

Result<std::vector<TapeEntry>> TapeStage::write_file(std::uint64_t file_id, Objects objects) {
    return run(write_objects(writer.get(), file_id, std::move(objects)));
}

Result<TapeFile> TapeStage::write_index_file(std::vector<TapeEntry> entries, std::uint64_t first) {
    EntriesSource source(std::move(entries));
    return run(write_index(writer.get(), &source, {.first = first, .now = kTapeDay}));
}

Result<std::vector<std::byte>> TapeStage::read(const TapeEntry& entry) {
    TapeReader reader(drive(), identity);
    return run(read_copy(&reader, entry));
}

Result<Recovered> TapeStage::recover(FoundEntries& found, TapeEnd known) {
    TapeRecovery recovery(drive(), identity);
    return run(recovery.run(known, &found));
}

}  // namespace fopd::store::testing

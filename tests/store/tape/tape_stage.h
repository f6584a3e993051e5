#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/reactor.h"
#include "core/virtual_world.h"
#include "devices/tape/memory_library.h"
#include "devices/tape/tape_library_image.h"
#include "store/tape/cartridge.h"
#include "store/tape/recovery.h"
#include "store/tape/tape_index.h"
#include "store/tape/tape_reader.h"
#include "store/tape/tape_writer.h"
#include "tests/replay.h"

namespace fopd::store::testing {

// The day that is written in labels: 2027-01-15.
inline constexpr WallTime kTapeDay{.unix_ns = 1'800'000'000'000'000'000};

TapeIdentity some_identity();
TapeSite some_site();
// An object of this size, with every field set.
Member some_member(std::uint64_t number, std::uint64_t size_bytes);
// Its bytes, which are different for each object.
std::vector<std::byte> some_bytes(std::uint64_t number, std::uint64_t size_bytes);

// Bytes in memory.
class BytesSource final : public MemberSource {
public:
    explicit BytesSource(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}

    // The bytes change after their checksums were asked for.
    void damage_at(std::size_t at) { damaged_at_ = at; }

    Task<Result<void>> read(std::uint64_t offset, core::Buffer into) override;
    Task<Result<void>> checksums(std::uint64_t first, std::span<std::uint32_t> into) override;

private:
    std::vector<std::byte> bytes_;
    std::optional<std::size_t> damaged_at_;
};

class EntriesSource final : public TapeEntrySource {
public:
    explicit EntriesSource(std::vector<TapeEntry> entries) : entries_(std::move(entries)) {}

    Task<Result<std::optional<TapeEntry>>> next() override;

private:
    std::vector<TapeEntry> entries_;
    std::size_t at_ = 0;
};

// Keeps what a recovery finds, by file and position.
class FoundEntries final : public RecoverySink {
public:
    Task<Result<void>> found(TapeEntry entry) override;
    Task<Result<void>> damaged(std::uint64_t file_number, Error error) override;

    std::map<std::pair<std::uint64_t, std::uint64_t>, TapeEntry> entries;
    std::map<std::uint64_t, Error> bad_files;
};

using Objects = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

// Coroutines of the tests, for a stage or any other drive.
Task<Result<std::vector<TapeEntry>>> write_objects(TapeWriter* writer, std::uint64_t file_id,
                                                   Objects objects);
Task<Result<std::vector<std::byte>>> read_copy(TapeReader* reader, TapeEntry entry);

// A block, or a filemark if it is empty.
using RecordBytes = std::vector<std::byte>;

struct TapeStageOptions {
    std::uint64_t seed = 1;
    std::uint64_t capacity_bytes = 0;  // 0: that of LTO-9.
};

// A machine of the simulated world with one drive, in which is a cartridge, and a writer.
class TapeStage : fopd::testing::Replay {
public:
    explicit TapeStage(TapeStageOptions options = {});
    ~TapeStage();

    devices::MemoryTape& drive() { return library_->drive(0); }
    devices::CartridgeImage& cartridge();
    devices::Power& power() { return *power_; }

    std::unique_ptr<TapeWriter> writer;
    TapeIdentity identity = some_identity();

    // The machine ends, and another one starts with the same cartridge and a new writer.
    void reload();
    // The machine has lost its power. Of the records that were not durable the first `kept` are
    // there.
    void lose_power(std::uint64_t kept);
    // The simulated cartridge says what is there.
    void lose_power_by(std::uint64_t seed);
    std::uint64_t undurable_count() { return cartridge().count() - cartridge().durable_count(); }

    // What is on the cartridge, and another content for it.
    std::vector<RecordBytes> records();
    void set_records(const std::vector<RecordBytes>& records);

    // Of a task that never ends, because there is no power any more, kClosed.
    template <typename T>
    T run(Task<T> task) {
        auto result = world_.run(*reactor_, std::move(task));
        if (result) return std::move(*result);
        return std::unexpected(Error{.code = Errc::kClosed, .context = "no power"});
    }
    Result<void> format_tape() { return run(format(&drive(), identity, some_site(), kTapeDay)); }
    // Formats and opens.
    void start();

    // Writes one file of objects, each by number and size, to its end.
    Result<std::vector<TapeEntry>> write_file(std::uint64_t file_id, Objects objects);
    Result<TapeFile> write_index_file(std::vector<TapeEntry> entries, std::uint64_t first = 1);
    // Reads a copy to its end.
    Result<std::vector<std::byte>> read(const TapeEntry& entry);
    Result<Recovered> recover(FoundEntries& found, TapeEnd known = {});

private:
    void begin();
    void end();

    core::VirtualWorld world_;
    devices::TapeLibraryImage image_;
    std::unique_ptr<core::Reactor> reactor_;
    std::unique_ptr<devices::Power> power_;
    std::unique_ptr<devices::MemoryLibrary> library_;
};

}  // namespace fopd::store::testing

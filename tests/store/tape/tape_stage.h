#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/reactor.h"
#include "core/virtual_world.h"
#include "store/tape/cartridge.h"
#include "store/tape/recovery.h"
#include "store/tape/tape_index.h"
#include "store/tape/tape_reader.h"
#include "store/tape/tape_writer.h"
#include "tests/replay.h"
#include "tests/store/tape/memory_tape.h"

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

// A drive with a tape, and a writer.
class TapeStage : fopd::testing::Replay {
public:
    explicit TapeStage(std::uint64_t seed = 1);

    MemoryTape tape;
    std::unique_ptr<core::VirtualWorld> world;
    std::unique_ptr<core::Reactor> reactor;
    std::unique_ptr<MemoryDrive> drive;
    std::unique_ptr<TapeWriter> writer;
    TapeIdentity identity = some_identity();

    // Puts the tape into a new drive, with a new writer.
    void reload();

    template <typename T>
    T run(Task<T> task) {
        auto result = world->run(*reactor, std::move(task));
        return std::move(result.value());
    }
    Result<void> format_tape() { return run(format(drive.get(), identity, some_site(), kTapeDay)); }
    // Formats and opens.
    void start();

    // Writes one file of objects, each by number and size, to its end.
    Result<std::vector<TapeEntry>> write_file(
        std::uint64_t file_id, std::vector<std::pair<std::uint64_t, std::uint64_t>> objects);
    Result<TapeFile> write_index_file(std::vector<TapeEntry> entries, std::uint64_t first = 1);
    // Reads a copy to its end.
    Result<std::vector<std::byte>> read(const TapeEntry& entry);
    Result<Recovered> recover(FoundEntries& found, TapeEnd known = {});
};

}  // namespace fopd::store::testing

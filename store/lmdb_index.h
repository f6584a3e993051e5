#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "core/offload.h"
#include "core/reactor.h"
#include "core/wait_queue.h"
#include "store/index.h"
#include "store/schema.h"

struct MDB_env;
struct MDB_txn;
struct MDB_cursor;

namespace fopd::store {

// An index in a file of LMDB, with a lock file beside it. LMDB trusts its file; so each entry has a
// checksum, and check_lmdb_file() checks the whole file before LMDB opens it. Calls that may wait
// for a disk run on offload threads.
class LmdbIndex final : public Index {
public:
    struct World {
        core::Reactor& reactor;
        core::Offload& offload;
    };
    struct Options {
        std::string path{};
        std::array<std::byte, 16> disk_id{};  // The disk that the index belongs to.
        // Address space at first; it is doubled when the file grows.
        std::size_t map_bytes = 1UL << 30;
        std::uint32_t schema_version = kSchema.version;  // The version of keys and values.
    };
    // kNotFound: there is no file; kCorrupt: it is damaged; kInvalid: it belongs to another disk,
    // or has an older schema. In these cases the index can be rebuilt from the log. kUnsupported:
    // written by a newer fopd. World outlives the index.
    static Task<Result<std::unique_ptr<LmdbIndex>>> open(World world, Options options);
    // Creates an empty index and replaces any file that exists.
    static Task<Result<std::unique_ptr<LmdbIndex>>> create(World world, Options options);

    // REQUIRES: no apply() and no show_all() is in progress.
    ~LmdbIndex() override;
    LmdbIndex(const LmdbIndex&) = delete;
    LmdbIndex& operator=(const LmdbIndex&) = delete;

    IndexReader& reader() override { return reader_; }
    std::uint64_t applied() const override { return applied_; }
    Task<Result<void>> apply(Step step) override;
    Task<Result<void>> show_all(IndexShow* show) override;
    IndexFigures figures() const override;
    bool has_reserve() const override { return reserve_.is_kept; }
    std::uint64_t room_bytes() const override { return reserve_.room_bytes; }

private:
    class Reader final : public IndexReader {
    public:
        Result<std::optional<IndexEntry>> at_or_after(Bytes key) override;
        Result<std::optional<IndexEntry>> at_or_before(Bytes key) override;
        Result<std::optional<IndexEntry>> next() override;
        Result<std::optional<IndexEntry>> previous() override;
        void release() override;
        // Reads any key, also one that is not an entry of the index.
        Result<std::optional<Bytes>> get(Bytes key);
        bool viewing() const { return viewing_; }
        int prepare(MDB_env* environment, unsigned database);
        void close();

    private:
        Result<void> begin();
        // Moves the cursor; `operation` is an MDB_cursor_op. False: there is no such entry.
        Result<bool> move(int operation, Bytes key = {});
        Result<std::optional<IndexEntry>> entry(const Result<bool>& moved) const;

        MDB_txn* transaction_ = nullptr;
        MDB_cursor* cursor_ = nullptr;
        IndexEntry current_{};  // The entry at the cursor, with its checksum.
        bool viewing_ = false;
    };

    LmdbIndex(World world, const Options& options);
    // These functions block on disk I/O.
    Result<void> open_file();
    Result<void> create_file();
    int open_environment();
    struct Reserve {
        bool is_kept = false;
        std::uint64_t room_bytes = 0;
    };
    struct Written {
        int code = 0;
        Reserve reserve{};
    };
    Written write(const Step& step);
    Result<void> show_entries(IndexShow& show) const;
    int write_changes(MDB_txn* transaction, const Step& step) const;
    Result<void> read_head();
    int write_head(MDB_txn* transaction, std::uint64_t applied) const;
    Result<void> grow_map();
    Reserve keep_reserve();

    const World world_;
    const Options options_;
    MDB_env* environment_ = nullptr;
    unsigned database_ = 0;
    std::size_t map_bytes_;
    Reader reader_;
    std::uint64_t applied_ = 0;
    // The file system has reserved blocks for the file up to here, also beyond its end.
    std::uint64_t reserved_end_ = 0;
    Reserve reserve_;
    bool failed_ = false;
    bool applying_ = false;
    bool showing_ = false;
    core::WaitQueue shown_;
};

}  // namespace fopd::store

#include "store/lmdb_index.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <lmdb.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "core/byte_order.h"
#include "core/directory.h"
#include "core/ensure.h"
#include "store/corrupt.h"
#include "store/lmdb_file.h"

namespace fopd::store {

namespace {

// MDB_NOTLS: the view and the writer are on different threads, and the thread of the view has
// several indexes. MDB_NORDAHEAD: lookups are scattered.
constexpr unsigned kFlags = MDB_NOSUBDIR | MDB_NOTLS | MDB_NORDAHEAD;
constexpr mdb_mode_t kFileMode = 0600;

// LMDB copies each page that it changes, and reuses the old page two transactions later. The
// reserve is room for a copy of the whole index, within these bounds.
constexpr std::uint64_t kReserveBytesMin = 4UL << 20;
constexpr std::uint64_t kReserveBytesMax = 256UL << 20;

// The first entry identifies the file.
constexpr std::array<std::byte, 1> kHeadKey{std::byte{0}};
constexpr std::uint64_t kHeadMagic = 0x7865646e69706f66;  // "fopindex"
constexpr std::size_t kIndexHeadBytes = 8 + 4 + 4 + 16 + 8;

MDB_val as_val(Bytes bytes) {
    // LMDB's type is not const even for data that it only reads.
    return {.mv_size = bytes.size(), .mv_data = const_cast<std::byte*>(bytes.data())};
}

Bytes as_bytes(const MDB_val& value) {
    return {static_cast<const std::byte*>(value.mv_data), value.mv_size};
}

Error lmdb_error(int code, const char* context) {
    if (code > 0) return os_error(code, context);
    switch (code) {
        case MDB_MAP_FULL:
        case MDB_READERS_FULL: return {.code = Errc::kNoSpace, .context = context};
        case MDB_VERSION_MISMATCH: return {.code = Errc::kUnsupported, .context = context};
        default: return {.code = Errc::kCorrupt, .context = context};
    }
}

int put(MDB_cursor* cursor, Bytes key, Bytes value) {
    auto key_val = as_val(key);
    MDB_val room{.mv_size = value.size() + kSumBytes, .mv_data = nullptr};
    const int code = mdb_cursor_put(cursor, &key_val, &room, MDB_RESERVE);
    if (code != MDB_SUCCESS) return code;
    const std::span into(static_cast<std::byte*>(room.mv_data), room.mv_size);
    std::ranges::copy(value, into.begin());
    put_little(into, value.size(), entry_sum(key, value));
    return MDB_SUCCESS;
}

int erase(MDB_cursor* cursor, Bytes key) {
    auto key_val = as_val(key);
    const int code = mdb_cursor_get(cursor, &key_val, nullptr, MDB_SET);
    if (code == MDB_NOTFOUND) return MDB_SUCCESS;
    return code == MDB_SUCCESS ? mdb_cursor_del(cursor, 0) : code;
}

std::uint64_t live_bytes(const MDB_stat& stat) {
    return (stat.ms_branch_pages + stat.ms_leaf_pages + stat.ms_overflow_pages) * stat.ms_psize;
}

struct Outcome {
    Result<void> result;
};

Result<void> remove_file(const std::string& path) {
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
        return std::unexpected(os_error(errno, "remove an old index"));
    }
    return {};
}

}  // namespace

// -- opening --

LmdbIndex::LmdbIndex(World world, const Options& options)
    : world_(world), options_(options), map_bytes_(options.map_bytes), shown_(world.reactor) {}

LmdbIndex::~LmdbIndex() {
    reader_.close();
    if (environment_ != nullptr) mdb_env_close(environment_);
}

Task<Result<std::unique_ptr<LmdbIndex>>> LmdbIndex::open(World world, Options options) {
    std::unique_ptr<LmdbIndex> index(new LmdbIndex(world, options));
    auto open_file = [&index] { return Outcome{index->open_file()}; };
    const auto ran = co_await world.offload.run(world.reactor, open_file);
    if (!ran) co_return std::unexpected(ran.error());
    if (!ran->result) co_return std::unexpected(ran->result.error());
    co_return std::move(index);
}

Task<Result<std::unique_ptr<LmdbIndex>>> LmdbIndex::create(World world, Options options) {
    std::unique_ptr<LmdbIndex> index(new LmdbIndex(world, options));
    auto create_file = [&index] { return Outcome{index->create_file()}; };
    const auto ran = co_await world.offload.run(world.reactor, create_file);
    if (!ran) co_return std::unexpected(ran.error());
    if (!ran->result) co_return std::unexpected(ran->result.error());
    co_return std::move(index);
}

Result<void> LmdbIndex::open_file() {
    const auto checked = check_lmdb_file(options_.path);
    if (!checked) return std::unexpected(checked.error());
    // Twice the present size, so that the map need not grow soon.
    while (map_bytes_ < 2 * checked->size_bytes) map_bytes_ *= 2;
    const int code = open_environment();
    if (code != MDB_SUCCESS) return std::unexpected(lmdb_error(code, "open the index"));
    reserve_ = keep_reserve();
    return read_head();
}

Result<void> LmdbIndex::create_file() {
    for (const auto& path : {options_.path, options_.path + "-lock"}) {
        const auto removed = remove_file(path);
        if (!removed) return removed;
    }
    int code = open_environment();
    MDB_txn* transaction = nullptr;
    if (code == MDB_SUCCESS) code = mdb_txn_begin(environment_, nullptr, 0, &transaction);
    if (code == MDB_SUCCESS) {
        code = write_head(transaction, 0);
        if (code == MDB_SUCCESS) {
            code = mdb_txn_commit(transaction);
        } else {
            mdb_txn_abort(transaction);
        }
    }
    if (code != MDB_SUCCESS) return std::unexpected(lmdb_error(code, "create the index"));
    reserve_ = keep_reserve();
    return core::sync_directory(core::directory_of(options_.path),
                                "sync the directory of the index");
}

int LmdbIndex::open_environment() {
    int code = mdb_env_create(&environment_);
    if (code != MDB_SUCCESS) return code;
    code = mdb_env_set_mapsize(environment_, map_bytes_);
    if (code == MDB_SUCCESS) {
        code = mdb_env_open(environment_, options_.path.c_str(), kFlags, kFileMode);
    }
    MDB_txn* transaction = nullptr;
    if (code == MDB_SUCCESS) {
        code = mdb_txn_begin(environment_, nullptr, MDB_RDONLY, &transaction);
    }
    if (code != MDB_SUCCESS) return code;
    code = mdb_dbi_open(transaction, nullptr, 0, &database_);
    mdb_txn_abort(transaction);
    return code == MDB_SUCCESS ? reader_.prepare(environment_, database_) : code;
}

Result<void> LmdbIndex::read_head() {
    const auto entry = reader_.get(kHeadKey);
    reader_.release();
    if (!entry) return std::unexpected(entry.error());
    if (!*entry || (*entry)->size() < kIndexHeadBytes ||
        get_little<std::uint64_t>(**entry, 0) != kHeadMagic) {
        return corrupt("the index has no valid head");
    }
    const Bytes head = **entry;
    const auto schema_version = get_little<std::uint32_t>(head, 8);
    if (schema_version > options_.schema_version) {
        return std::unexpected(
            Error{.code = Errc::kUnsupported, .context = "schema version of the index"});
    }
    if (schema_version < options_.schema_version) {
        return std::unexpected(
            Error{.code = Errc::kInvalid, .context = "index of an older version"});
    }
    if (!std::ranges::equal(head.subspan(16, options_.disk_id.size()), options_.disk_id)) {
        return std::unexpected(Error{.code = Errc::kInvalid, .context = "index of another disk"});
    }
    applied_ = get_little<std::uint64_t>(head, 32);
    return {};
}

int LmdbIndex::write_head(MDB_txn* transaction, std::uint64_t applied) const {
    std::array<std::byte, kIndexHeadBytes> head{};
    put_little(std::span(head), 0, kHeadMagic);
    put_little(std::span(head), 8, options_.schema_version);
    std::ranges::copy(options_.disk_id, head.begin() + 16);
    put_little(std::span(head), 32, applied);
    MDB_cursor* cursor = nullptr;
    int code = mdb_cursor_open(transaction, database_, &cursor);
    if (code != MDB_SUCCESS) return code;
    code = put(cursor, kHeadKey, head);
    mdb_cursor_close(cursor);
    return code;
}

// -- changing --

Task<Result<void>> LmdbIndex::apply(Step step) {
    ENSURE(!applying_);
    if (failed_) co_return std::unexpected(Error{.code = Errc::kIo, .context = "index has failed"});
    applying_ = true;
    auto write_step = [this, step] { return write(step); };
    Result<void> applied{};
    for (;;) {
        const auto written = co_await world_.offload.run(world_.reactor, write_step);
        applied = {};
        if (!written) {
            applied = std::unexpected(written.error());
            break;
        }
        if (written->code == MDB_MAP_FULL) {
            while (showing_) {
                // Without a deadline: a call on another thread cannot be interrupted.
                const core::WaitOptions wait{};
                const auto shown = co_await shown_.wait(wait);
                ENSURE(shown.has_value());
            }
            applied = grow_map();
            if (applied) continue;
            break;
        }
        if (written->code != MDB_SUCCESS) {
            applied = std::unexpected(lmdb_error(written->code, "write the index"));
            failed_ = applied.error().code != Errc::kNoSpace;
        } else {
            reserve_ = written->reserve;
        }
        break;
    }
    if (applied) applied_ = step.applied;
    applying_ = false;
    co_return applied;
}

LmdbIndex::Written LmdbIndex::write(const Step& step) {
    MDB_txn* transaction = nullptr;
    int code = mdb_txn_begin(environment_, nullptr, 0, &transaction);
    if (code != MDB_SUCCESS) return {.code = code};
    code = write_changes(transaction, step);
    if (code == MDB_SUCCESS) code = write_head(transaction, step.applied);
    if (code != MDB_SUCCESS) {
        mdb_txn_abort(transaction);
        return {.code = code};
    }
    code = mdb_txn_commit(transaction);
    if (code != MDB_SUCCESS) return {.code = code};
    return {.reserve = keep_reserve()};
}

// The reserve consists of the unused pages of the file, and of blocks beyond its end that the file
// system has reserved for it. It is filled up when it is smaller than wanted; while it has half of
// the wanted size it still counts as a reserve. If the file system cannot reserve blocks, it is
// assumed to have room.
LmdbIndex::Reserve LmdbIndex::keep_reserve() {
    MDB_envinfo info{};
    MDB_stat stat{};
    int fd = -1;
    ENSURE(mdb_env_info(environment_, &info) == MDB_SUCCESS);
    ENSURE(mdb_env_stat(environment_, &stat) == MDB_SUCCESS);
    ENSURE(mdb_env_get_fd(environment_, &fd) == MDB_SUCCESS);
    const std::uint64_t end = (info.me_last_pgno + 1) * stat.ms_psize;
    const std::uint64_t live = live_bytes(stat);
    const std::uint64_t wanted = std::clamp(live, kReserveBytesMin, kReserveBytesMax);
    const auto reserve_bytes = [&] { return std::max(reserved_end_, end) - live; };
    bool is_trusted = false;
    // After a start the blocks beyond the end are unknown; reserving them again succeeds.
    for (std::uint64_t bytes = wanted;
         reserve_bytes() < wanted && bytes >= wanted / 2 && !is_trusted; bytes /= 2) {
        const int given = ::fallocate(fd, FALLOC_FL_KEEP_SIZE, static_cast<off_t>(end),
                                      static_cast<off_t>(bytes));
        if (given == 0) reserved_end_ = std::max(reserved_end_, end + bytes);
        if (given == 0) break;
        is_trusted = errno == EOPNOTSUPP;
    }
    struct statvfs file_system{};
    std::uint64_t free_bytes = 0;
    if (::fstatvfs(fd, &file_system) == 0) {
        free_bytes = std::uint64_t{file_system.f_bavail} * file_system.f_frsize;
    }
    return {.is_kept = is_trusted || reserve_bytes() >= wanted / 2,
            .room_bytes = reserve_bytes() + free_bytes / 2};
}

int LmdbIndex::write_changes(MDB_txn* transaction, const Step& step) const {
    MDB_cursor* cursor = nullptr;
    int code = mdb_cursor_open(transaction, database_, &cursor);
    if (code != MDB_SUCCESS) return code;
    step.changes->rewind();
    while (code == MDB_SUCCESS) {
        const auto change = step.changes->next();
        if (!change) break;
        code =
            change->value ? put(cursor, change->key, *change->value) : erase(cursor, change->key);
    }
    mdb_cursor_close(cursor);
    return code;
}

// Growing moves the map, so no view may exist; between two turns none does.
Result<void> LmdbIndex::grow_map() {
    ENSURE(!reader_.viewing());
    map_bytes_ *= 2;
    const int code = mdb_env_set_mapsize(environment_, map_bytes_);
    if (code != MDB_SUCCESS) return std::unexpected(lmdb_error(code, "grow the map of the index"));
    return {};
}

// -- show_all --

Task<Result<void>> LmdbIndex::show_all(IndexShow* show) {
    ENSURE(!showing_);
    showing_ = true;
    auto show_entries = [this, show] { return Outcome{this->show_entries(*show)}; };
    const auto ran = co_await world_.offload.run(world_.reactor, show_entries);
    showing_ = false;
    shown_.wake_all();
    if (!ran) co_return std::unexpected(ran.error());
    co_return ran->result;
}

// Uses its own view: the one of the reader belongs to the reactor's thread.
Result<void> LmdbIndex::show_entries(IndexShow& show) const {
    Reader reader;
    Result<void> shown;
    if (const int code = reader.prepare(environment_, database_); code != MDB_SUCCESS) {
        shown = std::unexpected(lmdb_error(code, "begin to read the index"));
    } else if (const auto head = reader.get(kHeadKey); !head) {
        shown = std::unexpected(head.error());
    } else if (!*head || (*head)->size() < kIndexHeadBytes) {
        shown = corrupt("the index has no valid head");
    } else {
        shown = show.begin(get_little<std::uint64_t>(**head, 32));
    }
    if (shown) {
        constexpr std::array kFirstKey{std::byte{1}};
        auto entry = reader.at_or_after(kFirstKey);
        while (entry && *entry && shown) {
            shown = show.entry(**entry);
            entry = reader.next();
        }
        if (!entry) shown = std::unexpected(entry.error());
    }
    reader.close();
    return shown;
}

IndexFigures LmdbIndex::figures() const {
    MDB_stat stat{};
    ENSURE(mdb_env_stat(environment_, &stat) == MDB_SUCCESS);
    return {.entry_count = stat.ms_entries - 1, .size_bytes = live_bytes(stat)};
}

// -- reading --

int LmdbIndex::Reader::prepare(MDB_env* environment, unsigned database) {
    int code = mdb_txn_begin(environment, nullptr, MDB_RDONLY, &transaction_);
    if (code != MDB_SUCCESS) return code;
    code = mdb_cursor_open(transaction_, database, &cursor_);
    mdb_txn_reset(transaction_);
    return code;
}

void LmdbIndex::Reader::close() {
    if (cursor_ != nullptr) mdb_cursor_close(cursor_);
    if (transaction_ != nullptr) mdb_txn_abort(transaction_);
}

Result<void> LmdbIndex::Reader::begin() {
    if (viewing_) return {};
    int code = mdb_txn_renew(transaction_);
    if (code == MDB_SUCCESS) {
        viewing_ = true;
        code = mdb_cursor_renew(transaction_, cursor_);
    }
    if (code != MDB_SUCCESS) return std::unexpected(lmdb_error(code, "begin to read the index"));
    return {};
}

void LmdbIndex::Reader::release() {
    if (!viewing_) return;
    mdb_txn_reset(transaction_);
    viewing_ = false;
}

Result<std::optional<Bytes>> LmdbIndex::Reader::get(Bytes key) {
    const auto begun = begin();
    if (!begun) return std::unexpected(begun.error());
    const auto moved = move(MDB_SET, key);
    if (!moved) return std::unexpected(moved.error());
    if (!*moved) return std::nullopt;
    const auto checked = checked_value(current_.key, current_.value);
    if (!checked) return std::unexpected(checked.error());
    return *checked;
}

// False: there is no such entry.
Result<bool> LmdbIndex::Reader::move(int operation, Bytes key) {
    auto key_val = as_val(key);
    MDB_val value{};
    const int code =
        mdb_cursor_get(cursor_, &key_val, &value, static_cast<MDB_cursor_op>(operation));
    if (code == MDB_NOTFOUND) return false;
    if (code != MDB_SUCCESS) return std::unexpected(lmdb_error(code, "read the index"));
    current_ = {.key = as_bytes(key_val), .value = as_bytes(value)};
    return true;
}

// The entry at the cursor; the head does not count.
Result<std::optional<IndexEntry>> LmdbIndex::Reader::entry(const Result<bool>& moved) const {
    if (!moved) return std::unexpected(moved.error());
    if (!*moved || current_.key.front() == kHeadKey.front()) return std::nullopt;
    const auto checked = checked_value(current_.key, current_.value);
    if (!checked) return std::unexpected(checked.error());
    return IndexEntry{.key = current_.key, .value = *checked};
}

Result<std::optional<IndexEntry>> LmdbIndex::Reader::at_or_after(Bytes key) {
    const auto begun = begin();
    if (!begun) return std::unexpected(begun.error());
    return entry(move(MDB_SET_RANGE, key));
}

// LMDB only searches forwards: the entry wanted is before the one it finds, or the last of all.
Result<std::optional<IndexEntry>> LmdbIndex::Reader::at_or_before(Bytes key) {
    const auto begun = begin();
    if (!begun) return std::unexpected(begun.error());
    const auto after = move(MDB_SET_RANGE, key);
    if (!after) return std::unexpected(after.error());
    if (!*after) return entry(move(MDB_LAST));
    if (current_.key.size() == key.size() &&
        std::memcmp(current_.key.data(), key.data(), key.size()) == 0) {
        return entry(true);
    }
    return entry(move(MDB_PREV));
}

Result<std::optional<IndexEntry>> LmdbIndex::Reader::next() {
    return entry(move(MDB_NEXT));
}

Result<std::optional<IndexEntry>> LmdbIndex::Reader::previous() {
    return entry(move(MDB_PREV));
}

}  // namespace fopd::store

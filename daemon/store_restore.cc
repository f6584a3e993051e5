#include "daemon/store_restore.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/byte_order.h"
#include "core/clock.h"
#include "core/directory.h"
#include "core/offload.h"
#include "core/poll_backend.h"
#include "core/reactor.h"
#include "daemon/data_dir.h"
#include "daemon/durable_file.h"
#include "daemon/local_disk_bay.h"
#include "daemon/slot_table.h"
#include "devices/label.h"
#include "library/media_table.h"
#include "store/backup.h"
#include "store/lmdb_index.h"

namespace fopd::daemon {

namespace {

Error cut_short() {
    return {.code = Errc::kCorrupt, .context = "the backup ends early"};
}

// Reads a backup chunk by chunk, from its start or from the start of a tree.
class BackupFile {
public:
    static Result<std::unique_ptr<BackupFile>> open(const std::string& path) {
        const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd < 0) return std::unexpected(os_error(errno, "open the backup"));
        std::unique_ptr<BackupFile> file(new BackupFile(fd));
        struct stat info{};
        if (::fstat(fd, &info) != 0) return std::unexpected(os_error(errno, "open the backup"));
        if (!S_ISREG(info.st_mode)) {
            return std::unexpected(Error{.code = Errc::kInvalid, .context = "not a regular file"});
        }
        return file;
    }
    ~BackupFile() { ::close(fd_); }
    BackupFile(const BackupFile&) = delete;
    BackupFile& operator=(const BackupFile&) = delete;

    std::uint64_t position() const { return position_; }
    void seek(std::uint64_t position) { position_ = position; }
    // Reads exactly `size_bytes`; the result is valid until the next call.
    Result<store::Bytes> read(std::size_t size_bytes) {
        bytes_.resize(size_bytes);
        for (std::size_t done = 0; done < size_bytes;) {
            const ssize_t read = ::pread(fd_, bytes_.data() + done, size_bytes - done,
                                         static_cast<off_t>(position_ + done));
            if (read < 0 && errno == EINTR) continue;
            if (read < 0) return std::unexpected(os_error(errno, "read the backup"));
            if (read == 0) return std::unexpected(cut_short());
            done += static_cast<std::size_t>(read);
        }
        position_ += size_bytes;
        return store::Bytes(bytes_);
    }
    bool at_end() const {
        std::byte next{};
        return ::pread(fd_, &next, 1, static_cast<off_t>(position_)) == 0;
    }

private:
    explicit BackupFile(int fd) : fd_(fd) {}

    const int fd_;
    std::uint64_t position_ = 0;
    std::vector<std::byte> bytes_;
};

struct FoundTree {
    store::BackupTree tree{};
    std::uint64_t begins_at = 0;  // Offset of its first chunk of entries.
};
struct Contents {
    store::BackupHead head{};
    std::optional<std::string> slots{};
    std::optional<std::string> media{};
    std::vector<FoundTree> trees{};
};

// Reads and verifies the whole file; any defect is an error.
Result<Contents> look_through(BackupFile& file) {
    store::BackupReader reader;
    Contents contents;
    const auto first = file.read(store::kBackupHeadBytes);
    if (!first) return std::unexpected(first.error());
    const auto head = reader.head(*first);
    if (!head) return std::unexpected(head.error());
    contents.head = *head;
    while (!reader.ended()) {
        const auto head_bytes = file.read(store::kBackupChunkHeadBytes);
        if (!head_bytes) return std::unexpected(head_bytes.error());
        const auto chunk = reader.chunk_head(*head_bytes);
        if (!chunk) return std::unexpected(chunk.error());
        const auto payload = file.read(chunk->payload_bytes);
        if (!payload) return std::unexpected(payload.error());
        const auto tree = reader.payload(*chunk, *payload);
        if (!tree) return std::unexpected(tree.error());
        if (*tree) contents.trees.push_back({.tree = **tree, .begins_at = file.position()});
        const std::string_view text(reinterpret_cast<const char*>(payload->data()),
                                    payload->size());
        if (chunk->kind == store::BackupChunk::kSlots) contents.slots = text;
        if (chunk->kind == store::BackupChunk::kMedia) {
            contents.media = contents.media.value_or("").append(text);
        }
    }
    if (!file.at_end()) {
        return std::unexpected(Error{.code = Errc::kCorrupt,
                                     .context = "the file goes on after the end of the backup"});
    }
    return contents;
}

// The entries of a verified tree, as changes to put into an index. Ends at a read error; the user
// then checks problem().
class TreeChanges final : public store::IndexChanges {
public:
    TreeChanges(BackupFile& file, const FoundTree& tree) : file_(file), tree_(tree) {}

    void rewind() override {
        file_.seek(tree_.begins_at);
        entries_.reset();
    }
    std::optional<store::IndexChange> next() override {
        while (!problem_) {
            if (!entries_ && !next_chunk()) break;
            const auto entry = entries_->next();
            if (!entry) problem_ = entry.error();
            if (entry && *entry) {
                return store::IndexChange{.key = (*entry)->key, .value = (*entry)->value};
            }
            entries_.reset();
        }
        return std::nullopt;
    }
    const std::optional<Error>& problem() const { return problem_; }

private:
    bool next_chunk() {
        const auto head = file_.read(store::kBackupChunkHeadBytes);
        if (!head) {
            problem_ = head.error();
            return false;
        }
        // Already verified: only the kind and the length are needed.
        const auto kind = get_little<std::uint32_t>(*head, 0);
        const auto size_bytes = get_little<std::uint32_t>(*head, sizeof kind);
        if (kind != static_cast<std::uint32_t>(store::BackupChunk::kEntries)) return false;
        if (size_bytes > store::kBackupChunkBytesMax) {
            problem_ = cut_short();
            return false;
        }
        const auto payload = file_.read(size_bytes);
        if (!payload) {
            problem_ = payload.error();
            return false;
        }
        entries_.emplace(*payload);
        return true;
    }

    BackupFile& file_;
    const FoundTree tree_;
    std::optional<store::BackupEntries> entries_;
    std::optional<Error> problem_;
};

// The steps of a restore, over the parts that they need.
class Restore {
public:
    Restore(std::string data_dir, core::Reactor& reactor, core::Offload& offload, BackupFile& file,
            std::uint32_t schema_version)
        : data_dir_(std::move(data_dir)),
          reactor_(reactor),
          offload_(offload),
          file_(file),
          schema_version_(schema_version) {}

    Started<void> put_node_id(const store::BackupHead& head);
    Started<void> put_slots(const std::string& text);
    Started<void> put_media(const std::string& text);
    Started<void> put_tree(const FoundTree& tree);
    Restored take_result() { return std::move(restored_); }

private:
    Started<void> put_text(const std::string& name, const std::string& text);
    Task<Result<void>> fill(std::string path, const FoundTree* tree);
    void note(const std::string& what, bool made) {
        restored_.lines.push_back(what + (made ? ": restored" : ": is there, and stays"));
        if (made) ++restored_.made;
    }

    const std::string data_dir_;
    core::Reactor& reactor_;
    core::Offload& offload_;
    BackupFile& file_;
    const std::uint32_t schema_version_;
    Restored restored_;
};

Started<void> Restore::put_node_id(const store::BackupHead& head) {
    const std::string path = data_dir_ + "/node.id";
    const std::string wanted = devices::format_id(head.node) + '\n';
    const auto there = read_small_file(path);
    if (there && *there != wanted) return refuse_file(path, "the backup is of another node");
    if (!there && there.error().code != Errc::kNotFound) {
        return refuse_file(path, describe(there.error()));
    }
    if (!there) {
        const auto written = replace_file(path, wanted, kFileMode);
        if (!written) return refuse_file(path, describe(written.error()));
    }
    note("node.id", !there);
    return {};
}

Started<void> Restore::put_slots(const std::string& text) {
    if (SlotTable::parse(text)) return put_text("slots", text);
    return refuse_file(data_dir_ + "/slots", "the slot table in the backup is invalid");
}

Started<void> Restore::put_media(const std::string& text) {
    if (library::MediaTable::parse(text)) return put_text("media", text);
    return refuse_file(data_dir_ + "/media", "the table of media in the backup is invalid");
}

Started<void> Restore::put_text(const std::string& name, const std::string& text) {
    const std::string path = data_dir_ + "/" + name;
    const auto there = read_small_file(path);
    if (!there && there.error().code != Errc::kNotFound) {
        return refuse_file(path, describe(there.error()));
    }
    if (!there) {
        const auto written = replace_file(path, text, kFileMode);
        if (!written) return refuse_file(path, describe(written.error()));
    }
    note(name, !there);
    return {};
}

// Built in a directory with a temporary name and then renamed: an index exists complete or not at
// all.
Started<void> Restore::put_tree(const FoundTree& tree) {
    namespace fs = std::filesystem;
    const bool is_index = tree.tree.kind == store::BackupTree::Kind::kIndex;
    const fs::path parent = data_dir_ + (is_index ? "/index" : "/names");
    const std::string name =
        is_index ? devices::format_id(tree.tree.owner) : std::to_string(tree.tree.part);
    const std::string shown = parent.filename().string() + "/" + name;
    std::error_code failed;
    if (fs::exists(parent / name / "index.mdb", failed)) {
        note(shown, false);
        return {};
    }
    const fs::path draft = parent / (name + ".restored");
    fs::remove_all(draft, failed);
    for (const fs::path& each : {parent, draft}) {
        if (::mkdir(each.c_str(), kDirectoryMode) != 0 && errno != EEXIST) {
            return refuse_file(each, std::strerror(errno));
        }
    }
    auto filled = reactor_.run_until_done(fill(draft / "index.mdb", &tree));
    if (!filled) {
        fs::remove_all(draft, failed);
        return refuse_file(parent / name, describe(filled.error()));
    }
    // A directory without an index may be there.
    fs::remove_all(parent / name, failed);
    fs::rename(draft, parent / name, failed);
    if (failed) return refuse_file(parent / name, failed.message());
    if (const auto synced = core::sync_directory(parent, "sync a directory"); !synced) {
        return refuse_file(parent, describe(synced.error()));
    }
    note(shown, true);
    return {};
}

Task<Result<void>> Restore::fill(std::string path, const FoundTree* tree) {
    const store::LmdbIndex::World world{.reactor = reactor_, .offload = offload_};
    // An index of an older version is rebuilt when the node starts.
    store::LmdbIndex::Options options{
        .path = std::move(path), .disk_id = tree->tree.owner, .schema_version = schema_version_};
    auto index = co_await store::LmdbIndex::create(world, std::move(options));
    if (!index) co_return std::unexpected(index.error());
    TreeChanges changes(file_, *tree);
    const store::Index::Step step{.changes = &changes, .applied = tree->tree.applied};
    const auto applied = co_await (*index)->apply(step);
    if (!applied) co_return applied;
    if (changes.problem()) co_return std::unexpected(*changes.problem());
    co_return Result<void>{};
}

}  // namespace

Started<Restored> restore_store(const std::string& data_dir, const std::string& file) {
    auto locked = DataDir::open(data_dir);
    if (!locked) return std::unexpected(locked.error());
    auto backup = BackupFile::open(file);
    if (!backup) return refuse_file(file, describe(backup.error()));
    const auto contents = look_through(**backup);
    if (!contents) return refuse_file(file, describe(contents.error()));

    const core::PosixClock clock;
    auto backend = core::make_poll_backend(clock);
    if (!backend) return refuse_file(data_dir, describe(backend.error()));
    core::Reactor reactor(std::move(*backend));
    auto offload = core::make_thread_offload({.name = "fopd-offload"});
    if (!offload) return refuse_file(data_dir, describe(offload.error()));
    Restore restore((*locked)->path(), reactor, **offload, **backup, contents->head.schema_version);
    // The node's id comes first: nothing of another node's backup may be used.
    Started<void> done = restore.put_node_id(contents->head);
    if (done && contents->slots) done = restore.put_slots(*contents->slots);
    if (done && contents->media) done = restore.put_media(*contents->media);
    for (const FoundTree& tree : contents->trees) {
        if (done) done = restore.put_tree(tree);
    }
    if (!done) return std::unexpected(done.error());
    return restore.take_result();
}

}  // namespace fopd::daemon

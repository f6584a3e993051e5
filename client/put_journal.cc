// SPDX-License-Identifier: BSD-2-Clause
#include "client/put_journal.h"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <span>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/object_call.h"
#include "client/replaced_file.h"
#include "core/whole_number.h"
#include "fop/hash.h"
#include "fop/hex.h"

namespace fopd::client {

namespace {

constexpr std::string_view kHeader = "fopctl put journal 1";
constexpr std::size_t kJournalBytesMax = std::size_t{4} << 30;
// So many outdated lines are left in the file; more, if as many lines are not outdated.
constexpr std::uint64_t kOutdatedMax = 1000;

// The fields of a line have tabs between them, which names of objects do not have.
std::vector<std::string_view> fields_of(std::string_view line) {
    std::vector<std::string_view> fields;
    for (;;) {
        const std::size_t tab = line.find('\t');
        fields.push_back(line.substr(0, tab));
        if (tab == line.npos) return fields;
        line.remove_prefix(tab + 1);
    }
}

bool read_stamp(std::span<const std::string_view> fields, FileStamp& stamp) {
    return core::read_number(fields[0], stamp.size_bytes) &&
           core::read_number(fields[1], stamp.inode) &&
           core::read_number(fields[2], stamp.modified_ns) &&
           core::read_number(fields[3], stamp.changed_ns);
}

std::string journal_text(const FileStamp& stamp) {
    return std::to_string(stamp.size_bytes) + "\t" + std::to_string(stamp.inode) + "\t" +
           std::to_string(stamp.modified_ns) + "\t" + std::to_string(stamp.changed_ns);
}

// The fields of a line: its kind, such as "stored"; fid; stamp, of four numbers; ...; path.
constexpr std::size_t kStampAt = 2;

std::string line_of(const std::string& path, const PutJournal::Stored& stored) {
    return "stored\t" + fop::to_hex(stored.fid) + "\t" + journal_text(stored.stamp) + "\t" + path +
           "\n";
}

std::string line_of(const std::string& path, const PutJournal::Begun& begun) {
    return "begun\t" + fop::to_hex(begun.upload.fid) + "\t" + journal_text(begun.stamp) + "\t" +
           std::to_string(begun.upload.window_bytes) + "\t" + begun.group + "\t" +
           (begun.collection.empty() ? "" : begun.collection + "\t") + path + "\n";
}

std::string line_of(const fop::Fid& fid, const UploadedWindow& window) {
    return "sent\t" + fop::to_hex(fid) + "\t" + std::to_string(window.index) + "\t" +
           std::to_string(window.incarnation) + "\n";
}

// Whether the path still leads to the open file. If not, another program has replaced the file, and
// a lock on the open one excludes nobody.
bool is_named(int fd, const std::string& path) {
    struct stat opened{};
    struct stat named{};
    return ::fstat(fd, &opened) == 0 && ::stat(path.c_str(), &named) == 0 &&
           opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

}  // namespace

std::expected<std::unique_ptr<PutJournal>, std::string> PutJournal::open(const std::string& path,
                                                                         Access access) {
    std::unique_ptr<PutJournal> journal(new PutJournal(path));
    const bool writes = access == Access::kWrite;
    const int flags = (writes ? O_RDWR | O_CREAT | O_APPEND : O_RDONLY) | O_CLOEXEC;
    core::OwnedFd file;
    do {
        file = core::OwnedFd(::open(path.c_str(), flags, 0600));
        if (file.get() < 0 && errno == ENOENT && !writes) return journal;
        if (file.get() < 0) return std::unexpected(file_words(path, errno));
        if (writes && ::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
            return std::unexpected(errno == EWOULDBLOCK
                                       ? path + ": another fopctl stores the same directory"
                                       : file_words(path, errno));
        }
        // Each time, another program has replaced the file between the two calls.
    } while (writes && !is_named(file.get(), path));
    std::string text;
    if (const int os_errno = read_all(file.get(), kJournalBytesMax, text); os_errno != 0) {
        return std::unexpected(file_words(path, os_errno));
    }
    std::string_view rest(text);
    const bool is_ours = rest.starts_with(kHeader);
    while (is_ours && !rest.empty()) {
        const std::size_t end = rest.find('\n');
        if (end == rest.npos) break;  // The program was killed while it wrote this line.
        journal->read_line(rest.substr(0, end));
        rest.remove_prefix(end + 1);
        ++journal->line_count_;
    }
    if (!writes) return journal;
    journal->file_ = std::move(file);
    const std::uint64_t useful = journal->known_.size() + journal->uploads_.size();
    const bool is_long = journal->line_count_ > 2 * useful + kOutdatedMax;
    if (is_ours && rest.empty() && !is_long) return journal;
    if (const int os_errno = journal->rewrite(); os_errno != 0) {
        return std::unexpected(file_words(path, os_errno));
    }
    return journal;
}

void PutJournal::read_line(std::string_view line) {
    const std::vector<std::string_view> fields = fields_of(line);
    if (fields.size() < 4) return;
    const auto fid = parse_fid(fields[1]);
    if (!fid) return;
    if (fields[0] == "stored" && fields.size() == 7) {
        Known known{.stored = {.fid = *fid}};
        if (!read_stamp(std::span(fields).subspan(kStampAt, 4), known.stored.stamp)) return;
        const std::string path(fields[6]);
        forget_upload(path);
        known_[path] = known;
    } else if (fields[0] == "begun" && (fields.size() == 9 || fields.size() == 10)) {
        // Without a collection there is no field for it.
        Begun begun{.group = std::string(fields[7]),
                    .collection = std::string(fields.size() == 10 ? fields[8] : ""),
                    .upload = {.fid = *fid}};
        if (!read_stamp(std::span(fields).subspan(kStampAt, 4), begun.stamp) ||
            !core::read_number(fields[6], begun.upload.window_bytes)) {
            return;
        }
        std::string path(fields.back());
        forget_upload(path);
        paths_[*fid] = path;
        uploads_[std::move(path)] = std::move(begun);
    } else if (fields[0] == "sent" && fields.size() == 4) {
        UploadedWindow window;
        if (core::read_number(fields[2], window.index) &&
            core::read_number(fields[3], window.incarnation)) {
            keep(*fid, window);
        }
    }
}

const PutJournal::Stored* PutJournal::find(const std::string& path) {
    if (const auto upload = uploads_.find(path); upload != uploads_.end()) {
        upload->second.is_seen = true;
    }
    const auto found = known_.find(path);
    if (found == known_.end()) return nullptr;
    found->second.is_seen = true;
    return &found->second.stored;
}

const PutJournal::Begun* PutJournal::find_upload(const std::string& path) const {
    const auto found = uploads_.find(path);
    return found == uploads_.end() ? nullptr : &found->second;
}

void PutJournal::add(const std::string& path, const Stored& stored) {
    known_[path] = {.stored = stored, .is_seen = true};
    forget_upload(path);
    append(line_of(path, stored));
}

void PutJournal::add_upload(const std::string& path, Begun begun) {
    append(line_of(path, begun));
    begun.is_seen = true;
    forget_upload(path);
    paths_[begun.upload.fid] = path;
    uploads_[path] = std::move(begun);
}

void PutJournal::add_sent(const fop::Fid& fid, UploadedWindow window) {
    keep(fid, window);
    append(line_of(fid, window));
}

void PutJournal::keep(const fop::Fid& fid, UploadedWindow window) {
    const auto path = paths_.find(fid);
    if (path == paths_.end()) return;
    const auto upload = uploads_.find(path->second);
    if (upload == uploads_.end() || upload->second.upload.fid != fid) return;
    upload->second.upload.windows.push_back(window);
}

void PutJournal::forget_upload(const std::string& path) {
    const auto upload = uploads_.find(path);
    if (upload == uploads_.end()) return;
    paths_.erase(upload->second.upload.fid);
    uploads_.erase(upload);
}

void PutJournal::forget_others() {
    const auto is_unseen = [](const auto& each) { return !each.second.is_seen; };
    const std::size_t forgotten = std::erase_if(known_, is_unseen);
    const std::size_t uploads_forgotten = std::erase_if(uploads_, is_unseen);
    std::erase_if(paths_, [this](const auto& each) { return !uploads_.contains(each.second); });
    const bool is_outdated = forgotten + uploads_forgotten > 0;
    // A journal that cannot be rewritten has more than it needs.
    if (is_outdated && file_.get() >= 0) [[maybe_unused]]
        const int os_errno = rewrite();
}

// A file that cannot be written to any more is not; the next run sends more than it would have to.
void PutJournal::append(const std::string& line) {
    if (file_.get() < 0) return;
    ++line_count_;
    if (write_all(file_.get(), std::as_bytes(std::span(line))) != 0) file_ = core::OwnedFd();
}

std::string PutJournal::text() const {
    std::string text = std::string(kHeader) + "\n";
    for (const auto& [path, known] : known_) text += line_of(path, known.stored);
    for (const auto& [path, begun] : uploads_) {
        text += line_of(path, begun);
        for (const UploadedWindow& each : begun.upload.windows) {
            text += line_of(begun.upload.fid, each);
        }
    }
    return text;
}

int PutJournal::rewrite() {
    const std::string draft = path_ + ".new";
    core::OwnedFd file(::open(
        draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (file.get() < 0 || ::flock(file.get(), LOCK_EX | LOCK_NB) != 0) return errno;
    const std::string whole = text();
    if (const int os_errno = write_all(file.get(), std::as_bytes(std::span(whole)));
        os_errno != 0) {
        ::unlink(draft.c_str());
        return os_errno;
    }
    if (::rename(draft.c_str(), path_.c_str()) != 0) return errno;
    file_ = std::move(file);
    line_count_ = known_.size() + uploads_.size();
    return 0;
}

// -- its path --

std::string journal_path(const PutTarget& target) {
    const char* const state = std::getenv("XDG_STATE_HOME");
    const char* const home = std::getenv("HOME");
    std::string path;
    if (state != nullptr && state[0] == '/') {
        path = state;
    } else if (home != nullptr && home[0] == '/') {
        path = std::string(home) + "/.local/state";
    } else {
        return {};
    }
    // The parts have no NUL, which therefore keeps them apart.
    const std::string key =
        target.server + '\0' + target.pool + '\0' + target.prefix + '\0' + target.directory;
    const fop::Hash hash = fop::hash({std::as_bytes(std::span(key))});
    return path + "/fopctl/" + fop::to_hex(std::span(hash).first(16)) + ".journal";
}

int make_journal_directory(const std::string& path) {
    for (std::size_t slash = path.find('/', 1); slash != path.npos;
         slash = path.find('/', slash + 1)) {
        const std::string directory = path.substr(0, slash);
        if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST && errno != EROFS) {
            return errno;
        }
    }
    return 0;
}

}  // namespace fopd::client

#include "daemon/store_backup.h"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

#include "daemon/durable_file.h"

namespace fopd::daemon {

namespace {

constexpr mode_t kMode = 0600;
constexpr std::size_t kWrittenAtOnce = 256UL << 10;

}  // namespace

Result<std::unique_ptr<StoreBackup>> StoreBackup::begin(const std::string& directory,
                                                        store::BackupHead head) {
    auto media = read_small_file(directory + "/media");
    if (!media && media.error().code != Errc::kNotFound) return std::unexpected(media.error());
    head.has_media = media && !media->empty();
    const std::string path = directory + "/backup.tmp";
    // Left by a crash between the two calls below.
    ::unlink(path.c_str());
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, kMode);
    if (fd < 0) return std::unexpected(os_error(errno, "make a file for the backup"));
    ::unlink(path.c_str());
    return std::unique_ptr<StoreBackup>(new StoreBackup(fd, head, std::move(media).value_or("")));
}

StoreBackup::~StoreBackup() {
    ::close(fd_);
}

Result<void> StoreBackup::write_out() {
    if (given_up_.load(std::memory_order_relaxed)) {
        return std::unexpected(Error{.code = Errc::kCancelled, .context = "the node is stopping"});
    }
    store::Bytes rest = writer_.bytes();
    while (!rest.empty()) {
        const ssize_t written =
            ::pwrite(fd_, rest.data(), rest.size(), static_cast<off_t>(size_bytes_));
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return std::unexpected(os_error(errno, "write the backup"));
        size_bytes_ += static_cast<std::uint64_t>(written);
        rest = rest.subspan(static_cast<std::size_t>(written));
    }
    writer_.clear();
    return {};
}

Result<void> StoreBackup::slots(std::string_view text) {
    writer_.slots(text);
    writer_.media(media_);
    return write_out();
}

Result<void> StoreBackup::begin(std::uint64_t applied) {
    tree_.applied = applied;
    writer_.begin_tree(tree_);
    ++tree_count_;
    return {};
}

Result<void> StoreBackup::entry(const store::IndexEntry& entry) {
    writer_.entry(entry);
    ++entry_count_;
    if (writer_.bytes().size() < kWrittenAtOnce) return {};
    return write_out();
}

Result<void> StoreBackup::end_tree() {
    writer_.end_tree();
    return write_out();
}

Result<void> StoreBackup::end() {
    writer_.end();
    return write_out();
}

Result<std::string> StoreBackup::read(std::uint64_t offset, std::size_t size_bytes) const {
    if (offset > size_bytes_) {
        return std::unexpected(
            Error{.code = Errc::kInvalid, .context = "the offset is after the end of the backup"});
    }
    std::string bytes(std::min<std::uint64_t>(size_bytes, size_bytes_ - offset), '\0');
    for (std::size_t done = 0; done < bytes.size();) {
        const ssize_t read = ::pread(fd_, bytes.data() + done, bytes.size() - done,
                                     static_cast<off_t>(offset + done));
        if (read < 0 && errno == EINTR) continue;
        if (read < 0) return std::unexpected(os_error(errno, "read the backup"));
        if (read == 0) {
            return std::unexpected(
                Error{.code = Errc::kIo, .context = "the backup ends before that offset"});
        }
        done += static_cast<std::size_t>(read);
    }
    return bytes;
}

}  // namespace fopd::daemon

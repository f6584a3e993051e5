#include "core/io_at_once.h"

#include <algorithm>
#include <cerrno>

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace fopd::core {

bool is_in_memory(int fd) {
    // A block device is a node of devtmpfs, which says that it is a tmpfs; the contents are
    // elsewhere.
    struct stat info{};
    if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return false;
    struct statfs about{};
    if (::fstatfs(fd, &about) != 0) return false;
    return about.f_type == TMPFS_MAGIC || about.f_type == RAMFS_MAGIC;
}

void carry_out_at_once(IoOp& op) {
    const auto offset = static_cast<off_t>(op.offset);
    const std::size_t size_bytes = std::min(op.buffer.size_bytes, kIoBytesMax);
    ssize_t result = 0;
    do {
        switch (op.code) {
            case IoCode::kRead:
                result = ::pread(op.file.fd, op.buffer.data, size_bytes, offset);
                break;
            case IoCode::kWrite:
                result = ::pwrite(op.file.fd, op.buffer.data, size_bytes, offset);
                break;
            case IoCode::kGather:
                result = ::pwritev(op.file.fd, reinterpret_cast<const iovec*>(op.buffer.data),
                                   static_cast<int>(op.buffer.size_bytes), offset);
                break;
            case IoCode::kSync: result = ::fsync(op.file.fd); break;
            case IoCode::kSyncData: result = ::fdatasync(op.file.fd); break;
            case IoCode::kNop: break;
            case IoCode::kPoll:
                result = -1;
                errno = EOPNOTSUPP;
                break;
        }
    } while (result < 0 && errno == EINTR);
    op.result = result < 0 ? -errno : static_cast<std::int32_t>(result);
}

}  // namespace fopd::core

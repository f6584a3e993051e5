// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <compare>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>

#include <sys/stat.h>

#include "client/transfer.h"
#include "core/cancel.h"
#include "core/offload.h"
#include "core/reactor.h"

namespace fopd::client {

// The services that local files use. Blocking calls run on the offload, so that
// the reactor can answer the server meanwhile.
struct LocalWorld {
    core::Reactor& reactor;
    core::Offload& offload;
    core::CancelSource& cancel;
};

// Attributes of a file that show whether its bytes have changed, or another file has taken its
// name.
struct FileStamp {
    std::uint64_t size_bytes = 0;
    std::uint64_t inode = 0;
    // When the bytes were changed, since 1970. Programs may set it to any time.
    std::int64_t modified_ns = 0;
    std::int64_t changed_ns = 0;  // When the bytes, the owner or other attributes were changed.
    friend bool operator==(const FileStamp&, const FileStamp&) = default;
};
FileStamp stamp_of(const struct stat& info);

// A file, or with "-" standard input. Only a regular file can be read again.
class LocalSource final : public ByteSource {
public:
    // The error is for people, and names the file.
    static std::expected<std::unique_ptr<LocalSource>, std::string> open(LocalWorld world,
                                                                         const std::string& path);
    // Reads an open file, and closes it. `name` is for messages.
    static std::expected<std::unique_ptr<LocalSource>, std::string> take(LocalWorld world, int fd,
                                                                         std::string name);
    ~LocalSource() override;

    Task<Outcome<std::size_t>> read(std::uint64_t offset, std::span<std::byte> into) override;
    bool repeats() const override { return is_regular_; }
    std::uint64_t size_bytes() const override { return size_bytes_; }

    // The stamp of the file when it was opened. REQUIRES: a regular file.
    const FileStamp& stamp() const { return stamp_; }
    // Whether every change since the open is visible in the stamp. False if the file was changed
    // within the same tick of the file system's clock as the open: a second change in that tick
    // leaves the stamp as it is. Example: a write, open() and another write, all within 1 ms.
    bool is_settled() const { return is_settled_; }
    // The present stamp of the file. Blocks. Fails with an errno.
    std::expected<FileStamp, int> stamp_now() const;
    // Called after the bytes were read and sent. Fails, with a text that names the file, if the
    // file was changed meanwhile, or `read_bytes` is not its size. Otherwise returns its present
    // stamp, which is empty for a stream.
    Task<Outcome<FileStamp>> check_unchanged(std::uint64_t read_bytes) const;
    // For messages.
    const std::string& name() const { return name_; }

private:
    LocalSource(LocalWorld world, std::string name) : world_(world), name_(std::move(name)) {}
    Task<Outcome<std::size_t>> read_regular(std::uint64_t offset, std::span<std::byte> into);
    Task<Outcome<std::size_t>> read_stream(std::span<std::byte> into);

    LocalWorld world_;
    const std::string name_;
    int fd_ = -1;
    bool is_regular_ = false;
    std::uint64_t begin_ = 0;  // Standard input may be a file that was read up to here.
    std::uint64_t size_bytes_ = 0;
    FileStamp stamp_{};
    bool is_settled_ = false;
};

// Identifies a file independently of its names.
struct FileId {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    auto operator<=>(const FileId&) const = default;
};

// A file, or with "-" standard output. A regular file appears as a whole or not at all: it is
// written under a temporary name or none, and gets its name when it is finished.
class LocalSink final : public ByteSink {
public:
    // Follows symbolic links. Writes directly to anything but a regular file (a device, a pipe).
    static std::expected<std::unique_ptr<LocalSink>, std::string> open(LocalWorld world,
                                                                       const std::string& path);
    // A regular file in a directory. Anything else that has the name, such as a symbolic link, is
    // refused.
    struct FileAt {
        int directory_fd = -1;  // Becomes the sink's.
        std::string leaf{};     // A name in that directory.
        std::string shown{};    // For messages.
    };
    static std::expected<std::unique_ptr<LocalSink>, std::string> open_at(LocalWorld world,
                                                                          FileAt file);
    // Removes the file if it was not finished.
    ~LocalSink() override;

    Task<Outcome<void>> write(std::span<const std::byte> from) override;
    // Before finish(): when the bytes of a regular file were changed last, since 1970.
    void set_modified(std::uint64_t modified_ns) { modified_ns_ = modified_ns; }
    Outcome<void> finish();

    // For messages.
    const std::string& name() const { return name_; }
    // The file being written, and the existing file that finish() will replace; none: there is
    // none, or it cannot be examined. REQUIRES: not finished.
    std::optional<FileId> id() const;
    std::optional<FileId> replaced() const;

private:
    LocalSink(LocalWorld world, std::string name) : world_(world), name_(std::move(name)) {}
    // `mode` is the mode of the file to be replaced, or 0. The new file gets its permission bits,
    // but not setuid, setgid and sticky.
    static std::expected<std::unique_ptr<LocalSink>, std::string> begun(
        std::unique_ptr<LocalSink> sink, unsigned mode);
    bool open_draft(unsigned mode);
    // A temporary name that no other sink of this process has.
    std::string draft_name() const;

    LocalWorld world_;
    const std::string name_;
    int directory_fd_ = -1;  // The directory of the new file; -1: an existing file is written to.
    std::string leaf_{};     // The name of the new file in the directory.
    std::string draft_{};    // Its temporary name in the directory; empty: none.
    int fd_ = -1;
    std::optional<std::uint64_t> modified_ns_;  // None: the file system sets it.
};

}  // namespace fopd::client

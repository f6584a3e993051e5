#include "devices/tape/tape_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/byte_order.h"
#include "core/directory.h"
#include "core/whole_number.h"
#include "devices/tape/tap_image.h"
#include "devices/tape/tape_error.h"

namespace fopd::devices {

namespace {

// Space is reserved in steps of this, and always at least the margin ahead: when a step fails, the
// file that is being written can still be ended.
constexpr std::uint64_t kReserveStep = 64UL << 20;
constexpr std::uint64_t kReserveMargin = 4UL << 20;

Result<std::size_t> read_at(int fd, std::uint64_t offset, std::span<std::byte> into) {
    std::size_t done = 0;
    while (done < into.size()) {
        const ssize_t got =
            ::pread(fd, into.data() + done, into.size() - done, static_cast<off_t>(offset + done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return tape_os_error("read the image of a cartridge");
        if (got == 0) break;
        done += static_cast<std::size_t>(got);
    }
    return done;
}

Result<void> write_at(int fd, std::uint64_t offset, std::span<iovec> parts) {
    while (!parts.empty()) {
        const ssize_t put =
            ::pwritev(fd, parts.data(), static_cast<int>(parts.size()), static_cast<off_t>(offset));
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return tape_os_error("write the image of a cartridge");
        offset += static_cast<std::uint64_t>(put);
        auto done = static_cast<std::size_t>(put);
        while (!parts.empty() && done >= parts.front().iov_len) {
            done -= parts.front().iov_len;
            parts = parts.subspan(1);
        }
        if (parts.empty()) break;
        parts.front().iov_base = static_cast<std::byte*>(parts.front().iov_base) + done;
        parts.front().iov_len -= done;
    }
    return {};
}

Error with_kind(Error error) {
    // A limit on the size of files is an end as well.
    if (error.os_errno == EFBIG || error.os_errno == EDQUOT) error.code = Errc::kNoSpace;
    return error;
}

}  // namespace

TapeFile::TapeFile(TapeFileOptions options, core::OwnedFd image)
    : options_(std::move(options)), image_(std::move(image)) {}

Result<TapeFile> TapeFile::open(TapeFileOptions options) {
    const auto open_with = [&](int flags) {
        return ::open(options.path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, 0600);
    };
    int fd = open_with((options.read_only ? O_RDONLY : O_RDWR) | O_CREAT);
    if (fd < 0 && (errno == EROFS || errno == EACCES)) {
        options.read_only = true;
        fd = open_with(O_RDONLY);
    }
    if (fd < 0) return tape_os_error("open the image of a cartridge");
    TapeFile file(std::move(options), core::OwnedFd(fd));
    struct stat status{};
    if (::fstat(fd, &status) != 0) return tape_os_error("look at the image of a cartridge");
    if (!S_ISREG(status.st_mode)) {
        return tape_refused(Errc::kInvalid, "image of a cartridge is not a file");
    }
    file.size_bytes_ = static_cast<std::uint64_t>(status.st_size);
    if (const auto mapped = file.map(); !mapped) return std::unexpected(mapped.error());
    return file;
}

std::string TapeFile::durable_path() const {
    return options_.path + ".durable";
}

// Nothing also if the file was not finished: the image was not written then.
std::optional<TapeFile::Durable> TapeFile::read_durable() const {
    const int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    const core::OwnedFd file(::open(durable_path().c_str(), flags));
    if (file.get() < 0) return std::nullopt;
    std::array<char, 128> bytes{};
    const auto got = read_at(file.get(), 0, std::as_writable_bytes(std::span(bytes)));
    if (!got) return std::nullopt;
    const std::string_view text(bytes.data(), *got);
    const std::size_t blank = text.find(' ');
    const std::size_t end = text.find('\n');
    if (blank == std::string_view::npos || end == std::string_view::npos || blank > end) {
        return std::nullopt;
    }
    const auto size_bytes = core::whole_number(text.substr(0, blank));
    if (!size_bytes) return std::nullopt;
    std::string boot_id(text.substr(blank + 1, end - blank - 1));
    boot_id.erase(boot_id.find_last_not_of(' ') + 1);
    return Durable{.size_bytes = *size_bytes, .boot_id = std::move(boot_id)};
}

Result<void> TapeFile::map() {
    const ReadImage read = [this](std::uint64_t offset, std::span<std::byte> into) {
        return read_at(image_.get(), offset, into);
    };
    const auto durable = read_durable();
    std::uint64_t valid_bytes = size_bytes_;
    const bool is_same_boot =
        durable && !options_.boot_id.empty() && durable->boot_id == options_.boot_id;
    if (durable && !is_same_boot) {
        valid_bytes = std::min(valid_bytes, durable->size_bytes);
    }
    auto mapped = map_image(read, valid_bytes);
    if (!mapped) return std::unexpected(mapped.error());
    records_ = std::move(mapped->records);
    const bool is_damaged = mapped->end == MappedImage::End::kDamaged &&
                            !(durable && records_.end_offset() >= durable->size_bytes);
    if (is_damaged) {
        records_.add_unreadable(1);
        damaged_ = true;
        options_.read_only = true;
    }
    if (options_.read_only || !durable) return {};
    // The whole records that the last user has left are made durable before they are used.
    durable_bytes_ = durable->size_bytes;
    if (const auto kept = open_durable(); !kept) return kept;
    if (const auto ended = end_at(records_.end_offset()); !ended) return ended;
    if (const auto synced = sync(records_.end_offset()); !synced) return synced;
    // Also if it is as much as before: this boot may be another one.
    return keep_durable(records_.end_offset());
}

std::unexpected<Error> TapeFile::failed(Error error) {
    if (!failure_) failure_ = error;
    return std::unexpected(error);
}

Result<void> TapeFile::read(std::uint64_t offset, core::Buffer into) const {
    const auto got = read_at(image_.get(), offset + kTapLengthBytes, into.span());
    if (!got) return std::unexpected(got.error());
    if (*got < into.size_bytes) {
        return tape_refused(Errc::kCorrupt, "image of a cartridge is too short");
    }
    return {};
}

// Makes the names of the image and of its note durable.
Result<void> TapeFile::open_durable() {
    const int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW;
    durable_ = core::OwnedFd(::open(durable_path().c_str(), flags, 0600));
    if (durable_.get() < 0) return tape_os_error("note that a cartridge is written");
    return core::sync_directory(core::directory_of(options_.path),
                                "note that a cartridge is written");
}

// Says durably that so much of the image is durable, before anything behind that is changed.
Result<void> TapeFile::keep_durable(std::uint64_t size_bytes) {
    // Of a fixed size, so that it is written at once, in place.
    std::string text = std::to_string(size_bytes);
    text.insert(0, 20 - text.size(), '0');
    // After a failure of the image it is as after a crash of the system.
    text.append(" ").append(failure_ ? "failed" : options_.boot_id);
    text.resize(std::max<std::size_t>(text.size(), 60), ' ');
    text.append("\n");
    iovec part{.iov_base = text.data(), .iov_len = text.size()};
    if (const auto put = write_at(durable_.get(), 0, {&part, 1}); !put) return put;
    if (::fdatasync(durable_.get()) != 0) return tape_os_error("note that a cartridge is written");
    durable_bytes_ = size_bytes;
    return {};
}

// Called before the first change of the file, and before a change of durable data.
Result<void> TapeFile::end_at(std::uint64_t offset) {
    if (failure_) return std::unexpected(*failure_);
    if (durable_.get() < 0) {
        auto noted = open_durable();
        if (noted) noted = keep_durable(offset);
        // The next change tries again: none is made without the note.
        if (!noted) durable_ = {};
        if (!noted) return noted;
    } else if (offset < durable_bytes_) {
        if (const auto kept = keep_durable(offset); !kept) return kept;
    }
    if (offset == size_bytes_) return {};
    if (::ftruncate(image_.get(), static_cast<off_t>(offset)) != 0) {
        return failed(os_error(errno, "end the image of a cartridge"));
    }
    size_bytes_ = offset;
    reserved_bytes_ = std::min(reserved_bytes_, offset);
    return {};
}

// Takes space ahead, so that a full file system is noticed as early as the end of a tape is.
TapeRoom TapeFile::reserve(std::uint64_t end) {
    if (!can_reserve_ || end + kReserveMargin <= reserved_bytes_) return TapeRoom::kPlenty;
    for (const std::uint64_t ahead : {kReserveStep, kReserveMargin}) {
        const std::uint64_t from = std::max(reserved_bytes_, size_bytes_);
        const std::uint64_t wanted = end + ahead;
        if (::fallocate(image_.get(), FALLOC_FL_KEEP_SIZE, static_cast<off_t>(from),
                        static_cast<off_t>(wanted - from)) == 0) {
            reserved_bytes_ = wanted;
            return TapeRoom::kPlenty;
        }
        const Error error = with_kind(os_error(errno, "take space for a cartridge"));
        if (error.code != Errc::kNoSpace) {
            can_reserve_ = false;  // This file system cannot.
            return TapeRoom::kPlenty;
        }
    }
    return TapeRoom::kEarlyWarning;
}

Result<void> TapeFile::put(std::uint64_t offset, core::Buffer from) const {
    std::array<std::byte, kTapLengthBytes> length;
    put_little(length, 0, static_cast<std::uint32_t>(from.size_bytes));
    std::array<std::byte, 1 + kTapLengthBytes> end{};
    const std::size_t padding = from.size_bytes % 2;
    put_little(end, padding, static_cast<std::uint32_t>(from.size_bytes));
    std::array<iovec, 3> parts{iovec{.iov_base = length.data(), .iov_len = length.size()},
                               iovec{.iov_base = from.data, .iov_len = from.size_bytes},
                               iovec{.iov_base = end.data(), .iov_len = padding + kTapLengthBytes}};
    return write_at(image_.get(), offset, parts);
}

// The image ends at the offset again, after a write there has failed.
Result<TapeRoom> TapeFile::undo(std::uint64_t offset, const Error& error) {
    if (error.code != Errc::kNoSpace) return failed(error);
    if (::ftruncate(image_.get(), static_cast<off_t>(offset)) != 0) {
        return failed(os_error(errno, "end the image of a cartridge"));
    }
    reserved_bytes_ = std::min(reserved_bytes_, offset);
    return std::unexpected(error);
}

Result<TapeRoom> TapeFile::write(std::uint64_t offset, core::Buffer from) {
    if (const auto ended = end_at(offset); !ended) return std::unexpected(ended.error());
    const std::uint64_t end = offset + image_bytes(static_cast<std::uint32_t>(from.size_bytes));
    const TapeRoom room = reserve(end);
    if (const auto done = put(offset, from); !done) return undo(offset, with_kind(done.error()));
    size_bytes_ = end;
    return room;
}

Result<TapeRoom> TapeFile::write_filemarks(std::uint64_t offset, std::uint32_t count) {
    if (const auto ended = end_at(offset); !ended) return std::unexpected(ended.error());
    std::vector<std::byte> marks(kTapLengthBytes * std::size_t{count});
    const TapeRoom room = reserve(offset + marks.size());
    iovec part{.iov_base = marks.data(), .iov_len = marks.size()};
    if (const auto done = write_at(image_.get(), offset, {&part, 1}); !done) {
        return undo(offset, with_kind(done.error()));
    }
    size_bytes_ = offset + marks.size();
    return room;
}

Result<void> TapeFile::sync(std::uint64_t end) {
    if (failure_) return std::unexpected(*failure_);
    if (durable_.get() < 0) return {};
    if (::fdatasync(image_.get()) != 0) {
        const Error error = os_error(errno, "sync the image of a cartridge");
        const auto result = failed(error);
        // If this fails as well, only a crash of the system before the next load makes a
        // difference.
        static_cast<void>(keep_durable(durable_bytes_));
        return result;
    }
    if (end == durable_bytes_) return {};
    if (const auto kept = keep_durable(end); !kept) return failed(kept.error());
    return {};
}

Result<void> TapeFile::close(std::uint64_t end) {
    auto result = sync(end);
    if (durable_.get() >= 0 && result) {
        // Space that was taken ahead is given back.
        if (::ftruncate(image_.get(), static_cast<off_t>(size_bytes_)) != 0) {
            result = tape_os_error("end the image of a cartridge");
        }
        ::unlink(durable_path().c_str());
    }
    durable_ = {};
    image_ = {};
    return result;
}

}  // namespace fopd::devices

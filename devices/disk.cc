#include "devices/disk.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <sys/uio.h>

#include "core/ensure.h"
#include "devices/disk_file.h"

namespace fopd::devices {

namespace {

// The most that one kernel operation transfers; the rest needs further operations.
constexpr std::size_t kTransferBytesMax = 1UL << 30;

// The progress of a transfer that the kernel may end early.
class Transfer {
public:
    Transfer(const core::Buffer& buffer, std::uint64_t offset) : rest_(buffer), offset_(offset) {}

    bool done() const { return rest_.size_bytes == 0; }
    std::uint64_t offset() const { return offset_; }
    core::Buffer part() const {
        core::Buffer part = rest_;
        part.size_bytes = std::min(part.size_bytes, kTransferBytesMax);
        return part;
    }
    // Returns false if there was no progress. Continues at a block boundary, as direct I/O
    // requires; a partly transferred block is repeated.
    bool advance(std::size_t size_bytes) {
        const std::size_t whole = size_bytes / kBlockBytes * kBlockBytes;
        rest_.data += whole;
        rest_.size_bytes -= whole;
        offset_ += whole;
        return whole > 0;
    }

private:
    core::Buffer rest_;
    std::uint64_t offset_;
};

// The error of a write or read of the disk, with a context that clients understand.
Error disk_error(Error error, const char* failed) {
    if (error.os_errno == 0) return error;
    const bool is_full = error.os_errno == ENOSPC || error.os_errno == EDQUOT;
    error.context = is_full ? "no space in the file system that holds the disk image" : failed;
    return error;
}

}  // namespace

Disk::Disk(core::Reactor& reactor, core::Offload& offload, core::EventSink& events,
           DiskOptions options)
    : reactor_(reactor), offload_(offload), events_(events), options_(std::move(options)) {}

Disk::~Disk() {
    if (file_.fd < 0) return;
    reactor_.detach(file_);
    close_disk_file({.fd = file_.fd, .is_block_device = is_block_device_});
}

Task<Result<void>> Disk::open() {
    ENSURE(file_.fd < 0);
    const auto call = [this] { return open_disk_file(options_); };
    const auto called = co_await offload_.run(reactor_, call);
    if (!called) co_return std::unexpected(called.error());
    if (!*called) co_return std::unexpected(called->error());
    const DiskFile& opened = **called;

    const auto attached = reactor_.attach(opened.fd);
    if (!attached) {
        close_disk_file(opened);
        co_return std::unexpected(attached.error());
    }
    file_ = *attached;
    geometry_ = opened.geometry;
    is_block_device_ = opened.is_block_device;
    if (opened.direct_errno != 0) {
        core::emit(events_, core::Level::kWarn, "devices.without_direct_io",
                   {{"device", std::string_view(options_.name)},
                    {"path", std::string_view(options_.path)},
                    {"reason", std::string_view(std::strerror(opened.direct_errno))}});
    }
    if (opened.thin_errno != 0) {
        core::emit(events_, core::Level::kWarn, "devices.thin",
                   {{"device", std::string_view(options_.name)},
                    {"path", std::string_view(options_.path)},
                    {"reason", std::string_view(std::strerror(opened.thin_errno))}});
    }
    co_return Result<void>{};
}

Task<void> Disk::close() {
    co_await operations_.close(reactor_);
    if (file_.fd < 0) co_return;
    const DiskFile closing{.fd = file_.fd, .is_block_device = is_block_device_};
    reactor_.detach(std::exchange(file_, {}));
    const auto call = [closing] { close_disk_file(closing); };
    const auto called = co_await offload_.run(reactor_, call);
    // The offload is too busy: it is better to block once than to leave the disk open.
    if (!called) close_disk_file(closing);
}

Result<void> Disk::check_open() const {
    if (file_.fd >= 0 && !operations_.closed()) return {};
    return std::unexpected(Error{.code = Errc::kClosed, .context = "disk"});
}

Result<void> Disk::check(const core::Buffer& buffer, std::uint64_t offset) const {
    if (const auto open = check_open(); !open) return open;
    return check_io(geometry_, buffer, offset);
}

Task<Result<void>> Disk::read(core::Buffer into, std::uint64_t offset, core::WaitOptions wait) {
    if (const auto fits = check(into, offset); !fits) co_return fits;
    const auto inside = operations_.enter();
    Transfer transfer(into, offset);
    while (!transfer.done()) {
        const auto read = co_await reactor_.read(file_, transfer.part(), transfer.offset(), wait);
        if (!read) co_return std::unexpected(disk_error(read.error(), "the disk failed a read"));
        if (!transfer.advance(*read)) {
            co_return std::unexpected(
                Error{.code = Errc::kIo, .context = "the disk is shorter than it was"});
        }
    }
    co_return Result<void>{};
}

Task<Result<void>> Disk::write(core::Buffer from, std::uint64_t offset) {
    if (const auto fits = check(from, offset); !fits) co_return fits;
    const auto inside = operations_.enter();
    Transfer transfer(from, offset);
    while (!transfer.done()) {
        const auto written = co_await reactor_.write(file_, transfer.part(), transfer.offset());
        if (!written) {
            co_return std::unexpected(disk_error(written.error(), "the disk failed a write"));
        }
        if (!transfer.advance(*written)) {
            co_return std::unexpected(Error{.code = Errc::kIo, .context = "short write"});
        }
    }
    co_return Result<void>{};
}

Task<Result<void>> Disk::gather(std::span<const core::Buffer> parts, std::uint64_t offset) {
    if (const auto open = check_open(); !open) co_return open;
    if (const auto fits = check_io(geometry_, parts, offset); !fits) co_return fits;
    const auto inside = operations_.enter();
    std::array<iovec, kGatherMax> all;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        all[i] = {.iov_base = parts[i].data, .iov_len = parts[i].size_bytes};
    }
    const std::span gathered(all.data(), parts.size());
    const auto written = co_await reactor_.gather(file_, gathered, offset);
    if (!written) {
        co_return std::unexpected(disk_error(written.error(), "the disk failed a write"));
    }
    // A gather rarely ends early; the rest is written part by part.
    std::size_t done = *written;
    for (const core::Buffer& part : parts) {
        if (done < part.size_bytes) {
            const auto rest = co_await write(part, offset);
            if (!rest) co_return rest;
        }
        done -= std::min(done, part.size_bytes);
        offset += part.size_bytes;
    }
    co_return Result<void>{};
}

Task<Result<void>> Disk::flush() {
    if (const auto open = check_open(); !open) co_return open;
    const auto inside = operations_.enter();
    const auto synced = co_await reactor_.sync_data(file_);
    if (!synced) co_return std::unexpected(synced.error());
    co_return Result<void>{};
}

Task<Result<void>> Disk::discard(std::uint64_t offset, std::uint64_t size_bytes) {
    if (const auto open = check_open(); !open) co_return open;
    if (const auto fits = check_range(geometry_, offset, size_bytes); !fits) co_return fits;
    // Discarded contents are undefined, so doing nothing is correct.
    if (!geometry_.discards) co_return Result<void>{};
    const auto inside = operations_.enter();
    const DiskFile file{.fd = file_.fd, .is_block_device = is_block_device_};
    const auto call = [file, offset, size_bytes] {
        return discard_range(file, offset, size_bytes);
    };
    const auto called = co_await offload_.run(reactor_, call);
    if (!called) co_return std::unexpected(called.error());
    if (!*called && called->error().code == Errc::kUnsupported) {
        geometry_.discards = false;
        co_return Result<void>{};
    }
    co_return *called;
}

Task<Result<Stretch>> Disk::find_hole(std::uint64_t offset, std::uint64_t size_bytes) {
    if (const auto open = check_open(); !open) co_return std::unexpected(open.error());
    const auto fits = check_range(geometry_, offset, size_bytes);
    if (!fits) co_return std::unexpected(fits.error());
    if (is_block_device_) co_return Stretch{};
    const auto inside = operations_.enter();
    const DiskFile file{.fd = file_.fd};
    const auto call = [file, offset, size_bytes] { return find_hole_in(file, offset, size_bytes); };
    const auto called = co_await offload_.run(reactor_, call);
    if (!called) co_return std::unexpected(called.error());
    co_return *called;
}

}  // namespace fopd::devices

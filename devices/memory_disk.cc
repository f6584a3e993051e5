#include "devices/memory_disk.h"

#include <algorithm>
#include <span>
#include <vector>

#include "core/copy_bytes.h"
#include "core/ensure.h"

namespace fopd::devices {

namespace {

Error failed(const char* context) {
    return {.code = Errc::kIo, .context = context};
}

void flip_one_bit(std::span<std::byte> bytes, core::Random& random) {
    if (bytes.empty()) return;
    const std::uint64_t bit = random.below(bytes.size() * 8);
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
}

}  // namespace

MemoryDisk::MemoryDisk(core::Reactor& reactor, DiskImage& image, MemoryDiskOptions options)
    : reactor_(reactor),
      image_(image),
      options_(std::move(options)),
      geometry_{.size_bytes = image.size_bytes(),
                .rotational = options_.rotational,
                .direct = true,
                .discards = true,
                .slow_holes = options_.slow_holes},
      random_(options_.seed) {}

MemoryDisk::Delay MemoryDisk::draw_delay() {
    const DiskFaults& faults = options_.faults;
    Duration whole{random_.between(faults.delay_min.count(), faults.delay_max.count())};
    if (random_.chance_ppm(faults.slow_ppm)) whole += faults.slow_delay;
    const Duration before{random_.between(0, whole.count())};
    return {.before = before, .after = whole - before};
}

Task<void> MemoryDisk::spend(Duration span) {
    const auto slept = co_await reactor_.sleep_for(span);
    ENSURE(slept.has_value());
    co_await NeedsPower(options_.power);
}

Task<Result<void>> MemoryDisk::read(core::Buffer into, std::uint64_t offset,
                                    core::WaitOptions wait) {
    ++counts_.reads;
    if (const auto fits = check_io(geometry_, into, offset); !fits) co_return fits;
    const Delay delay = draw_delay();
    const Instant done_at = after(reactor_.now(), delay.before + delay.after);
    const auto slept = co_await reactor_.sleep_until(std::min(done_at, wait.deadline), wait.cancel);
    co_await NeedsPower(options_.power);
    if (!slept) co_return std::unexpected(slept.error());
    if (done_at > wait.deadline) {
        co_return std::unexpected(Error{.code = Errc::kTimedOut, .context = "read"});
    }

    auto read = image_.read(offset, into.span());
    if (random_.chance_ppm(options_.faults.read_error_ppm)) read = std::unexpected(failed("read"));
    if (!read) {
        // Callers must not rely on the memory's contents after an error.
        std::fill_n(into.data, into.size_bytes, DiskImage::kPoison);
        co_return read;
    }
    if (random_.chance_ppm(options_.faults.read_flip_ppm)) flip_one_bit(into.span(), random_);
    co_return Result<void>{};
}

Task<Result<void>> MemoryDisk::write(core::Buffer from, std::uint64_t offset) {
    ++counts_.writes;
    if (const auto fits = check_io(geometry_, from, offset); !fits) co_return fits;
    co_return co_await put(from, offset);
}

// Torn like a single write.
Task<Result<void>> MemoryDisk::gather(std::span<const core::Buffer> parts, std::uint64_t offset) {
    ++counts_.writes;
    if (const auto fits = check_io(geometry_, parts, offset); !fits) co_return fits;
    std::vector<std::byte> bytes(bytes_of(parts));
    std::span<std::byte> rest(bytes);
    for (const core::Buffer& part : parts) {
        core::copy_bytes(part.span(), rest);
        rest = rest.subspan(part.size_bytes);
    }
    const core::Buffer all{.data = bytes.data(), .size_bytes = bytes.size()};
    co_return co_await put(all, offset);
}

Task<Result<void>> MemoryDisk::put(core::Buffer from, std::uint64_t offset) {
    const Delay delay = draw_delay();
    co_await spend(delay.before);
    co_await power_step(options_.power);
    const auto write = store(from, offset);
    co_await power_step(options_.power);
    co_await spend(delay.after);
    if (!write) co_return std::unexpected(write.error());
    image_.end_write(*write, offset, from.size_bytes);
    co_return Result<void>{};
}

// Applies a write to `offset` with its faults, and sets `offset` to where it really went.
Result<DiskImage::WriteId> MemoryDisk::store(core::Buffer from, std::uint64_t& offset) {
    const DiskFaults& faults = options_.faults;
    if (random_.chance_ppm(faults.write_error_ppm)) {
        tear(from, offset);
        return std::unexpected(failed("write"));
    }
    if (faults.no_space_for_holes && image_.find_hole(offset, from.size_bytes).size_bytes > 0) {
        return std::unexpected(Error{.code = Errc::kNoSpace, .context = "write"});
    }
    if (random_.chance_ppm(faults.lost_write_ppm)) return DiskImage::WriteId{0};
    if (random_.chance_ppm(faults.misdirected_write_ppm)) offset = elsewhere(from.size_bytes);
    if (!random_.chance_ppm(faults.write_flip_ppm)) return image_.begin_write(offset, from.span());
    std::vector<std::byte> wrong(from.span().begin(), from.span().end());
    flip_one_bit(wrong, random_);
    return image_.begin_write(offset, wrong);
}

void MemoryDisk::tear(core::Buffer from, std::uint64_t offset) {
    std::vector<std::byte> mixture(from.size_bytes);
    // An unreadable block is written completely.
    if (!image_.read(offset, mixture)) mixture.assign(from.span().begin(), from.span().end());
    for (std::size_t at = 0; at < from.size_bytes; at += DiskImage::kSectorBytes) {
        if (random_.below(2) == 0) continue;
        std::copy_n(from.data + at, DiskImage::kSectorBytes,
                    mixture.begin() + static_cast<std::ptrdiff_t>(at));
    }
    const auto write = image_.begin_write(offset, mixture);
    image_.end_write(write, offset, mixture.size());
}

std::uint64_t MemoryDisk::elsewhere(std::size_t size_bytes) {
    return random_.below((geometry_.size_bytes - size_bytes) / kBlockBytes + 1) * kBlockBytes;
}

Task<Result<void>> MemoryDisk::flush() {
    ++counts_.flushes;
    const DiskImage::FlushPoint point = image_.flush_point();
    const Delay delay = draw_delay();
    co_await spend(delay.before);
    co_await power_step(options_.power);
    const DiskFaults& faults = options_.faults;
    const bool fails = random_.chance_ppm(faults.flush_error_ppm);
    if (fails) {
        image_.fail_flush(point, random_);
    } else if (faults.lost_flush_ppm == 0 || !random_.chance_ppm(faults.lost_flush_ppm)) {
        image_.flush(point);
    }
    co_await power_step(options_.power);
    co_await spend(delay.after);
    if (fails) co_return std::unexpected(failed("flush"));
    co_return Result<void>{};
}

Task<Result<void>> MemoryDisk::discard(std::uint64_t offset, std::uint64_t size_bytes) {
    ++counts_.discards;
    if (const auto fits = check_range(geometry_, offset, size_bytes); !fits) co_return fits;
    const Delay delay = draw_delay();
    co_await spend(delay.before);
    co_await power_step(options_.power);
    const auto write = image_.begin_discard(offset, size_bytes);
    co_await power_step(options_.power);
    co_await spend(delay.after);
    image_.end_write(write, offset, size_bytes);
    co_return Result<void>{};
}

Task<Result<Stretch>> MemoryDisk::find_hole(std::uint64_t offset, std::uint64_t size_bytes) {
    const auto fits = check_range(geometry_, offset, size_bytes);
    if (!fits) co_return std::unexpected(fits.error());
    const Delay delay = draw_delay();
    co_await spend(delay.before);
    const Stretch hole = image_.find_hole(offset, size_bytes);
    co_await spend(delay.after);
    co_return hole;
}

}  // namespace fopd::devices

#include "devices/disk_image.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/ensure.h"

namespace fopd::devices {

namespace {

constexpr std::size_t kSectorsPerBlock = kBlockBytes / DiskImage::kSectorBytes;

void copy_block(const std::vector<std::byte>* from, std::byte* into) {
    if (from == nullptr) {
        std::fill_n(into, kBlockBytes, std::byte{0});
    } else if (from->empty()) {
        std::fill_n(into, kBlockBytes, DiskImage::kPoison);
    } else {
        std::memcpy(into, from->data(), kBlockBytes);
    }
}

void fill_hole(std::span<std::byte> into) {
    if (!into.empty()) std::memset(into.data(), 0, into.size());
}

}  // namespace

// Decides which sectors of each write survive a loss of power. Disks differ in how much they lose
// and in which units: a cache written back in order loses the newest data, and a cache that sorts
// may lose any data.
class DiskImage::Lottery {
public:
    explicit Lottery(core::Random& random)
        : keep_ppm_(kKeepPpm[random.below(kKeepPpm.size())]),
          grain_(static_cast<Grain>(random.below(3))),
          salt_(random.next()) {}

    bool keeps(WriteId write, std::uint64_t block, std::size_t sector) const {
        std::uint64_t ticket = core::mix(salt_, write);
        if (grain_ != Grain::kWrite) ticket = core::mix(ticket, block);
        if (grain_ == Grain::kSector) ticket = core::mix(ticket, sector);
        return core::Random(ticket).chance_ppm(keep_ppm_);
    }

private:
    enum class Grain : std::uint8_t { kWrite, kBlock, kSector };
    static constexpr std::array<std::uint32_t, 5> kKeepPpm{0, 60'000, 500'000, 940'000, 1'000'000};

    std::uint32_t keep_ppm_;
    Grain grain_;
    std::uint64_t salt_;
};

DiskImage::DiskImage(std::uint64_t size_bytes) : size_bytes_(size_bytes) {
    ENSURE(size_bytes % kBlockBytes == 0);
}

const DiskImage::Bytes* DiskImage::newest(std::uint64_t block) const {
    if (const auto cached = cached_.find(block); cached != cached_.end()) {
        return &cached->second.back().bytes;
    }
    const auto durable = durable_.find(block);
    return durable == durable_.end() ? nullptr : &durable->second;
}

Result<void> DiskImage::read(std::uint64_t offset, std::span<std::byte> into) const {
    ENSURE(offset % kBlockBytes == 0);
    ENSURE(into.size() % kBlockBytes == 0);
    const std::uint64_t first = offset / kBlockBytes;
    const std::uint64_t count = into.size() / kBlockBytes;
    const auto bad = unreadable_.lower_bound(first);
    if (bad != unreadable_.end() && *bad < first + count) {
        return std::unexpected(Error{.code = Errc::kIo, .context = "read unreadable block"});
    }
    std::uint64_t done = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
        const Bytes* const bytes = newest(first + i);
        if (bytes == nullptr) continue;
        // Most blocks are holes, which are filled together.
        fill_hole(into.subspan(done * kBlockBytes, (i - done) * kBlockBytes));
        copy_block(bytes, into.data() + i * kBlockBytes);
        done = i + 1;
    }
    fill_hole(into.subspan(done * kBlockBytes));
    return {};
}

Stretch DiskImage::find_hole(std::uint64_t offset, std::uint64_t size_bytes) const {
    const auto is_hole = [this](std::uint64_t block) {
        const Bytes* const bytes = newest(block);
        return bytes == nullptr || bytes->empty();
    };
    const std::uint64_t end = (offset + size_bytes) / kBlockBytes;
    std::uint64_t first = offset / kBlockBytes;
    while (first < end && !is_hole(first)) ++first;
    if (first == end) return {};
    std::uint64_t last = first;
    while (last < end && is_hole(last)) ++last;
    return {.offset = first * kBlockBytes, .size_bytes = (last - first) * kBlockBytes};
}

DiskImage::WriteId DiskImage::begin(std::uint64_t offset, std::uint64_t size_bytes,
                                    const std::byte* from) {
    ENSURE(offset % kBlockBytes == 0);
    ENSURE(size_bytes % kBlockBytes == 0);
    ENSURE(offset + size_bytes <= size_bytes_);
    const WriteId write = ++sequence_;
    for (std::uint64_t at = 0; at < size_bytes; at += kBlockBytes) {
        const std::uint64_t block = (offset + at) / kBlockBytes;
        Bytes bytes;
        if (from != nullptr) {
            bytes.resize(kBlockBytes);
            std::memcpy(bytes.data(), from + at, kBlockBytes);
        }
        cached_[block].push_back({.write = write, .ended = 0, .bytes = std::move(bytes)});
        unreadable_.erase(block);
    }
    return write;
}

DiskImage::WriteId DiskImage::begin_write(std::uint64_t offset, std::span<const std::byte> from) {
    return begin(offset, from.size(), from.data());
}

DiskImage::WriteId DiskImage::begin_discard(std::uint64_t offset, std::uint64_t size_bytes) {
    return begin(offset, size_bytes, nullptr);
}

void DiskImage::end_write(WriteId write, std::uint64_t offset, std::uint64_t size_bytes) {
    const FlushPoint ended = ++sequence_;
    const std::uint64_t first = offset / kBlockBytes;
    const auto end = cached_.lower_bound(first + size_bytes / kBlockBytes);
    for (auto each = cached_.lower_bound(first); each != end; ++each) {
        for (Version& version : each->second) {
            if (version.write == write) version.ended = ended;
        }
    }
}

void DiskImage::flush(FlushPoint point) {
    for (auto each = cached_.begin(); each != cached_.end();) {
        auto& [block, versions] = *each;
        const auto covered =
            std::find_if(versions.rbegin(), versions.rend(), [point](const Version& version) {
                return version.ended != 0 && version.ended < point;
            });
        if (covered != versions.rend()) {
            durable_[block] = std::move(covered->bytes);
            versions.erase(versions.begin(), covered.base());
        }
        each = versions.empty() ? cached_.erase(each) : std::next(each);
    }
}

void DiskImage::fail_flush(FlushPoint point, core::Random& random) {
    const Lottery lottery(random);
    for (auto each = cached_.begin(); each != cached_.end();) {
        auto& [block, versions] = *each;
        std::vector<Version> drawn;
        std::vector<Version> rest;
        for (Version& version : versions) {
            const bool covered = version.ended != 0 && version.ended < point;
            (covered ? drawn : rest).push_back(std::move(version));
        }
        draw(block, drawn, lottery);
        versions = std::move(rest);
        each = versions.empty() ? cached_.erase(each) : std::next(each);
    }
}

void DiskImage::end_writes() {
    const FlushPoint ended = ++sequence_;
    for (auto& [block, versions] : cached_) {
        for (Version& version : versions) {
            if (version.ended == 0) version.ended = ended;
        }
    }
}

void DiskImage::crash(core::Random& random) {
    const Lottery lottery(random);
    for (const auto& [block, versions] : cached_) draw(block, versions, lottery);
    cached_.clear();
}

void DiskImage::draw(std::uint64_t block, std::span<const Version> versions,
                     const Lottery& lottery) {
    for (const Version& version : versions) {
        for (std::size_t sector = 0; sector < kSectorsPerBlock; ++sector) {
            if (!lottery.keeps(version.write, block, sector)) continue;
            Bytes& left = spell_out(block);
            const auto at = static_cast<std::ptrdiff_t>(sector * kSectorBytes);
            if (version.bytes.empty()) {
                std::fill_n(left.begin() + at, kSectorBytes, kPoison);
            } else {
                std::copy_n(version.bytes.begin() + at, kSectorBytes, left.begin() + at);
            }
        }
    }
}

// Stores the block explicitly, because its sectors may differ from now on.
DiskImage::Bytes& DiskImage::spell_out(std::uint64_t block) {
    const auto durable = durable_.find(block);
    if (durable != durable_.end() && !durable->second.empty()) return durable->second;
    Bytes bytes(kBlockBytes);
    copy_block(durable == durable_.end() ? nullptr : &durable->second, bytes.data());
    return durable_[block] = std::move(bytes);
}

void DiskImage::settle() {
    for (auto& [block, versions] : cached_) durable_[block] = std::move(versions.back().bytes);
    cached_.clear();
}

std::uint64_t DiskImage::unflushed_bytes() const {
    return cached_.size() * kBlockBytes;
}

void DiskImage::flip_bit(std::uint64_t offset, unsigned bit) {
    ENSURE(offset < size_bytes_);
    ENSURE(bit < 8);
    const std::uint64_t block = offset / kBlockBytes;
    Bytes spelt_out(kBlockBytes);
    copy_block(newest(block), spelt_out.data());
    spelt_out[offset % kBlockBytes] ^= std::byte{1} << bit;
    const auto cached = cached_.find(block);
    (cached == cached_.end() ? durable_[block] : cached->second.back().bytes) =
        std::move(spelt_out);
}

void DiskImage::poison_if(const std::function<bool(std::uint64_t block)>& is_free) {
    for (auto each = cached_.begin(); each != cached_.end();) {
        const auto& [block, versions] = *each;
        if (!is_free(block)) {
            ++each;
            continue;
        }
        durable_[block].clear();
        each = cached_.erase(each);
    }
    for (auto& [block, bytes] : durable_) {
        if (!bytes.empty() && is_free(block)) bytes = {};
    }
}

void DiskImage::resize(std::uint64_t size_bytes) {
    ENSURE(size_bytes % kBlockBytes == 0);
    const std::uint64_t end = size_bytes / kBlockBytes;
    durable_.erase(durable_.lower_bound(end), durable_.end());
    cached_.erase(cached_.lower_bound(end), cached_.end());
    unreadable_.erase(unreadable_.lower_bound(end), unreadable_.end());
    size_bytes_ = size_bytes;
}

}  // namespace fopd::devices

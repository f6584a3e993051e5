#include "reqh/home_volume.h"

#include "core/ensure.h"

namespace fopd::reqh {

namespace {

constexpr unsigned kSlotShift = 48;
constexpr unsigned kDiskShift = 40;
constexpr std::uint64_t kNumberMax = (1ULL << kDiskShift) - 1;

}  // namespace

HomeVolume::HomeVolume(const HomeDisk& disk, core::Reactor& reactor)
    : disk_(disk), locks_(reactor), use_(disk.volume->owners_at_open()) {}

store::Fid HomeVolume::make_fid() {
    const std::uint64_t epoch = volume().newest().epoch;
    ENSURE(epoch < 1ULL << kSlotShift);
    ENSURE(fids_made_ < kNumberMax);
    std::uint64_t tag = 0;
    for (std::size_t i = 0; i < 3; ++i) {
        tag = tag << 8 | std::to_integer<std::uint64_t>(disk_.disk_id[i]);
    }
    return {.high = std::uint64_t{slot()} << kSlotShift | epoch,
            .low = tag << kDiskShift | ++fids_made_};
}

void HomeVolume::keep_upload_times(const std::vector<store::Fid>& fids) {
    std::erase_if(upload_times_, [&fids](const auto& each) {
        return !std::ranges::binary_search(fids, each.first);
    });
}

}  // namespace fopd::reqh

#include "objects/home_volume.h"

#include "core/ensure.h"

namespace fopd::objects {

namespace {

constexpr unsigned kSlotShift = 48;
constexpr unsigned kEpochBits = 32;  // Above are those of an id that was moved; see store::Fid.
constexpr unsigned kDiskShift = 40;
constexpr std::uint64_t kNumberMax = (1ULL << kDiskShift) - 1;

ChangedRanges::Life life_of(const store::Volume& volume) {
    const std::uint64_t epoch = volume.newest().epoch;
    std::uint64_t first = epoch;
    while (first > 0 && volume.last_seq_of(first - 1)) --first;
    return {.incarnation = epoch, .first_known = first};
}

}  // namespace

HomeVolume::HomeVolume(const HomeDisk& disk, core::Reactor& reactor)
    : disk_(disk),
      reactor_(reactor),
      service_before_(disk.volume->newest_reply_at_open()),
      opened_at_(reactor.now()),
      free_(reactor),
      locks_(reactor),
      changed_ranges_(life_of(*disk.volume)),
      use_(disk.volume->owners_at_open()),
      reply_shares_(disk.volume->replies_at_open(), disk.volume->space_use().total_blocks) {
    endings_.emplace_back();
}

HomeVolume::~HomeVolume() = default;

std::string HomeVolume::name_of(store::Fid fid) const {
    const auto object = volume().map().find(fid);
    if (!object || !*object) return {};
    return std::string((*object)->name);
}

std::optional<PoolId> HomeVolume::pool_of(store::Fid fid) const {
    const auto object = volume().map().find(fid);
    if (object && *object) return (*object)->pool;
    const auto upload = volume().map().find_upload(fid);
    if (upload && *upload) return (*upload)->object.pool;
    return std::nullopt;
}

void HomeVolume::let_go() {
    ENSURE(hold_count_ > 0);
    if (--hold_count_ == 0) free_.wake_all();
}

Task<Result<void>> HomeVolume::wait_until_free(Instant deadline) {
    const core::WaitOptions wait{.deadline = deadline};
    while (hold_count_ > 0) {
        const auto woken = co_await free_.wait(wait);
        if (!woken) co_return woken;
    }
    co_return Result<void>{};
}

void HomeVolume::begin_departure() {
    leaving_ = true;
    ending().cancel();
}

void HomeVolume::cancel_departure() {
    leaving_ = false;
    shut_ = false;
    if (hold_count_ == 0) endings_.clear();
    endings_.emplace_back();
}

store::Fid HomeVolume::make_fid() {
    ENSURE(fids_made_ < kNumberMax);
    ++fids_made_;
    return newest_fid();
}

store::Fid HomeVolume::newest_fid() const {
    const std::uint64_t epoch = volume().newest().epoch;
    ENSURE(epoch < 1ULL << kEpochBits);
    return {.high = std::uint64_t{slot()} << kSlotShift | epoch,
            .low = disk_tag() << kDiskShift | fids_made_};
}

bool HomeVolume::has_made(store::Fid fid) const {
    return fid.slot() == slot() && !fid.is_moved() && fid.low >> kDiskShift == disk_tag();
}

std::uint64_t HomeVolume::disk_tag() const {
    std::uint64_t tag = 0;
    for (std::size_t i = 0; i < 3; ++i) {
        tag = tag << 8 | std::to_integer<std::uint64_t>(disk_.disk_id[i]);
    }
    return tag;
}

}  // namespace fopd::objects

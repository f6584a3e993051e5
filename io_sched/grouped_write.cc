#include <algorithm>
#include <utility>

#include "io_sched/drive_algorithms.h"
#include "io_sched/drive_scheduler.h"
#include "io_sched/settings.h"

namespace fopd::io_sched {

namespace {

class GroupedWrite final : public DriveScheduler {
public:
    GroupedWrite(const TapeSettings& settings, const IoMedia& media)
        : DriveScheduler(media), max_wait_(settings.grouped_write_max_wait) {}

private:
    bool by_collection() const override { return true; }
    Answer choose(Instant now) override;
    PartDrive choose_for_write(const IoRequest& request, std::size_t part, Instant now,
                               const PartDrives& used) const override;
    std::optional<std::uint64_t> eviction_rank(const IoDevice& drive, Instant now) const override;

    // The queue whose writes go on with the loaded cartridge: writes for this cartridge only, or of
    // its collection while it has space.
    Queue* continues(MediumId medium) const;
    bool is_wanted_by_other(const IoMedium& medium, const IoRequest& request) const;
    bool must_yield(const IoDevice& drive, Instant now) const;

    const Duration max_wait_;
};

DriveScheduler::Answer GroupedWrite::choose(Instant now) {
    for (IoDevice* const drive : drives()) {
        if (!drive->has_room(IoType::kWrite) || !drive->medium() || must_yield(*drive, now)) {
            continue;
        }
        Queue* const queue = continues(*drive->medium());
        if (queue == nullptr) continue;
        IoRequest* const request = oldest_of(*queue);
        PartDrives chosen = choose_drives(*request, now);
        if (!chosen.empty()) return {.choice = {request, std::move(chosen)}};
    }
    Instant again = kNever;
    for (const auto& [age, queue] : queues()) {
        IoRequest* const request = oldest_of(*queue);
        PartDrives chosen = choose_drives(*request, now);
        if (!chosen.empty()) return {.choice = {request, std::move(chosen)}};
        const Instant overdue = after(queue->oldest_at, max_wait_);
        if (overdue > now) again = std::min(again, overdue);
    }
    return {.again = again};
}

DriveScheduler::Queue* GroupedWrite::continues(MediumId medium) const {
    if (Queue* const queue = queue_of(medium)) return queue;
    const IoMedium* const known = media().find(medium);
    if (known == nullptr || known->collection == 0) return nullptr;
    Queue* const queue = find_queue(
        {.medium = kAnyMedium, .pool = known->pool, .copies = 1, .collection = known->collection});
    if (queue == nullptr) return nullptr;
    const IoRequest& next = *oldest_of(*queue);
    return has_space(*known, next, next.parts[next.queue_state.part]) ? queue : nullptr;
}

bool GroupedWrite::is_wanted_by_other(const IoMedium& medium, const IoRequest& request) const {
    return medium.collection != request.collection && continues(medium.id) != nullptr;
}

// Whether the cartridge has served a batch while another queue has waited for too long.
bool GroupedWrite::must_yield(const IoDevice& drive, Instant now) const {
    if (!had_batch(drive) || queues().empty()) return false;
    const Queue& oldest = *queues().begin()->second;
    return now - oldest.oldest_at >= max_wait_ && &oldest != continues(*drive.medium());
}

std::optional<std::uint64_t> GroupedWrite::eviction_rank(const IoDevice& drive, Instant now) const {
    if (!drive.medium()) return 0;
    if (continues(*drive.medium()) == nullptr) return 1;
    if (must_yield(drive, now)) return 2;
    return std::nullopt;
}

DriveScheduler::PartDrive GroupedWrite::choose_for_write(const IoRequest& request, std::size_t part,
                                                         Instant now,
                                                         const PartDrives& used) const {
    const IoPart& wanted = request.parts[part];
    const auto free_drive = [&](const IoMedium& medium) -> IoDevice* {
        IoDevice* const drive = media().drive_with(medium.id);
        const bool is_free = drive != nullptr && has_device(*drive) &&
                             drive->has_room(request.type) && !uses(used, *drive) &&
                             IoMedia::fits(*drive, medium, request.type);
        return is_free ? drive : nullptr;
    };
    // `own`: the cartridge of the collection. `other`: a cartridge that can be mounted. `loaded`: a
    // cartridge in a drive. `shared`: a cartridge in a drive for which another collection waits.
    const IoMedium* own = nullptr;
    const IoMedium* other = nullptr;
    const IoMedium* loaded = nullptr;
    const IoMedium* shared = nullptr;
    for (const auto& [id, medium] : media().all()) {
        if (!has_space(medium, request, wanted) || uses(used, id)) continue;
        const bool is_own = request.collection != 0 && medium.collection == request.collection;
        const bool is_free = free_drive(medium) != nullptr;
        if (is_own && (is_free || own == nullptr)) own = &medium;
        const bool is_wanted = is_wanted_by_other(medium, request);
        if (is_free && !is_wanted && loaded == nullptr) loaded = &medium;
        if (is_free && is_wanted && shared == nullptr) shared = &medium;
        if (is_kept(id) || is_wanted) continue;
        if (other == nullptr || medium.free_bytes < other->free_bytes) other = &medium;
    }
    const bool one_copy = request.parts.size() == 1;
    if (own != nullptr) {
        if (IoDevice* const drive = free_drive(*own)) return {drive, part, own->id};
        IoDevice* const drive =
            is_kept(own->id) ? nullptr : drive_for(request, wanted, *own, now, used);
        if (drive != nullptr) return {drive, part, own->id};
        if (one_copy) return {};  // The collection waits for its cartridge.
    }
    if (loaded != nullptr) return {free_drive(*loaded), part, loaded->id};
    if (other != nullptr) {
        IoDevice* const drive = drive_for(request, wanted, *other, now, used);
        if (drive != nullptr) return {drive, part, other->id};
    }
    // No other cartridge has room, so the collection shares one.
    if (other == nullptr && shared != nullptr) return {free_drive(*shared), part, shared->id};
    return {};
}

}  // namespace

std::unique_ptr<IoScheduler> make_grouped_write(const TapeSettings& settings,
                                                const IoMedia& media) {
    return std::make_unique<GroupedWrite>(settings, media);
}

}  // namespace fopd::io_sched

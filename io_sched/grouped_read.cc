#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

#include "devices/tape/drive_model.h"
#include "io_sched/drive_algorithms.h"
#include "io_sched/drive_scheduler.h"
#include "io_sched/read_order.h"
#include "io_sched/settings.h"

namespace fopd::io_sched {

namespace {

class GroupedRead final : public DriveScheduler {
public:
    GroupedRead(const TapeSettings& settings, const IoMedia& media)
        : DriveScheduler(media),
          order_(settings.grouped_read_order),
          mount_bytes_(settings.grouped_read_mount_bytes),
          mount_files_(settings.grouped_read_mount_files),
          mount_age_(settings.grouped_read_mount_age),
          max_wait_(settings.grouped_read_max_wait),
          stay_mounted_(settings.grouped_read_stay_mounted) {}

private:
    Answer choose(Instant now) override;
    std::optional<std::uint64_t> eviction_rank(const IoDevice& drive, Instant now) const override;

    bool is_overdue(const Queue& queue, Instant now) const {
        return now - queue.oldest_at >= max_wait_;
    }
    bool is_overdue(const IoRequest& request, Instant now) const {
        return now - request.arrived_at() >= max_wait_;
    }
    bool is_ripe(const Queue& queue, Instant now) const {
        return queue.bytes >= mount_bytes_ || queue.count >= mount_files_ ||
               now - queue.oldest_at >= mount_age_;
    }
    // In a drive where it can go on.
    bool is_loaded(Queue& queue) const {
        const IoDevice* const drive = media().drive_with(queue.key.medium);
        return drive != nullptr && drive->state() != DeviceState::kDown && !avoids(queue, *drive);
    }
    // Whether the drive has to be given to a cartridge that has waited for too long.
    bool must_yield(const IoDevice& drive, Instant now) const;
    bool can_have(const IoDevice& drive, Queue& queue) const;
    Choice mount(Queue& queue, Instant now);
    Queue* fullest(Instant now, const std::vector<Queue*>& without) const;
    bool is_right_plan(const Queue& queue, Instant now) const;
    IoRequest* planned(Queue& queue, const IoDevice& drive, Instant now);
    void unplan(Queue& queue);
    void plan(Queue& queue, const IoDevice& drive, Instant now);
    std::vector<IoRequest*> next_plan(Queue& queue, Instant now) const;
    Instant next_change(Instant now) const;

    const ReadOrder order_;
    const std::uint64_t mount_bytes_;
    const std::uint64_t mount_files_;
    const Duration mount_age_;
    const Duration max_wait_;
    const Duration stay_mounted_;
    bool for_overdue_ = false;  // The reads that drives are chosen for have waited for too long.
};

DriveScheduler::Answer GroupedRead::choose(Instant now) {
    for (IoDevice* const drive : drives()) {
        if (!drive->has_room(IoType::kRead) || !drive->medium()) continue;
        Queue* const queue = queue_for(*drive);
        if (queue == nullptr || must_yield(*drive, now)) continue;
        IoRequest* const request = planned(*queue, *drive, now);
        PartDrives chosen = choose_drives(*request, now);
        if (!chosen.empty()) return {.choice = {request, std::move(chosen)}};
    }
    for_overdue_ = true;
    for (const auto& [age, queue] : queues()) {
        if (!is_overdue(*queue, now)) break;
        if (is_loaded(*queue)) continue;
        Choice choice = mount(*queue, now);
        if (choice.request != nullptr) return {.choice = std::move(choice)};
    }
    for_overdue_ = false;
    std::vector<Queue*> tried;
    while (Queue* const queue = fullest(now, tried)) {
        Choice choice = mount(*queue, now);
        if (choice.request != nullptr) return {.choice = std::move(choice)};
        // Another may be of a kind that a free drive takes.
        tried.push_back(queue);
        if (tried.size() == 8) break;
    }
    return {.again = next_change(now)};
}

bool GroupedRead::must_yield(const IoDevice& drive, Instant now) const {
    if (!had_batch(drive)) return false;
    // To come back for the last few would cost more than to read them now.
    const Queue* const own = queue_for(drive);
    if (own != nullptr && own->planned_count > 0 && own->planned_count <= kBatch) return false;
    for (const auto& [age, queue] : queues()) {
        if (!is_overdue(*queue, now)) return false;
        if (!is_loaded(*queue) && can_have(drive, *queue)) return true;
    }
    return false;
}

// Whether the queue, which waits for a drive, can get this one soon, or its cartridge from there.
bool GroupedRead::can_have(const IoDevice& drive, Queue& queue) const {
    const IoMedium* const medium = media().find(queue.key.medium);
    if (medium == nullptr) return false;
    const auto takes = [&](const IoDevice& each) {
        return IoMedia::fits(each, *medium, IoType::kRead) && !avoids(queue, each);
    };
    const IoDevice* const holder = media().drive_with(medium->id);
    if (holder == &drive) {
        return std::ranges::any_of(drives(), [&](const IoDevice* other) {
            return other != &drive && other->has_room(IoType::kRead) && takes(*other);
        });
    }
    // A busy drive of another scheduler may keep the cartridge for any time.
    const bool will_get = holder == nullptr || holder->is_idle() || has_device(*holder);
    return will_get && takes(drive);
}

std::optional<std::uint64_t> GroupedRead::eviction_rank(const IoDevice& drive, Instant now) const {
    if (!drive.medium()) return 0;
    if (queue_for(drive) != nullptr) {
        if (must_yield(drive, now)) return 2;
        return std::nullopt;
    }
    const bool stays = now < after(drive.idle_since(), stay_mounted_);
    if (stays && !for_overdue_) return std::nullopt;
    return 1;
}

// The one with the first level of requests; of several, the one for which most bytes wait.
DriveScheduler::Queue* GroupedRead::fullest(Instant now, const std::vector<Queue*>& without) const {
    Queue* best = nullptr;
    std::pair<int, std::uint64_t> most;
    for (const auto& [age, queue] : queues()) {
        const std::pair value(-int{queue->levels.begin()->first}, queue->bytes);
        if (best != nullptr && value <= most) continue;
        if (!is_ripe(*queue, now) || is_loaded(*queue)) continue;
        if (std::ranges::find(without, queue) != without.end()) continue;
        best = queue;
        most = value;
    }
    return best;
}

DriveScheduler::Choice GroupedRead::mount(Queue& queue, Instant now) {
    const PartDrives chosen = choose_drives(*any_of(queue), now);
    if (chosen.empty()) return {};
    unplan(queue);
    IoRequest* const request = planned(queue, *chosen.front().drive, now);
    return {request, choose_drives(*request, now)};
}

// Whether no more urgent request has come, and none of the queue has waited for too long unless
// that was so at the time of the plan.
bool GroupedRead::is_right_plan(const Queue& queue, Instant now) const {
    if (queue.levels.begin()->first < queue.planned_level) return false;
    return queue.is_late_plan || !is_overdue(queue, now);
}

IoRequest* GroupedRead::planned(Queue& queue, const IoDevice& drive, Instant now) {
    if (queue.planned_count > 0 && !is_right_plan(queue, now)) unplan(queue);
    if (queue.planned_count == 0) plan(queue, drive, now);
    return &static_cast<IoRequest&>(queue.planned.front());
}

// By age: the requests of the first level, and those of later levels that have waited for too long:
// of these at most kBatch, or as many as the first level has if these are more. If any has waited
// for too long, at most as many that have not are added, or kBatch. REQUIRES: none is planned.
std::vector<IoRequest*> GroupedRead::next_plan(Queue& queue, Instant now) const {
    std::vector<IoRequest*> requests;
    std::vector<IoRequest*> overdue;
    for (auto level = queue.levels.begin(); level != queue.levels.end(); ++level) {
        const bool is_first = level == queue.levels.begin();
        level->second.waiting.for_each([&](IoRequest& request) {
            if (is_first) {
                requests.push_back(&request);
            } else if (is_overdue(request, now)) {
                overdue.push_back(&request);
            }
        });
    }
    std::ranges::sort(overdue, {}, &IoRequest::arrival);
    const std::size_t most = std::max<std::size_t>(requests.size(), kBatch);
    if (overdue.size() > most) overdue.resize(most);
    requests.insert(requests.end(), overdue.begin(), overdue.end());
    std::ranges::sort(requests, {}, &IoRequest::arrival);
    const auto in_time = std::ranges::find_if_not(
        requests, [&](const IoRequest* each) { return is_overdue(*each, now); });
    if (const auto late = static_cast<std::size_t>(in_time - requests.begin()); late > 0) {
        const std::size_t all = late + std::max<std::size_t>(late, kBatch);
        if (requests.size() > all) requests.resize(all);
    }
    return requests;
}

void GroupedRead::unplan(Queue& queue) {
    if (queue.planned_count == 0) return;
    std::vector<IoRequest*> all;
    collect(queue, all);
    std::ranges::sort(all, {}, &IoRequest::arrival);
    for (IoRequest* const request : all) {
        AgeList::remove(*request);
        request->queue_state.heap_number = 0;
    }
    for (IoRequest* const request : all) {
        queue.levels.at(level_of(*request)).waiting.push(*request);
    }
    queue.planned_count = 0;
    reindex(queue);
}

void GroupedRead::plan(Queue& queue, const IoDevice& drive, Instant now) {
    const IoMedium& medium = *media().find(queue.key.medium);
    devices::DriveModel model = *devices::find_drive_model(medium.technology);
    if (medium.capacity_bytes > 0) model = devices::with_capacity(model, medium.capacity_bytes);
    const std::vector<IoRequest*> requests = next_plan(queue, now);
    const bool is_loaded = drive.medium() == queue.key.medium;
    devices::PhysicalPosition at = is_loaded ? devices::position_of_byte(model, drive.position())
                                             : devices::beginning_of(model);
    const auto append = [&](std::span<IoRequest* const> some) {
        std::vector<TapeStretch> files;
        for (const IoRequest* const request : some) {
            const IoPart& part = request->parts[request->queue_state.part];
            files.push_back(stretch_from(model, devices::position_of_byte(model, part.offset),
                                         part.size_bytes));
        }
        for (const std::uint32_t index : plan_reads(model, at, files, order_)) {
            IoRequest& request = *some[index];
            AgeList::remove(request);
            request.queue_state.heap_number = 1;
            queue.planned.push_back(request);
            at = files[index].end;
        }
    };
    queue.planned_count = requests.size();
    queue.planned_level = queue.levels.begin()->first;
    queue.is_late_plan = is_overdue(*requests.front(), now);
    // After a batch the cartridge may leave the drive if more than another batch is left. So the
    // oldest go first.
    std::span<IoRequest* const> rest(requests);
    if (queue.is_late_plan && rest.size() > 2 * kBatch) {
        append(rest.first(kBatch));
        rest = rest.subspan(kBatch);
    }
    append(rest);
}

Instant GroupedRead::next_change(Instant now) const {
    Instant next = kNever;
    const auto consider = [&](Instant time) {
        if (time > now) next = std::min(next, time);
    };
    for (const auto& [age, queue] : queues()) {
        consider(after(queue->oldest_at, max_wait_));
        consider(after(queue->oldest_at, mount_age_));
        // The queues are in the order of age, so all later times are in the future.
        if (after(queue->oldest_at, std::min(max_wait_, mount_age_)) > now) break;
    }
    for (const IoDevice* const drive : drives()) {
        if (drive->is_idle()) consider(after(drive->idle_since(), stay_mounted_));
    }
    return next;
}

}  // namespace

std::unique_ptr<IoScheduler> make_grouped_read(const TapeSettings& settings, const IoMedia& media) {
    return std::make_unique<GroupedRead>(settings, media);
}

}  // namespace fopd::io_sched

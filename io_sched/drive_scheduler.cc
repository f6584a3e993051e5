#include "io_sched/drive_scheduler.h"

#include <algorithm>
#include <iterator>

#include "core/ensure.h"

namespace fopd::io_sched {

namespace {

bool is_any(const IoRequest& request, const IoPart& part) {
    return request.type == IoType::kWrite && part.medium == kAnyMedium;
}

}  // namespace

// -- requests --

void DriveScheduler::push_request(IoRequest& request) {
    ENSURE(request.missing_count() > 0);
    ++changes_;
    enter(request);
}

IoRequest* DriveScheduler::peek_request(Instant now) {
    if (peeked_.request != nullptr) return peeked_.request;
    find_lost();
    if (!lost_.empty()) {
        peeked_ = {.request = lost_.begin()->second};
        return peeked_.request;
    }
    const auto has_room = [](const IoDevice* drive) { return drive->has_room(IoType::kRead); };
    if (std::ranges::none_of(drives_, has_room)) return nullptr;
    const std::uint64_t state = fingerprint();
    if (state == nothing_for_ && now < nothing_until_) return nullptr;
    Answer answer = choose(now);
    peeked_ = std::move(answer.choice);
    if (peeked_.request == nullptr) {
        nothing_for_ = state;
        nothing_until_ = answer.again;
    }
    return peeked_.request;
}

Result<std::optional<DeviceMedium>> DriveScheduler::get_device_medium_pair(IoRequest& request,
                                                                           Instant now) {
    ENSURE(&request == peeked_.request);
    ENSURE(request.missing_count() > 0);
    ++changes_;
    if (lost_.contains({request.arrival(), &request})) {
        const std::size_t part = best_part(request);
        if (part == request.parts.size()) return std::unexpected(why_impossible(request));
        leave(request);
        enter(request);
    }
    const auto is_free = [](const PartDrive& each) {
        const bool is_there =
            each.from == nullptr || (each.from->is_idle() && each.from->medium() == each.medium);
        return is_there && each.drive->has_room(IoType::kRead);
    };
    const bool is_stale = peeked_.drives.empty() || !std::ranges::all_of(peeked_.drives, is_free);
    if (is_stale) {
        // The request is in no queue if it reads several media one after the other, or if a drive
        // of its choice was taken away.
        if (request.queue_state.queue == nullptr) enter(request);
        peeked_.drives = choose_drives(request, now);
    }
    if (peeked_.drives.empty()) return std::nullopt;

    const PartDrive next = peeked_.drives.front();
    peeked_.drives.erase(peeked_.drives.begin());
    if (request.queue_state.queue != nullptr) {
        note_given(*next.drive, next.medium);
        note_taken(*static_cast<Queue*>(request.queue_state.queue), request);
    }
    if (peeked_.drives.empty() || request.missing_count() == 1) leave(request);
    request.parts[next.part].medium = next.medium;
    request.take(next.part);
    return DeviceMedium{.device = next.drive, .part = next.part, .from = next.from};
}

void DriveScheduler::requeue(IoRequest& request) {
    ENSURE(&request == peeked_.request);
    peeked_ = {};
    ++changes_;
    const bool is_here =
        request.queue_state.queue != nullptr || lost_.contains({request.arrival(), &request});
    if (!is_here) enter(request);
}

void DriveScheduler::remove_request(IoRequest& request) {
    if (peeked_.request == &request) peeked_ = {};
    ++changes_;
    leave(request);
}

bool DriveScheduler::retry(IoRequest& request, IoPart& part, const IoDevice& device) {
    if (request.type == IoType::kFormat) return false;
    const IoMedium* const medium = media_.find(part.medium);
    const bool is_first = part.failed_on == 0;
    part.failed_on = device.number();
    if (is_first && medium != nullptr && medium->allows(request.type)) {
        const auto is_other = [&](const IoDevice* other) {
            return other != &device && other->state() == DeviceState::kReady &&
                   IoMedia::fits(*other, *medium, request.type);
        };
        if (std::ranges::any_of(media_.drives(), is_other)) {
            part.state = IoPart::State::kWaiting;
            return true;
        }
    }
    return request.type == IoType::kRead && request.has_spare();
}

Instant DriveScheduler::next_time(Instant now) const {
    return peeked_.request == nullptr && nothing_until_ > now ? nothing_until_ : kNever;
}

// -- devices --

void DriveScheduler::add_device(IoDevice& device) {
    ENSURE(!device.is_fixed());
    if (has_device(device)) return;
    drives_.push_back(&device);
    std::ranges::sort(drives_, {}, &IoDevice::number);
    ++changes_;
}

void DriveScheduler::remove_device(IoDevice& device) {
    ++changes_;
    std::erase(drives_, &device);
    const auto is_of_it = [&](const PartDrive& each) {
        return each.drive == &device || each.from == &device;
    };
    if (std::ranges::any_of(peeked_.drives, is_of_it)) peeked_.drives.clear();
}

bool DriveScheduler::has_device(const IoDevice& device) const {
    return std::ranges::find(drives_, &device) != drives_.end();
}

IoDevice* DriveScheduler::reclaim_device(const Reclaim& what) {
    if (what.kind == Reclaim::Kind::kExchange) {
        IoDevice& wanted = *what.wanted;
        const bool can = has_device(wanted) && wanted.is_idle() && what.offered->is_idle() &&
                         queue_for(wanted) == nullptr;
        if (!can) return nullptr;
        remove_device(wanted);
        add_device(*what.offered);
        return &wanted;
    }
    IoDevice* best = nullptr;
    std::size_t least = 0;
    for (IoDevice* const drive : drives_) {
        if (!drive->is_idle() || drive->technology() != what.technology) continue;
        const Queue* const queue = queue_for(*drive);
        const std::size_t needed = !drive->medium() ? 0 : 1 + (queue == nullptr ? 0 : queue->count);
        if (best != nullptr && needed >= least) continue;
        best = drive;
        least = needed;
    }
    if (best != nullptr) remove_device(*best);
    return best;
}

IoDevice* DriveScheduler::wanted_device() const {
    for (IoDevice* const drive : media_.drives()) {
        if (has_device(*drive) || !drive->is_idle() || drive->state() != DeviceState::kReady) {
            continue;
        }
        if (queue_for(*drive) != nullptr) return drive;
    }
    return nullptr;
}

// -- queues --

DriveScheduler::Queue* DriveScheduler::find_queue(const QueueKey& key) const {
    const auto at = queues_.find(key);
    return at == queues_.end() ? nullptr : at->second.get();
}

// The queue for the drive. Requests that failed on another drive go first.
DriveScheduler::Queue* DriveScheduler::queue_for(const IoDevice& drive) const {
    if (!drive.medium()) return nullptr;
    const MediumId medium = *drive.medium();
    for (auto at = queues_.upper_bound({.medium = medium});
         at != queues_.end() && at->first.medium == medium; ++at) {
        if (!avoids(*at->second, drive)) return at->second.get();
    }
    return queue_of(medium);
}

bool DriveScheduler::avoids(Queue& queue, const IoDevice& drive) const {
    if (queue.key.failed_on != drive.number()) return false;
    const IoMedium* const medium = media_.find(queue.key.medium);
    const IoRequest& any = *any_of(queue);
    return medium != nullptr && avoids(any.parts[any.queue_state.part], *medium, any.type, drive);
}

bool DriveScheduler::avoids(const IoPart& part, const IoMedium& medium, IoType type,
                            const IoDevice& drive) const {
    if (part.failed_on != drive.number()) return false;
    return std::ranges::any_of(drives_, [&](const IoDevice* other) {
        return other != &drive && other->state() == DeviceState::kReady &&
               IoMedia::fits(*other, medium, type);
    });
}

DriveScheduler::Level DriveScheduler::level_of(const IoRequest& request) {
    const auto priority = static_cast<Level>(request.priority);
    return static_cast<Level>(priority * 256 + 255 - request.urgency);
}

IoRequest* DriveScheduler::oldest_of(Queue& queue) {
    IoRequest* first = nullptr;
    IoRequest* oldest = nullptr;
    for (auto& [level, those] : queue.levels) {
        IoRequest* const request = those.waiting.oldest();
        if (request == nullptr) continue;
        if (first == nullptr) first = request;
        if (oldest == nullptr || request->arrival() < oldest->arrival()) oldest = request;
    }
    return queue.first_run >= kForegroundRunMax ? oldest : first;
}

// The request is still in the queue.
void DriveScheduler::note_taken(Queue& queue, const IoRequest& request) {
    const Level level = level_of(request);
    const bool passed_by =
        queue.levels.begin()->first == level && queue.levels.rbegin()->first != level;
    queue.first_run = passed_by ? queue.first_run + 1 : 0;
}

IoRequest* DriveScheduler::any_of(Queue& queue) {
    IoRequest* const oldest = oldest_of(queue);
    return oldest != nullptr ? oldest : &static_cast<IoRequest&>(queue.planned.front());
}

void DriveScheduler::collect(Queue& queue, std::vector<IoRequest*>& requests) {
    queue.planned.for_each(
        [&](OrderPlace& place) { requests.push_back(&static_cast<IoRequest&>(place)); });
    for (auto& [level, those] : queue.levels) {
        those.waiting.for_each([&](IoRequest& request) { requests.push_back(&request); });
    }
}

// If all requests of a queue are planned, its age is that of the oldest at the time of the plan.
void DriveScheduler::reindex(Queue& queue) {
    std::uint64_t oldest = queue.planned_count > 0 ? queue.oldest : UINT64_MAX;
    Instant oldest_at = queue.oldest_at;
    for (auto& [level, those] : queue.levels) {
        const IoRequest* const request = those.waiting.oldest();
        if (request == nullptr || request->arrival() >= oldest) continue;
        oldest = request->arrival();
        oldest_at = request->arrived_at();
    }
    if (oldest == queue.oldest) return;
    by_age_.erase({queue.oldest, &queue});
    queue.oldest = oldest;
    queue.oldest_at = oldest_at;
    if (queue.count > 0) by_age_.emplace(oldest, &queue);
}

bool DriveScheduler::possible(const IoRequest& request, const IoPart& part) const {
    if (!is_any(request, part)) {
        const IoMedium* const medium = media_.find(part.medium);
        return medium != nullptr && medium->allows(request.type) &&
               media_.has_drive_for(*medium, request.type);
    }
    std::size_t fitting = 0;
    for (const auto& [id, medium] : media_.all()) {
        if (!has_space(medium, request, part)) continue;
        if (!media_.has_drive_for(medium, request.type)) continue;
        if (++fitting == request.missing_count()) return true;
    }
    return false;
}

// Whether a drive that is not down can serve the part, now or later.
bool DriveScheduler::has_drive_up(const IoRequest& request, const IoPart& part) const {
    const IoMedium* const medium = media_.find(part.medium);
    return medium != nullptr && media_.has_drive_up_for(*medium, request.type);
}

Error DriveScheduler::why_impossible(const IoRequest& request) const {
    if (is_any(request, request.parts.front())) {
        return {.code = Errc::kNoSpace, .context = "no cartridge of the pool has the space"};
    }
    const auto is_known = [this](const IoPart& part) {
        const IoMedium* const medium = media_.find(part.medium);
        return medium != nullptr && medium->use != MediumUse::kNone;
    };
    const bool known = std::ranges::any_of(request.parts, is_known);
    return {.code = Errc::kNotFound,
            .context = known ? "no drive takes the cartridge" : "the cartridge cannot be used"};
}

// The part to wait with; the number of parts if there is none.
std::size_t DriveScheduler::best_part(const IoRequest& request) const {
    std::size_t best = request.parts.size();
    std::tuple<bool, bool, std::uint64_t> most;
    for (std::size_t i = 0; i < request.parts.size(); ++i) {
        const IoPart& part = request.parts[i];
        if (part.state != IoPart::State::kWaiting || !possible(request, part)) continue;
        // Only a read has a choice.
        if (request.type != IoType::kRead) return i;
        const IoDevice* const drive = media_.drive_with(part.medium);
        const Queue* const queue = queue_of(part.medium);
        const bool is_loaded = drive != nullptr && drive->state() != DeviceState::kDown &&
                               drive->number() != part.failed_on;
        const std::tuple value(has_drive_up(request, part), is_loaded,
                               queue == nullptr ? 0 : queue->bytes);
        if (best != request.parts.size() && value <= most) continue;
        best = i;
        most = value;
    }
    return best;
}

DriveScheduler::QueueKey DriveScheduler::key_of(const IoRequest& request, std::size_t part) const {
    const MediumId medium = request.parts[part].medium;
    if (!is_any(request, request.parts[part])) {
        return {.medium = medium, .failed_on = request.parts[part].failed_on};
    }
    return {.medium = kAnyMedium,
            .pool = request.pool,
            .copies = static_cast<std::uint32_t>(request.parts.size()),
            .collection = by_collection() ? request.collection : 0};
}

void DriveScheduler::enter(IoRequest& request) {
    const std::size_t part = best_part(request);
    if (part == request.parts.size()) {
        request.queue_state.queue = nullptr;
        lost_.emplace(request.arrival(), &request);
        return;
    }
    const QueueKey key = key_of(request, part);
    std::unique_ptr<Queue>& queue = queues_[key];
    if (queue == nullptr) {
        queue = std::make_unique<Queue>();
        queue->key = key;
        queue->oldest = UINT64_MAX;
    }
    request.queue_state.queue = queue.get();
    request.queue_state.part = static_cast<std::uint16_t>(part);
    request.queue_state.heap_number = 0;
    OfLevel& level = queue->levels[level_of(request)];
    level.waiting.push(request);
    ++level.count;
    ++queue->count;
    request.queue_state.bytes = request.parts[part].size_bytes;
    queue->bytes += request.queue_state.bytes;
    reindex(*queue);
}

void DriveScheduler::leave(IoRequest& request) {
    auto* const queue = static_cast<Queue*>(std::exchange(request.queue_state.queue, nullptr));
    if (queue == nullptr) {
        lost_.erase({request.arrival(), &request});
        return;
    }
    AgeList::remove(request);
    --queue->count;
    const auto level = queue->levels.find(level_of(request));
    if (--level->second.count == 0) queue->levels.erase(level);
    queue->bytes -= request.queue_state.bytes;
    if (request.queue_state.heap_number != 0) --queue->planned_count;
    if (queue->count == 0) {
        by_age_.erase({queue->oldest, queue});
        queues_.erase(queue->key);
    } else {
        reindex(*queue);
    }
}

// Moves requests whose medium is gone, or has no drive that is up, to another of their media, or to
// the lost ones. Takes back lost requests that can be served again.
void DriveScheduler::find_lost() {
    if (lost_version_ == media_.version()) return;
    lost_version_ = media_.version();
    ++changes_;
    std::vector<IoRequest*> moving;
    for (const auto& [arrival, request] : lost_) {
        if (best_part(*request) != request->parts.size()) moving.push_back(request);
    }
    for (const auto& [key, queue] : queues_) {
        const auto stays = [this](const IoRequest* request) {
            const IoPart& part = request->parts[request->queue_state.part];
            if (!possible(*request, part)) return false;
            return is_any(*request, part) || has_drive_up(*request, part) ||
                   best_part(*request) == request->queue_state.part;
        };
        const auto is_good = [&](const IoRequest& request) {
            const IoPart& part = request.parts[request.queue_state.part];
            return possible(request, part) && has_drive_up(request, part);
        };
        // Whether it is possible depends on the medium, and on the size of a write to any.
        if (key.medium != kAnyMedium && is_good(*any_of(*queue))) continue;
        std::vector<IoRequest*> waiting;
        collect(*queue, waiting);
        std::ranges::remove_copy_if(waiting, std::back_inserter(moving), stays);
    }
    for (IoRequest* const request : moving) {
        leave(*request);
        enter(*request);
    }
}

std::uint64_t DriveScheduler::fingerprint() const {
    std::uint64_t hash = 14'695'981'039'346'656'037ULL;
    const auto add = [&hash](std::uint64_t value) { hash = (hash ^ value) * 1'099'511'628'211ULL; };
    add(media_.version());
    add(changes_);
    for (const IoDevice* const drive : media_.drives()) {
        add(static_cast<std::uint64_t>(drive->state()));
        add(drive->is_idle() ? 1 : 0);
        add(drive->medium() ? 1 + static_cast<std::uint64_t>(*drive->medium()) : 0);
    }
    return hash == 0 ? 1 : hash;
}

// -- batches --

void DriveScheduler::note_given(const IoDevice& drive, MediumId medium) {
    Given& given = given_[drive.number()];
    if (given.medium != medium) given = {.medium = medium};
    ++given.count;
}

bool DriveScheduler::had_batch(const IoDevice& drive) const {
    const auto given = given_.find(drive.number());
    return given != given_.end() && given->second.medium == drive.medium() &&
           given->second.count >= kBatch;
}

// -- the choice of drives --

bool DriveScheduler::uses(const PartDrives& chosen, const IoDevice& drive) {
    return std::ranges::any_of(
        chosen, [&](const PartDrive& each) { return each.drive == &drive || each.from == &drive; });
}

bool DriveScheduler::uses(const PartDrives& chosen, MediumId medium) {
    return std::ranges::find(chosen, medium, &PartDrive::medium) != chosen.end();
}

bool DriveScheduler::has_space(const IoMedium& medium, const IoRequest& request,
                               const IoPart& part) {
    return medium.pool == request.pool && medium.allows(IoType::kWrite) &&
           medium.free_bytes >= part.size_bytes;
}

std::optional<std::uint64_t> DriveScheduler::eviction_rank(const IoDevice& drive,
                                                           Instant /*now*/) const {
    if (!drive.medium()) return 0;
    return queue_for(drive) == nullptr ? 1 : 2;
}

IoDevice* DriveScheduler::drive_for(const IoRequest& request, const IoPart& part,
                                    const IoMedium& medium, Instant now,
                                    const PartDrives& used) const {
    IoDevice* const loaded = media_.drive_with(medium.id);
    if (loaded != nullptr) {
        if (!loaded->is_idle() || loaded->state() == DeviceState::kHeld) return nullptr;
        if (uses(used, *loaded)) return nullptr;
        const bool is_left =
            loaded->state() == DeviceState::kDown || avoids(part, medium, request.type, *loaded);
        if (!is_left) return has_device(*loaded) ? loaded : nullptr;
    }
    IoDevice* best = nullptr;
    std::uint64_t least = 0;
    for (IoDevice* const drive : drives_) {
        if (drive == loaded || uses(used, *drive) || !drive->has_room(request.type) ||
            !IoMedia::fits(*drive, medium, request.type) ||
            avoids(part, medium, request.type, *drive)) {
            continue;
        }
        const auto rank = eviction_rank(*drive, now);
        if (!rank || (best != nullptr && *rank >= least)) continue;
        best = drive;
        least = *rank;
    }
    return best;
}

bool DriveScheduler::is_kept(MediumId medium) const {
    const IoDevice* const drive = media_.drive_with(medium);
    return drive != nullptr && (drive->state() != DeviceState::kDown || !drive->is_idle());
}

DriveScheduler::PartDrive DriveScheduler::choose_for_write(const IoRequest& request,
                                                           std::size_t part, Instant now,
                                                           const PartDrives& used) const {
    const IoPart& wanted = request.parts[part];
    for (IoDevice* const drive : drives_) {
        if (!drive->medium() || !drive->has_room(request.type) || uses(used, *drive)) continue;
        const IoMedium* const medium = media_.find(*drive->medium());
        if (medium == nullptr || !has_space(*medium, request, wanted)) continue;
        if (IoMedia::fits(*drive, *medium, request.type)) return {drive, part, medium->id};
    }
    // The one with the least space that suffices, so that cartridges get full.
    const IoMedium* best = nullptr;
    for (const auto& [id, medium] : media_.all()) {
        if (!has_space(medium, request, wanted) || uses(used, id)) continue;
        if (best != nullptr && medium.free_bytes >= best->free_bytes) continue;
        if (is_kept(id)) continue;
        if (drive_for(request, wanted, medium, now, used) != nullptr) best = &medium;
    }
    if (best == nullptr) return {};
    return {drive_for(request, wanted, *best, now, used), part, best->id};
}

DriveScheduler::PartDrives DriveScheduler::choose_drives(const IoRequest& request,
                                                         Instant now) const {
    PartDrives chosen;
    const bool all = request.type != IoType::kRead;
    for (std::size_t i = 0; i < request.parts.size(); ++i) {
        const IoPart& part = request.parts[i];
        if (part.state != IoPart::State::kWaiting) continue;
        if (!all && i != request.queue_state.part) continue;
        PartDrive found;
        if (is_any(request, part)) {
            found = choose_for_write(request, i, now, chosen);
        } else if (const IoMedium* const medium = media_.find(part.medium)) {
            found = {drive_for(request, part, *medium, now, chosen), i, medium->id};
        }
        if (found.drive == nullptr) return {};
        if (IoDevice* const holder = media_.drive_with(found.medium); holder != found.drive) {
            found.from = holder;
        }
        chosen.push_back(found);
    }
    return chosen;
}

}  // namespace fopd::io_sched

#include "io_sched/fair_share.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <vector>

#include "core/ensure.h"

namespace fopd::io_sched {

namespace {

using Weights = std::array<std::uint64_t, kIoTypeCount>;

// Small enough that products with numbers of drives do not overflow, and multiples of 6, so that
// they can be split among two or three types.
Weights scaled(const Weights& weights) {
    const std::uint64_t most = *std::ranges::max_element(weights);
    const int excess = std::max(0, static_cast<int>(std::bit_width(most)) - 36);
    Weights small{};
    for (std::size_t i = 0; i < kIoTypeCount; ++i) {
        small[i] = weights[i] >> excess;
        if (weights[i] > 0) small[i] = std::max<std::uint64_t>(small[i], 1);
        small[i] *= 6;
    }
    return small;
}

template <typename Numbers>
std::uint64_t sum_of(const Numbers& numbers) {
    return std::accumulate(numbers.begin(), numbers.end(), std::uint64_t{0});
}

// With one drive, or two, which are shared.
DriveCounts share_few(std::uint32_t drives, const Weights& weights, const DriveLimits& limits) {
    DriveCounts counts{};
    const auto heaviest =
        static_cast<std::size_t>(std::ranges::max_element(weights) - weights.begin());
    for (std::size_t i = 0; i < kIoTypeCount; ++i) {
        if (weights[i] == 0) continue;
        const std::uint32_t wanted = i == heaviest ? drives : 1;
        counts[i] = std::min({std::max(wanted, limits.min[i]), limits.max[i], drives});
    }
    return counts;
}

// The weights without the types that have their maximum: their weight is split among the others.
Weights without_full(const Weights& weights, const DriveCounts& counts, const DriveCounts& max) {
    const auto is_open = [&](std::size_t i) { return weights[i] > 0 && counts[i] < max[i]; };
    std::uint64_t open = 0;
    std::uint64_t freed = 0;
    for (std::size_t i = 0; i < kIoTypeCount; ++i) {
        if (is_open(i)) {
            ++open;
        } else {
            freed += weights[i];
        }
    }
    Weights left{};
    for (std::size_t i = 0; i < kIoTypeCount; ++i) {
        if (is_open(i)) left[i] = weights[i] + freed / open;
    }
    return left;
}

}  // namespace

DriveCounts divide_drives(std::uint32_t drives, const Weights& all_weights,
                          const DriveLimits& limits) {
    const Weights weights = scaled(all_weights);
    const std::uint64_t total = sum_of(weights);
    if (drives == 0 || total == 0) return {};
    if (drives <= 2) return share_few(drives, weights, limits);

    DriveCounts min{};
    DriveCounts max{};
    for (std::size_t i = 0; i < kIoTypeCount; ++i) {
        if (weights[i] == 0) continue;
        max[i] = std::min(limits.max[i], drives);
        min[i] = std::min(limits.min[i], max[i]);
    }
    if (sum_of(min) > drives) {
        max = min;
        for (std::uint32_t& each : min) each = std::min(each, 1U);
    }
    DriveCounts counts{};
    for (std::size_t i = 0; i < kIoTypeCount; ++i) {
        const auto whole = static_cast<std::uint32_t>(weights[i] * drives / total);
        counts[i] = std::clamp(whole, min[i], max[i]);
    }
    std::uint64_t given = sum_of(counts);
    for (std::size_t i = 0; i < kIoTypeCount && given > drives; ++i) {
        while (counts[i] > min[i] && given > drives) {
            --counts[i];
            --given;
        }
    }
    while (given < drives) {
        const Weights left = without_full(weights, counts, max);
        std::optional<std::size_t> neediest;
        std::int64_t most = 0;
        for (std::size_t i = 0; i < kIoTypeCount; ++i) {
            if (left[i] == 0) continue;
            // How far it is below its share, times drives and total.
            const auto lacks = static_cast<std::int64_t>(left[i] * drives) -
                               static_cast<std::int64_t>(counts[i] * total);
            const bool more =
                !neediest || lacks > most || (lacks == most && counts[i] < counts[*neediest]);
            if (!more) continue;
            neediest = i;
            most = lacks;
        }
        if (!neediest) break;  // All have their maximum.
        ++counts[*neediest];
        ++given;
    }
    return counts;
}

// -- device dispatch --

struct FairShareDispatch::Group {
    Technology technology;
    std::vector<IoDevice*> drives;
    std::span<SchedulerLoad> schedulers;
    DriveCounts wanted{};  // The drives that each scheduler should have.
    bool shared = false;   // A drive may have several schedulers, because there are too few.

    std::uint32_t have(std::size_t scheduler) const {
        return static_cast<std::uint32_t>(std::ranges::count_if(drives, [&](IoDevice* drive) {
            return schedulers[scheduler].scheduler->has_device(*drive);
        }));
    }
    std::uint32_t owners(const IoDevice& drive) const {
        return static_cast<std::uint32_t>(std::ranges::count_if(
            schedulers,
            [&](const SchedulerLoad& load) { return load.scheduler->has_device(drive); }));
    }
    bool lacks(std::size_t scheduler) const { return have(scheduler) < wanted[scheduler]; }
};

void FairShareDispatch::dispatch(std::span<IoDevice* const> devices,
                                 std::span<SchedulerLoad> schedulers, Instant now) {
    ENSURE(schedulers.size() <= kIoTypeCount);
    std::vector<Group> groups;
    for (IoDevice* const device : devices) {
        if (device->state() != DeviceState::kReady) continue;
        auto group = std::ranges::find(groups, device->technology(), &Group::technology);
        if (group == groups.end()) {
            Group& fresh = groups.emplace_back();
            fresh.technology = device->technology();
            fresh.schedulers = schedulers;
            group = groups.end() - 1;
        }
        group->drives.push_back(device);
    }
    for (Group& group : groups) {
        group.wanted = target(group);
        group.shared = sum_of(group.wanted) > group.drives.size();
        settle(group, now);
        give(group, now);
        exchange(group, now);
    }
}

DriveCounts FairShareDispatch::target(const Group& group) const {
    Weights weights{};
    DriveLimits limits;
    limits.max = {};
    const auto known = options_.limits.find(group.technology);
    for (std::size_t i = 0; i < group.schedulers.size(); ++i) {
        const SchedulerLoad& load = group.schedulers[i];
        std::uint64_t fixed = 0;
        for (std::size_t type = 0; type < kIoTypeCount; ++type) {
            if (!load.serves[type]) continue;
            if (options_.weights) fixed += (*options_.weights)[type];
            const DriveLimits each = known == options_.limits.end() ? DriveLimits{} : known->second;
            limits.min[i] += each.min[type];
            const std::uint64_t most = std::uint64_t{limits.max[i]} + each.max[type];
            limits.max[i] =
                static_cast<std::uint32_t>(std::min<std::uint64_t>(most, DriveLimits::kNoMax));
        }
        if (load.waiting_count == 0) continue;
        weights[i] = options_.weights ? fixed : load.waiting_cost;
    }
    return divide_drives(static_cast<std::uint32_t>(group.drives.size()), weights, limits);
}

// Notes since when each scheduler lacks drives.
void FairShareDispatch::settle(const Group& group, Instant now) {
    auto& lacking = lacking_[group.technology];
    for (std::size_t i = 0; i < group.schedulers.size(); ++i) {
        if (!group.lacks(i)) {
            lacking[i].reset();
        } else if (!lacking[i]) {
            lacking[i] = now;
        }
    }
}

void FairShareDispatch::give(Group& group, Instant now) {
    for (bool given = true; given;) {
        given = false;
        for (std::size_t i = 0; i < group.schedulers.size(); ++i) {
            if (group.lacks(i) && give_one(group, i, now)) given = true;
        }
    }
    for (std::size_t i = 0; i < group.schedulers.size(); ++i) {
        if (!group.lacks(i)) lacking_[group.technology][i].reset();
        if (group.shared) take_back(group, i, now);
    }
}

// Takes back a drive that a scheduler has beyond its share, before another scheduler lacks one.
// Called only if the shares together need more drives than there are.
void FairShareDispatch::take_back(Group& group, std::size_t from, Instant now) {
    if (group.wanted[from] == 0 || group.have(from) <= group.wanted[from]) return;
    IoScheduler& giver = *group.schedulers[from].scheduler;
    IoDevice* const drive = giver.reclaim_device(Reclaim::take(group.technology));
    if (drive == nullptr) return;
    if (may_move(*drive, now)) {
        moved(*drive, now);
    } else {
        giver.add_device(*drive);
    }
}

bool FairShareDispatch::give_one(Group& group, std::size_t to, Instant now) {
    IoScheduler& receiver = *group.schedulers[to].scheduler;
    IoDevice* free = nullptr;
    for (IoDevice* const drive : group.drives) {
        if (receiver.has_device(*drive)) continue;
        const std::uint32_t owners = group.owners(*drive);
        if (owners > 0 && !group.shared) continue;
        if (free == nullptr || owners < group.owners(*free)) free = drive;
    }
    if (free != nullptr) {
        receiver.add_device(*free);
        return true;
    }
    const std::optional<Instant> since = lacking_[group.technology][to];
    const bool settled = since && now - *since >= kSettle;
    for (std::size_t from = 0; from < group.schedulers.size(); ++from) {
        if (group.have(from) <= group.wanted[from]) continue;
        const bool is_idle = group.schedulers[from].waiting_count == 0;
        if (!settled && !is_idle) continue;
        IoScheduler& giver = *group.schedulers[from].scheduler;
        IoDevice* const drive = giver.reclaim_device(Reclaim::take(group.technology));
        if (drive == nullptr) continue;
        if (!may_move(*drive, now)) {
            giver.add_device(*drive);
            continue;
        }
        receiver.add_device(*drive);
        moved(*drive, now);
        return true;
    }
    return false;
}

// A drive that has a cartridge for another scheduler goes there, for one of the drives of that.
void FairShareDispatch::exchange(Group& group, Instant now) {
    for (SchedulerLoad& load : group.schedulers) {
        if (load.waiting_count == 0) continue;
        IoDevice* const wanted = load.scheduler->wanted_device();
        if (wanted == nullptr || wanted->technology() != group.technology ||
            wanted->state() != DeviceState::kReady || !may_move(*wanted, now)) {
            continue;
        }
        IoDevice* const offered = load.scheduler->reclaim_device(Reclaim::take(group.technology));
        if (offered == nullptr) continue;
        bool done = false;
        for (SchedulerLoad& owner : group.schedulers) {
            if (done || !may_move(*offered, now) || !owner.scheduler->has_device(*wanted)) continue;
            done = owner.scheduler->reclaim_device(Reclaim::exchange(*wanted, *offered)) != nullptr;
        }
        load.scheduler->add_device(done ? *wanted : *offered);
        if (!done) continue;
        moved(*wanted, now);
        moved(*offered, now);
    }
}

bool FairShareDispatch::may_move(const IoDevice& device, Instant now) const {
    const auto last = moved_.find(device.number());
    return device.is_idle() && (last == moved_.end() || now - last->second >= kDriveRest);
}

Instant FairShareDispatch::next_time(Instant now) const {
    Instant next = kNever;
    const auto consider = [&](Instant time) {
        if (time > now) next = std::min(next, time);
    };
    bool lacks = false;
    for (const auto& [technology, lacking] : lacking_) {
        for (const std::optional<Instant>& since : lacking) {
            if (!since) continue;
            lacks = true;
            consider(*since + kSettle);
        }
    }
    if (lacks) {
        for (const auto& [number, time] : moved_) consider(time + kDriveRest);
    }
    return next;
}

// -- request dispatch --

std::uint64_t FairShareRequests::start_of(std::size_t scheduler) const {
    return std::max(virtual_time_, finish_[scheduler]);
}

IoRequest* FairShareRequests::next(std::span<IoRequest* const> peeked) const {
    IoRequest* first = nullptr;
    std::uint64_t least = 0;
    for (std::size_t i = 0; i < peeked.size(); ++i) {
        if (peeked[i] == nullptr) continue;
        const std::uint64_t start = start_of(i);
        const bool earlier = first == nullptr || start < least ||
                             (start == least && peeked[i]->arrival() < first->arrival());
        if (!earlier) continue;
        first = peeked[i];
        least = start;
    }
    return first;
}

void FairShareRequests::taken(std::size_t scheduler, std::uint64_t cost) {
    constexpr std::uint64_t kScale = 1024;
    virtual_time_ = start_of(scheduler);
    finish_[scheduler] =
        virtual_time_ + cost * kScale / std::max<std::uint64_t>(1, weights_[scheduler]);
}

}  // namespace fopd::io_sched

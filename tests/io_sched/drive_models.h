#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "core/stable_sort.h"
#include "devices/tape/drive_model.h"
#include "io_sched/io_media.h"
#include "io_sched/read_order.h"
#include "tests/catch.h"
#include "tests/io_sched/requests.h"

// Slow models of the schedulers for drives, which look through all that waits, without any index or
// cache.
namespace fopd::io_sched::testing {

inline constexpr std::uint64_t kFile = 1'000'000'000;
inline constexpr std::uint64_t kTape = 1000 * kFile;
inline constexpr std::uint32_t kMedia = 7;

using Waiting = std::vector<NumberedRequest*>;  // By age.

struct Next {
    NumberedRequest* request = nullptr;
    IoDevice* drive = nullptr;
    MediumId medium{};
};

// What waits, and what is decided by looking through all of it.
class DriveModelOf {
public:
    DriveModelOf(const IoMedia& known, std::vector<IoDevice*> drives)
        : media(known), drives_(std::move(drives)) {}
    virtual ~DriveModelOf() = default;

    virtual Next next(Instant now) = 0;
    virtual void gave(const Next& next) { remove(*next.request); }
    virtual void remove(const NumberedRequest& request) { std::erase(waiting, &request); }
    void push(NumberedRequest& request) { waiting.push_back(&request); }

    const IoMedia& media;
    Waiting waiting;
    // How often requests did not wait for those of their cartridge with a higher priority.
    std::size_t late_turns = 0;

protected:
    static bool is_any(const NumberedRequest& request) {
        return request.parts[0].medium == kAnyMedium;
    }
    Waiting of(MediumId medium) const {
        Waiting those;
        for (NumberedRequest* const each : waiting) {
            if (each->parts[0].medium == medium) those.push_back(each);
        }
        return those;
    }
    // Of those that wait for a cartridge, the lowest goes first.
    static std::pair<IoPriority, int> level(const NumberedRequest& request) {
        return {request.priority, -int{request.urgency}};
    }
    static std::pair<IoPriority, int> first_level(const Waiting& those) {
        std::pair first = level(*those.front());
        for (const NumberedRequest* const each : those) first = std::min(first, level(*each));
        return first;
    }
    static bool is_free(const IoDevice& drive) { return drive.has_room(IoType::kRead); }
    virtual std::optional<int> rank(const IoDevice& drive, Instant) const {
        if (!drive.medium()) return 0;
        return of(*drive.medium()).empty() ? 1 : 2;
    }
    IoDevice* drive_for(const IoMedium& medium, IoType type, Instant now) const {
        for (IoDevice* const drive : drives_) {
            if (drive->medium() == medium.id) return is_free(*drive) ? drive : nullptr;
        }
        IoDevice* best = nullptr;
        for (IoDevice* const drive : drives_) {
            if (!is_free(*drive) || !IoMedia::fits(*drive, medium, type) || !rank(*drive, now)) {
                continue;
            }
            if (best == nullptr || *rank(*drive, now) < *rank(*best, now)) best = drive;
        }
        return best;
    }
    bool is_loaded(MediumId medium) const { return media.drive_with(medium) != nullptr; }
    static bool fits(const IoMedium& medium, const NumberedRequest& request) {
        return medium.use == MediumUse::kAll && medium.pool == request.pool &&
               medium.free_bytes >= request.parts[0].size_bytes;
    }

    const std::vector<IoDevice*> drives_;
};

class DriveFifoModel final : public DriveModelOf {
public:
    using DriveModelOf::DriveModelOf;

    Next next(Instant now) override {
        for (NumberedRequest* const each : waiting) {
            // Of those for one cartridge, or for any, the first level goes first.
            const Waiting those = of(each->parts[0].medium);
            if (each != those.front()) continue;
            const Next found = place(*each, now);
            if (found.drive != nullptr) return first_of(those, found);
        }
        return {};
    }
    void gave(const Next& next) override {
        const MediumId medium = next.request->parts[0].medium;
        const auto own = level(*next.request);
        DriveModelOf::gave(next);
        bool has_earlier = false;
        bool has_later = false;
        for (const NumberedRequest* const each : of(medium)) {
            has_earlier = has_earlier || level(*each) < own;
            has_later = has_later || level(*each) > own;
        }
        if (has_earlier) ++late_turns;
        runs_[medium] = !has_earlier && has_later ? runs_[medium] + 1 : 0;
    }
    void remove(const NumberedRequest& request) override {
        DriveModelOf::remove(request);
        const MediumId medium = request.parts[0].medium;
        if (of(medium).empty()) runs_.erase(medium);
    }

private:
    // After eight of the first level the oldest of all.
    Next first_of(const Waiting& those, Next found) const {
        const auto run = runs_.find(those.front()->parts[0].medium);
        const bool is_turn = run != runs_.end() && run->second >= 8;
        found.request = those.front();
        if (is_turn) return found;
        const auto first = first_level(those);
        found.request = *std::ranges::find_if(
            those, [&](const NumberedRequest* each) { return level(*each) == first; });
        return found;
    }
    Next place(NumberedRequest& request, Instant now) const {
        if (!is_any(request)) {
            const IoMedium& medium = *media.find(request.parts[0].medium);
            return {&request, drive_for(medium, request.type, now), medium.id};
        }
        for (IoDevice* const drive : drives_) {
            if (!is_free(*drive) || !drive->medium()) continue;
            if (fits(*media.find(*drive->medium()), request)) {
                return {&request, drive, *drive->medium()};
            }
        }
        Next best{.request = &request};
        std::uint64_t least = 0;
        for (const auto& [id, medium] : media.all()) {
            if (!fits(medium, request) || is_loaded(id)) continue;
            IoDevice* const drive = drive_for(medium, request.type, now);
            if (drive == nullptr || (best.drive != nullptr && medium.free_bytes >= least)) continue;
            best = {&request, drive, id};
            least = medium.free_bytes;
        }
        return best;
    }

    std::map<MediumId, int> runs_;  // Of the first level past others.
};

class GroupedReadModel final : public DriveModelOf {
public:
    GroupedReadModel(const IoMedia& known, std::vector<IoDevice*> drives, Duration max_wait)
        : DriveModelOf(known, std::move(drives)), max_wait_(max_wait) {}

    Next next(Instant now) override {
        for (IoDevice* const drive : drives_) {
            if (!is_free(*drive) || !drive->medium()) continue;
            if (of(*drive->medium()).empty() || yields(*drive, now)) continue;
            return {planned(*drive->medium(), drive, now), drive, *drive->medium()};
        }
        overdue_ = true;
        for (const MediumId medium : by_age()) {
            if (!is_overdue(medium, now) || is_loaded(medium)) continue;
            const Next found = mount(medium, now);
            if (found.request != nullptr) return found;
        }
        overdue_ = false;
        std::vector<MediumId> ripe;
        for (const MediumId medium : by_age()) {
            if (is_ripe(medium, now) && !is_loaded(medium)) ripe.push_back(medium);
        }
        core::stable_sort(ripe, std::less{}, [this](MediumId medium) {
            return std::pair(first_level(of(medium)), UINT64_MAX - bytes(medium));
        });
        for (const MediumId medium : ripe) {
            const Next found = mount(medium, now);
            if (found.request != nullptr) return found;
        }
        return {};
    }
    void gave(const Next& next) override {
        auto& [medium, count] = served_[next.drive->number()];
        if (medium != next.medium) count = 0;
        medium = next.medium;
        ++count;
        DriveModelOf::gave(next);
        leave_plan(*next.request, next.medium);
    }
    void remove(const NumberedRequest& request) override {
        DriveModelOf::remove(request);
        leave_plan(request, request.parts[0].medium);
    }

private:
    void leave_plan(const NumberedRequest& request, MediumId medium) {
        std::erase(plans_[medium], &request);
    }
    // The age of those that were planned together is that of the oldest, until all are gone.
    std::uint64_t age(MediumId medium) const {
        std::uint64_t oldest = UINT64_MAX;
        for (const NumberedRequest* const each : of(medium)) {
            oldest = std::min(oldest, each->arrival());
        }
        const auto plan = plans_.find(medium);
        if (plan != plans_.end() && !plan->second.empty()) {
            oldest = std::min(oldest, plan_age_.at(medium).first);
        }
        return oldest;
    }
    Instant age_at(MediumId medium) const {
        const std::uint64_t oldest = age(medium);
        for (const NumberedRequest* const each : of(medium)) {
            if (each->arrival() == oldest) return each->arrived_at();
        }
        return plan_age_.at(medium).second;
    }
    std::vector<MediumId> by_age() const {
        std::set<std::pair<std::uint64_t, MediumId>> ages;
        for (const NumberedRequest* const each : waiting) {
            ages.emplace(age(each->parts[0].medium), each->parts[0].medium);
        }
        std::vector<MediumId> sorted;
        for (const auto& [arrival, medium] : ages) sorted.push_back(medium);
        return sorted;
    }
    bool is_overdue(MediumId medium, Instant now) const {
        return now - age_at(medium) >= max_wait_;
    }
    bool is_ripe(MediumId medium, Instant now) const {
        return bytes(medium) >= 6 * kFile || of(medium).size() >= 5 || now - age_at(medium) >= 300s;
    }
    std::uint64_t bytes(MediumId medium) const {
        std::uint64_t sum = 0;
        for (const NumberedRequest* const each : of(medium)) sum += each->parts[0].size_bytes;
        return sum;
    }
    bool yields(const IoDevice& drive, Instant now) const {
        const auto served = served_.find(drive.number());
        if (served == served_.end() || served->second.first != drive.medium()) return false;
        if (served->second.second < 16) return false;
        const auto plan = plans_.find(*drive.medium());
        if (plan != plans_.end() && !plan->second.empty() && plan->second.size() <= 16) {
            return false;
        }
        return std::ranges::any_of(by_age(), [&](MediumId medium) {
            return is_overdue(medium, now) && !is_loaded(medium) &&
                   IoMedia::fits(drive, *media.find(medium), IoType::kRead);
        });
    }
    std::optional<int> rank(const IoDevice& drive, Instant now) const override {
        if (!drive.medium()) return 0;
        if (!of(*drive.medium()).empty()) {
            return yields(drive, now) ? std::optional(2) : std::nullopt;
        }
        if (!overdue_ && now < drive.idle_since() + 20s) return std::nullopt;
        return 1;
    }
    Next mount(MediumId medium, Instant now) {
        IoDevice* const drive = drive_for(*media.find(medium), IoType::kRead, now);
        if (drive == nullptr) return {};
        plans_[medium].clear();
        return {planned(medium, drive, now), drive, medium};
    }
    // The first level, and at most 16 overdue ones of later levels, or as many as there are of the
    // first. If there are overdue ones, at most as many others, or 16. Then the 16 oldest of more
    // than 32 go first.
    NumberedRequest* planned(MediumId medium, const IoDevice* drive, Instant now) {
        Waiting& plan = plans_[medium];
        const auto first = first_level(of(medium));
        const bool is_right = late_.contains(medium) || !is_overdue(medium, now);
        if (!plan.empty() && first >= plan_level_[medium] && is_right) return plan.front();
        const auto has_waited = [&](const NumberedRequest* each) {
            return now - each->arrived_at() >= max_wait_;
        };
        std::size_t firsts = 0;
        for (const NumberedRequest* const each : of(medium)) firsts += level(*each) == first;
        Waiting those;
        std::size_t later = 0;
        std::size_t fresh = 0;
        const auto late =
            static_cast<std::size_t>(std::ranges::count_if(of(medium), [&](auto* each) {
                if (!has_waited(each)) return false;
                return level(*each) == first || ++later <= std::max<std::size_t>(firsts, 16);
            }));
        if (later > 0) ++late_turns;
        later = 0;
        for (NumberedRequest* const each : of(medium)) {
            if (level(*each) != first) {
                if (!has_waited(each) || ++later > std::max<std::size_t>(firsts, 16)) continue;
            } else if (!has_waited(each) && late > 0 && ++fresh > std::max<std::size_t>(late, 16)) {
                continue;
            }
            those.push_back(each);
        }
        plan.clear();
        plan_age_[medium] = {age(medium), age_at_of_all(medium)};
        plan_level_[medium] = first;
        late_.erase(medium);
        if (late > 0) late_.insert(medium);
        const auto model = devices::with_capacity(*devices::find_drive_model("lto9"), kTape);
        auto at = position_of_byte(model, drive->medium() == medium ? drive->position() : 0);
        const std::ptrdiff_t oldest = late > 0 && those.size() > 32 ? 16 : 0;
        for (const Waiting& some : {Waiting(those.begin(), those.begin() + oldest),
                                    Waiting(those.begin() + oldest, those.end())}) {
            std::vector<TapeStretch> files;
            for (const NumberedRequest* const each : some) {
                files.push_back(stretch_from(model, position_of_byte(model, each->parts[0].offset),
                                             each->parts[0].size_bytes));
            }
            for (const auto index : plan_reads(model, at, files, ReadOrder::kAuto)) {
                plan.push_back(some[index]);
                at = files[index].end;
            }
        }
        return plan.front();
    }
    Instant age_at_of_all(MediumId medium) const { return of(medium).front()->arrived_at(); }

    std::map<MediumId, Waiting> plans_;
    std::map<MediumId, std::pair<std::uint64_t, Instant>> plan_age_;
    std::map<std::uint8_t, std::pair<MediumId, int>> served_;
    std::map<MediumId, std::pair<IoPriority, int>> plan_level_;
    std::set<MediumId> late_;  // Their plans have requests that had waited for too long.
    const Duration max_wait_;
    bool overdue_ = false;
};

class GroupedWriteModel final : public DriveModelOf {
public:
    using DriveModelOf::DriveModelOf;

    Next next(Instant now) override {
        for (IoDevice* const drive : drives_) {
            if (!is_free(*drive) || !drive->medium() || yields(*drive, now)) continue;
            const Waiting those = continuing(*drive->medium());
            if (those.empty()) continue;
            const Next found = place(*those.front(), now);
            if (found.drive != nullptr) return found;
        }
        for (NumberedRequest* const each : waiting) {
            // The first of its collection.
            if (same_queue(*each).front() != each) continue;
            const Next found = place(*each, now);
            if (found.drive != nullptr) return found;
        }
        return {};
    }
    void gave(const Next& next) override {
        auto& [medium, count] = written_[next.drive->number()];
        if (medium != next.medium) count = 0;
        medium = next.medium;
        ++count;
        DriveModelOf::gave(next);
    }

private:
    Waiting same_queue(const NumberedRequest& request) const {
        Waiting those;
        for (NumberedRequest* const each : waiting) {
            const bool same = is_any(request)
                                  ? is_any(*each) && each->collection == request.collection
                                  : each->parts[0].medium == request.parts[0].medium;
            if (same) those.push_back(each);
        }
        return those;
    }
    Waiting continuing(MediumId medium) const {
        Waiting those = of(medium);
        if (!those.empty()) return those;
        const std::uint64_t collection = media.find(medium)->collection;
        if (collection == 0) return those;
        for (NumberedRequest* const each : waiting) {
            if (is_any(*each) && each->collection == collection) those.push_back(each);
        }
        if (!those.empty() && !fits(*media.find(medium), *those.front())) those.clear();
        return those;
    }
    bool yields(const IoDevice& drive, Instant now) const {
        const auto written = written_.find(drive.number());
        if (written == written_.end() || written->second.first != drive.medium()) return false;
        if (written->second.second < 16 || waiting.empty()) return false;
        if (now - waiting.front()->arrived_at() < 600s) return false;
        const Waiting own = continuing(*drive.medium());
        return own.empty() || own.front() != waiting.front();
    }
    std::optional<int> rank(const IoDevice& drive, Instant now) const override {
        if (!drive.medium()) return 0;
        if (continuing(*drive.medium()).empty()) return 1;
        return yields(drive, now) ? std::optional(2) : std::nullopt;
    }
    Next place(NumberedRequest& request, Instant now) const {
        if (!is_any(request)) {
            const IoMedium& medium = *media.find(request.parts[0].medium);
            return {&request, drive_for(medium, request.type, now), medium.id};
        }
        const auto free_drive = [&](MediumId id) {
            IoDevice* const drive = media.drive_with(id);
            return drive != nullptr && is_free(*drive) ? drive : nullptr;
        };
        const auto is_others = [&](const IoMedium& medium) {
            return medium.collection != request.collection && !continuing(medium.id).empty();
        };
        std::vector<const IoMedium*> own;
        std::vector<const IoMedium*> loaded;
        std::vector<const IoMedium*> shared;
        std::vector<const IoMedium*> stored;
        for (const auto& [id, medium] : media.all()) {
            if (!fits(medium, request)) continue;
            if (request.collection != 0 && medium.collection == request.collection) {
                own.push_back(&medium);
            }
            if (free_drive(id) != nullptr) (is_others(medium) ? shared : loaded).push_back(&medium);
            if (!is_loaded(id) && !is_others(medium)) stored.push_back(&medium);
        }
        core::stable_sort(own, std::less{}, [&](const IoMedium* medium) {
            return free_drive(medium->id) == nullptr;
        });
        if (!own.empty()) {
            // Of several in use the last that is free, as of equal ones any would do.
            const IoMedium* mine = own.front();
            for (const IoMedium* const each : own) {
                if (free_drive(each->id) != nullptr) mine = each;
            }
            if (IoDevice* const drive = free_drive(mine->id)) return {&request, drive, mine->id};
            if (is_loaded(mine->id)) return {};
            return {&request, drive_for(*mine, request.type, now), mine->id};
        }
        if (!loaded.empty()) {
            return {&request, free_drive(loaded.front()->id), loaded.front()->id};
        }
        if (!stored.empty()) {
            const IoMedium& least = **std::ranges::min_element(stored, {}, &IoMedium::free_bytes);
            return {&request, drive_for(least, request.type, now), least.id};
        }
        if (!shared.empty()) {
            return {&request, free_drive(shared.front()->id), shared.front()->id};
        }
        return {};
    }

    std::map<std::uint8_t, std::pair<MediumId, int>> written_;
};

inline std::unique_ptr<DriveModelOf> make_model(std::string_view name, const IoMedia& media,
                                                const std::vector<IoDevice*>& drives,
                                                Duration max_wait) {
    if (name == "grouped_read") {
        return std::make_unique<GroupedReadModel>(media, drives, max_wait);
    }
    if (name == "grouped_write") return std::make_unique<GroupedWriteModel>(media, drives);
    REQUIRE(name == "fifo");  // A new one needs its model here.
    return std::make_unique<DriveFifoModel>(media, drives);
}

}  // namespace fopd::io_sched::testing

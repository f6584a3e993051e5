// Goal: what every scheduler for drives keeps to, and that its order is the one it promises.
// Method: each row of the table, for each type it serves, gets the same drawn pushes, peeks,
// requeues, removals and times, on drives that take cartridges, fill up and empty. A model that
// looks through all that waits, without any index or cache, says what has to come next.

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "core/random.h"
#include "core/stable_sort.h"
#include "devices/tape/drive_model.h"
#include "io_sched/drive_algorithms.h"
#include "io_sched/settings.h"
#include "tests/catch.h"
#include "tests/io_sched/requests.h"

using namespace fopd;
using namespace fopd::io_sched;
using namespace fopd::io_sched::testing;

namespace {

constexpr std::uint64_t kFile = 1'000'000'000;
constexpr std::uint64_t kTape = 1000 * kFile;
constexpr std::uint32_t kMedia = 7;

TapeSettings drive_settings() {
    TapeSettings settings;
    settings.grouped_read_mount_bytes = 6 * kFile;
    settings.grouped_read_mount_files = 5;
    settings.grouped_read_mount_age = 300s;
    settings.grouped_read_max_wait = 1000s;
    settings.grouped_read_stay_mounted = 20s;
    settings.grouped_write_max_wait = 600s;
    return settings;
}

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
            // Of those for one cartridge, or for any, the foreground goes first.
            const Waiting those = of(each->parts[0].medium);
            if (each != those.front()) continue;
            const Next found = place(*each, now);
            if (found.drive != nullptr) return first_of(those, found);
        }
        return {};
    }

private:
    static Next first_of(const Waiting& those, Next found) {
        const auto at = std::ranges::find(those, IoPriority::kForeground, &IoRequest::priority);
        found.request = at == those.end() ? those.front() : *at;
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
};

class GroupedReadModel final : public DriveModelOf {
public:
    using DriveModelOf::DriveModelOf;

    Next next(Instant now) override {
        for (IoDevice* const drive : drives_) {
            if (!is_free(*drive) || !drive->medium()) continue;
            if (of(*drive->medium()).empty() || yields(*drive, now)) continue;
            return {planned(*drive->medium(), drive), drive, *drive->medium()};
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
        core::stable_sort(ripe, std::greater{}, [this](MediumId medium) {
            return std::pair(has_foreground(medium), bytes(medium));
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
        std::erase(plans_[next.medium], next.request);
    }
    void remove(const NumberedRequest& request) override {
        DriveModelOf::remove(request);
        std::erase(plans_[request.parts[0].medium], &request);
    }

private:
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
    bool is_overdue(MediumId medium, Instant now) const { return now - age_at(medium) >= 1000s; }
    bool is_ripe(MediumId medium, Instant now) const {
        return bytes(medium) >= 6 * kFile || of(medium).size() >= 5 || now - age_at(medium) >= 300s;
    }
    std::uint64_t bytes(MediumId medium) const {
        std::uint64_t sum = 0;
        for (const NumberedRequest* const each : of(medium)) sum += each->parts[0].size_bytes;
        return sum;
    }
    bool has_foreground(MediumId medium) const {
        const Waiting those = of(medium);
        return std::ranges::count(those, IoPriority::kForeground, &IoRequest::priority) > 0;
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
        return {planned(medium, drive), drive, medium};
    }
    NumberedRequest* planned(MediumId medium, const IoDevice* drive) {
        Waiting& plan = plans_[medium];
        const auto wanted =
            has_foreground(medium) ? IoPriority::kForeground : IoPriority::kBackground;
        if (!plan.empty() && plan.front()->priority == wanted) return plan.front();
        const auto model = devices::with_capacity(*devices::find_drive_model("lto9"), kTape);
        Waiting those;
        std::vector<TapeStretch> files;
        for (NumberedRequest* const each : of(medium)) {
            if (each->priority != wanted) continue;
            those.push_back(each);
            files.push_back(stretch_from(model, place_of_byte(model, each->parts[0].offset),
                                         each->parts[0].size_bytes));
        }
        const std::uint64_t from = drive->medium() == medium ? drive->position() : 0;
        plan.clear();
        plan_age_.erase(medium);
        plan_age_[medium] = {age(medium), age_at_of_all(medium)};
        for (const auto index : plan_reads(model, place_of_byte(model, from), files, {})) {
            plan.push_back(those[index]);
        }
        return plan.front();
    }
    Instant age_at_of_all(MediumId medium) const { return of(medium).front()->arrived_at(); }

    std::map<MediumId, Waiting> plans_;
    std::map<MediumId, std::pair<std::uint64_t, Instant>> plan_age_;
    std::map<std::uint8_t, std::pair<MediumId, int>> served_;
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
        std::ranges::stable_partition(
            own, [&](const IoMedium* medium) { return free_drive(medium->id) != nullptr; });
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

std::unique_ptr<DriveModelOf> make_model(std::string_view name, const IoMedia& media,
                                         const std::vector<IoDevice*>& drives) {
    if (name == "grouped_read") return std::make_unique<GroupedReadModel>(media, drives);
    if (name == "grouped_write") return std::make_unique<GroupedWriteModel>(media, drives);
    REQUIRE(name == "fifo");  // A new one needs its model here.
    return std::make_unique<DriveFifoModel>(media, drives);
}

class DriveStage {
public:
    DriveStage(const DriveAlgorithm& algorithm, IoType type, std::uint64_t seed)
        : random_(seed), type_(type), scheduler_(algorithm.make(drive_settings(), media_)) {
        for (std::uint32_t i = 0; i < kMedia; ++i) {
            media_.put({.id = MediumId{i},
                        .technology = "lto9",
                        .capacity_bytes = kTape,
                        .free_bytes = kTape - i * kFile});
        }
        for (std::uint8_t number = 1; number <= 3; ++number) {
            drives_.push_back(std::make_unique<IoDevice>(
                IoDevice::Drive{.number = number, .technology = "lto9"}));
            pointers_.push_back(drives_.back().get());
            media_.add_drive(*drives_.back());
            scheduler_->add_device(*drives_.back());
        }
        model_ = make_model(algorithm.name, media_, pointers_);
    }

    void push() {
        const bool any = type_ == IoType::kWrite && random_.below(3) > 0;
        // One is popular.
        const auto number = static_cast<std::uint32_t>(random_.below(2) * random_.below(kMedia));
        NumberedRequest& request = requests_.make(type_, {any ? kAnyMedium : MediumId{number}},
                                                  now_, random_.below(990) * kFile);
        request.own_parts[0].size_bytes = (1 + random_.below(3)) * kFile;
        request.family = IoFamily::kTape;
        if (type_ == IoType::kWrite) request.collection = random_.below(5);
        if (type_ == IoType::kRead && random_.below(4) == 0) {
            request.priority = IoPriority::kBackground;
        }
        scheduler_->push_request(request);
        model_->push(request);
    }
    NumberedRequest* peek() {
        auto* const peeked = static_cast<NumberedRequest*>(scheduler_->peek_request(now_));
        expected_ = model_->next(now_);
        CHECK(peeked == expected_.request);
        if (peeked == nullptr) return nullptr;
        CHECK(scheduler_->peek_request(now_) == peeked);
        if (random_.below(4) == 0) push();
        CHECK(scheduler_->peek_request(now_) == peeked);
        return peeked;
    }
    void dispatch() {
        NumberedRequest* const request = peek();
        if (request == nullptr) return;
        const auto pair = scheduler_->get_device_medium_pair(*request, now_);
        REQUIRE(pair.has_value());
        REQUIRE(pair->has_value());
        IoDevice& drive = *(*pair)->device;
        CHECK(&drive == expected_.drive);
        CHECK(request->parts[0].medium == expected_.medium);
        scheduler_->remove_request(*request);
        model_->gave(expected_);
        if (drive.medium() != expected_.medium) {
            drive.set_medium(expected_.medium);
            ++mounts_;
        }
        if (type_ == IoType::kWrite) {
            media_.wrote(expected_.medium, request->parts[0].size_bytes, request->collection);
        }
        drive.begin(type_);
        running_.push_back({&drive, request->parts[0].offset + request->parts[0].size_bytes});
        ++ended_;
    }
    void requeue() {
        if (NumberedRequest* const request = peek()) scheduler_->requeue(*request);
    }
    void remove() {
        if (model_->waiting.empty()) return;
        NumberedRequest* const request = model_->waiting[random_.below(model_->waiting.size())];
        scheduler_->remove_request(*request);
        model_->remove(*request);
        ++ended_;
    }
    void end_one() {
        if (running_.empty()) return;
        const std::size_t index = random_.below(running_.size());
        auto& [drive, position] = running_[index];
        drive->end(type_);
        drive->set_position(position);
        drive->set_idle_since(now_);
        running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(index));
    }
    void step() {
        const std::uint64_t what = random_.below(100);
        if (what < 34)
            push();
        else if (what < 58)
            dispatch();
        else if (what < 62)
            requeue();
        else if (what < 65)
            remove();
        else if (what < 92)
            end_one();
        else
            now_ += Duration(random_.below(100'000'000'000));
    }
    void finish() {
        for (int rounds = 0; !model_->waiting.empty(); ++rounds) {
            REQUIRE(rounds < 20'000);
            dispatch();
            end_one();
            now_ += 20s;
        }
        CHECK(scheduler_->peek_request(now_) == nullptr);
        CHECK(ended_ == requests_.count());
    }

private:
    core::Random random_;
    const IoType type_;
    Instant now_{1h};
    IoMedia media_;
    RequestMaker requests_;
    const std::unique_ptr<IoScheduler> scheduler_;
    std::vector<std::unique_ptr<IoDevice>> drives_;
    std::vector<IoDevice*> pointers_;
    std::unique_ptr<DriveModelOf> model_;
    Next expected_;
    std::vector<std::pair<IoDevice*, std::uint64_t>> running_;
    std::size_t ended_ = 0;
    int mounts_ = 0;
};

}  // namespace

TEST_CASE("io_sched drives: the order is the model's, and nothing is lost or doubled",
          "[io_sched]") {
    for (const DriveAlgorithm& algorithm : drive_algorithms()) {
        for (std::size_t type = 0; type < kIoTypeCount; ++type) {
            if (!algorithm.serves[type]) continue;
            for (std::uint64_t seed = 1; seed <= 40; ++seed) {
                CAPTURE(algorithm.name, kIoTypeNames[type], seed);
                DriveStage stage(algorithm, static_cast<IoType>(type), seed);
                for (int step = 0; step < 400; ++step) stage.step();
                stage.finish();
            }
        }
    }
}

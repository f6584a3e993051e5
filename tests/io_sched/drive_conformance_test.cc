// Goal: what every scheduler for drives keeps to, and that its order is the one it promises.
// Method: each row of the table, for each type it serves, gets the same drawn pushes, peeks,
// requeues, removals and times, on drives that take cartridges, fill up and empty. A model that
// looks through all that waits, without any index or cache, says what has to come next.

#include <memory>
#include <utility>
#include <vector>

#include "core/random.h"
#include "io_sched/drive_algorithms.h"
#include "io_sched/settings.h"
#include "tests/catch.h"
#include "tests/io_sched/drive_models.h"
#include "tests/io_sched/requests.h"

namespace drive_conformance_test {

using namespace fopd;
using namespace fopd::io_sched;
using namespace fopd::io_sched::testing;

namespace {

TapeSettings drive_settings(Duration max_wait) {
    TapeSettings settings;
    settings.grouped_read_mount_bytes = 6 * kFile;
    settings.grouped_read_mount_files = 5;
    settings.grouped_read_mount_age = 300s;
    settings.grouped_read_max_wait = max_wait;
    settings.grouped_read_stay_mounted = 20s;
    settings.grouped_write_max_wait = 600s;
    return settings;
}

class DriveStage {
public:
    DriveStage(const DriveAlgorithm& algorithm, IoType type, std::uint64_t seed)
        : random_(seed),
          type_(type),
          max_wait_(seed % 2 == 0 ? 1000s : 100s),
          urgencies_(seed % 3 == 0 ? 1 : 3),
          scheduler_(algorithm.make(drive_settings(max_wait_), media_)) {
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
        model_ = make_model(algorithm.name, media_, pointers_, max_wait_);
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
        // Some nodes know the two priorities only.
        if (type_ == IoType::kRead && urgencies_ > 1) {
            request.urgency = static_cast<std::uint8_t>(random_.below(urgencies_));
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
    std::size_t late_turns() const { return model_->late_turns; }

private:
    core::Random random_;
    const IoType type_;
    const Duration max_wait_;
    const std::uint64_t urgencies_;
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
            std::size_t turns = 0;
            for (std::uint64_t seed = 1; seed <= 40; ++seed) {
                CAPTURE(algorithm.name, kIoTypeNames[type], seed);
                DriveStage stage(algorithm, static_cast<IoType>(type), seed);
                for (int step = 0; step < 400; ++step) stage.step();
                stage.finish();
                turns += stage.late_turns();
            }
            // Only reads have priorities here.
            CHECK((turns > 0) == (static_cast<IoType>(type) == IoType::kRead));
        }
    }
}

}  // namespace drive_conformance_test

// Goal: a disk that is full of whatever can be emptied again, by deletes, truncates and punches
// that all end, and has then all the space that it had at first.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <vector>

#include "tests/catch.h"
#include "tests/reqh/store_stage.h"

using namespace fopd;
using namespace fopd::reqh;
using namespace fopd::reqh::testing;

namespace {

// No fop of a disk that serves takes longer, however full the disk is.
constexpr Duration kAnswerMax = 30s;
constexpr std::uint64_t kMiB = 1UL << 20;
constexpr std::uint64_t kFewSeeds = 1;
// Each seed fills and empties disks with tens of thousands of fops.
constexpr std::uint64_t kSwarmSeedsToOne = 50;
// What a volume of segments of 64 blocks needs.
constexpr std::uint64_t kSmallestDisk = (256 + 7 * 64) * std::uint64_t{objects::kBlock};

enum class Filling : std::uint8_t { kEmptyObjects, kTiny, kLarge, kFragmented };

struct Object {
    fop::Fid fid{};
    std::uint64_t size_bytes = 0;  // At most, once cuts were refused.
    bool has_holes = false;        // But for those that it was made with.
};

struct Plan {
    std::uint64_t seed = 1;
    fopd::testing::Replay::Seed whose_seed = fopd::testing::Replay::Seed::kOfTest;
    std::uint64_t disk_bytes = 16 * kMiB;
    Filling filling = Filling::kTiny;
    unsigned rounds = 2;
    bool kills = false;
    Duration replies_kept = 10s;
};

// Fills a disk and empties it, again and again.
class FullDisk {
public:
    explicit FullDisk(const Plan& plan)
        : plan_(plan),
          random_(plan.seed),
          stage_(
              {.disk_bytes = plan.disk_bytes,
               .seed = plan.seed,
               .upkeep = {.interval = 1s, .upload_timeout = 10s, .replies_kept = plan.replies_kept},
               .whose_seed = plan.whose_seed}) {}

    void run() {
        stage_.run_for(60s);
        const Use before = use();
        REQUIRE(before.free_bytes > 0);
        for (unsigned round = 0; round < plan_.rounds; ++round) {
            fill();
            REQUIRE(objects_.size() > 1);
            if (plan_.kills) kill();
            change_what_is_there();
            if (plan_.kills) kill();
            cut_what_is_there();
            if (plan_.kills) kill();
            remove_all();
            stage_.run_for(60s);
            REQUIRE(stage_.volume().serving());
            const Use after = use();
            const store::LogSpaceFigures log = stage_.volume().log_space();
            CAPTURE(log.segments, log.segments_free, log.segments_max);
            REQUIRE(after.objects == before.objects);
            REQUIRE(after.used_bytes == before.used_bytes);
            REQUIRE(after.free_bytes == before.free_bytes);
            REQUIRE(stage_.quota().whole().used().blocks == 0);
            REQUIRE(stage_.quota().whole().used().objects == 0);
            stage_.fops.clear();
        }
        REQUIRE(stage_.all_buffers_are_back());
    }

    // A log that is full says so once, is left alone, and takes more when something was removed and
    // the replies are forgotten.
    void fill_log_and_wait() {
        stage_.run_for(60s);
        // Cleaning may yet pack the last of it.
        for (int i = 0; i < kFillsMax && !stage_.volume().is_log_full(); ++i) {
            fill();
            stage_.run_for(60s);
        }
        REQUIRE(stage_.volume().is_log_full());
        REQUIRE(stage_.event_count("store.log_full") ==
                stage_.event_count("store.log_has_room") + 1);
        const std::uint64_t newest = stage_.volume().newest().seq;
        stage_.run_for(600s);
        REQUIRE(stage_.volume().newest().seq <= newest + kIdleMarks);
        REQUIRE_FALSE(create().has_value());

        const std::size_t half = objects_.size() / 2;
        objects_.erase(objects_.begin(), objects_.begin() + static_cast<std::ptrdiff_t>(half));
        remove_all();
        stage_.run_for(plan_.replies_kept + 60s);
        REQUIRE_FALSE(stage_.volume().is_log_full());
        for (std::size_t i = 0; i < half / 8; ++i) REQUIRE(create().has_value());
        REQUIRE(use().objects == half + half / 8);
    }

    // What is refused takes nothing of the log either.
    void fill_and_write_on() {
        stage_.run_for(60s);
        fill();
        stage_.run_for(60s);
        const std::uint64_t newest = stage_.volume().newest().seq;
        for (int i = 0; i < 200; ++i) {
            Object& object = any();
            REQUIRE_FALSE(write(object, {.offset = kMiB + object.size_bytes, .length = kMiB}));
        }
        REQUIRE(stage_.volume().newest().seq <= newest + kIdleMarks);
    }

    // Truncates that free nothing, of many clients, each of which may have a thousand replies
    // recorded.
    void fill_and_truncate_to_the_same_size() {
        stage_.run_for(60s);
        fill();
        const Object first = objects_.front();
        bool is_refused = false;
        for (unsigned client = 1; client <= kClients && !is_refused; ++client) {
            for (unsigned i = 0; i < kRepliesOfClient && !is_refused; ++i) {
                FopSpec spec = truncate(first.fid, first.size_bytes);
                spec.client.fill(static_cast<std::byte>(client));
                is_refused = !has_added(stage_.send(std::move(spec)));
            }
        }
        REQUIRE(is_refused);
        remove_all();
    }

    // A byte of each block of an object: each block becomes an extent of its own.
    void fill_and_punch_bytes() {
        stage_.run_for(60s);
        const auto fid = create();
        REQUIRE(fid.has_value());
        Object large{.fid = *fid};
        for (std::uint64_t block = 0; block < kPunchedBlocks; block += 32) {
            REQUIRE(
                write(large, {.offset = block * objects::kBlock, .length = 32 * objects::kBlock}));
        }
        fill();
        objects_.push_back(large);
        bool is_refused = false;
        for (std::uint64_t block = 0; block < kPunchedBlocks && !is_refused; ++block) {
            const fop::Range byte{.offset = block * objects::kBlock + 1, .length = 1};
            is_refused = !has_added(stage_.send(punch(*fid, byte)));
        }
        REQUIRE(is_refused);
        remove_all();
    }

private:
    static constexpr unsigned kClients = 40;
    static constexpr unsigned kRepliesOfClient = 1024;
    static constexpr std::uint64_t kPunchedBlocks = 768;
    static constexpr std::uint64_t kIdleMarks = 2;
    static constexpr int kFillsMax = 5;

    struct Use {
        std::uint64_t free_bytes = 0;
        std::uint64_t used_bytes = 0;
        std::uint64_t objects = 0;
    };
    struct Cut {
        FakeFop* fop = nullptr;
        bool frees = false;  // More than it takes, for sure.
    };
    // As many blocks hold some of a fragmented object for sure, and two are more than the edges.
    static constexpr std::uint64_t kFreeingBytes = 8 * objects::kBlock;

    Use use() {
        const FakeFop& statfs = stage_.call({.type = type_of("statfs"), .body = fop::Statfs{}});
        const auto& reply = std::get<fop::StatfsReply>(statfs.answer->body);
        return {.free_bytes = reply.free_bytes,
                .used_bytes = reply.used_bytes,
                .objects = reply.objects};
    }

    // What is not answered in time is a violation, not a test that hangs.
    fop::Status wait_for(const FakeFop& fop) {
        const Instant until = after(stage_.world.now(), kAnswerMax);
        while (!fop.answer) {
            if (stage_.world.now() >= until) FAIL("a fop was not answered in time");
            REQUIRE(stage_.world.step());
        }
        return fop.status();
    }

    // Whether it was done; of what adds it may be refused for want of space, and for nothing else.
    bool has_added(const FakeFop& fop) {
        const fop::Status status = wait_for(fop);
        INFO(fop.answer->words);
        REQUIRE((status == fop::Status::kDone || status == fop::Status::kNoSpace));
        return status == fop::Status::kDone;
    }

    void kill() {
        stage_.lose_power();
        stage_.fops.clear();
        stage_.start();
    }

    std::optional<fop::Fid> create() {
        FakeFop& made = stage_.send(
            {.type = type_of("create"), .body = fop::Create{.slot = kFirstSlot, .mode = 0600}});
        if (!has_added(made)) return std::nullopt;
        return std::get<fop::CreateReply>(made.answer->body).fid;
    }

    bool write(Object& object, fop::Range range) {
        const WriteSpec write(object.fid, {range}, pattern(range.length, random_.next()));
        if (!has_added(stage_.send(write.spec(WriteSpec::Way::kMemory)))) return false;
        object.size_bytes = std::max(object.size_bytes, range.end());
        return true;
    }

    bool fill_object(Object& object) {
        switch (plan_.filling) {
            case Filling::kEmptyObjects: return true;
            case Filling::kTiny:
                return write(object, {.offset = 0, .length = 1 + random_.below(5000)});
            case Filling::kLarge:
                return write(object,
                             {.offset = 0, .length = objects::kBlock * (1 + random_.below(64))});
            case Filling::kFragmented: break;
        }
        for (std::uint64_t block = 0; block < 16; ++block) {
            const std::uint64_t at = (block % 2 == 0 ? block : 31 - block) * objects::kBlock;
            if (!write(object, {.offset = at, .length = objects::kBlock})) return false;
        }
        return true;
    }

    void fill() {
        for (;;) {
            const auto fid = create();
            if (!fid) return;
            objects_.push_back({.fid = *fid});
            if (fill_object(objects_.back())) continue;
            objects_.back().has_holes = true;
            break;
        }
        // What has no space for bytes may have it for names.
        while (const auto fid = create()) objects_.push_back({.fid = *fid});
    }

    Object& any() { return objects_[random_.below(objects_.size())]; }

    // Overwrites and appends, of which most are refused.
    void change_what_is_there() {
        for (int i = 0; i < 200; ++i) {
            Object& object = any();
            const std::uint64_t length = 1 + random_.below(6000);
            if (random_.below(2) == 0) {
                write(object, {.offset = random_.below(object.size_bytes + 1), .length = length});
                continue;
            }
            const AppendSpec append(object.fid, pattern(length, random_.next()));
            const FakeFop& appended = stage_.send(append.spec(WriteSpec::Way::kMemory));
            if (has_added(appended)) object.size_bytes += length;
        }
    }

    // In the midst of blocks, of several objects at once. Those that free more than they take are
    // done.
    void cut_what_is_there() {
        for (int i = 0; i < 40; ++i) {
            std::vector<Cut> under_way;
            for (int j = 0; j < 8; ++j) under_way.push_back(cut(any()));
            for (const Cut& each : under_way) {
                const bool is_done = has_added(*each.fop);
                if (each.frees) REQUIRE(is_done);
                if (each.frees) ++freeing_cuts_;
            }
        }
    }

    Cut cut(Object& object) {
        const std::uint64_t size = object.size_bytes;
        const std::uint64_t from = random_.below(size + 1);
        if (random_.below(2) == 0) {
            const bool frees = !object.has_holes && size - from >= kFreeingBytes;
            object.size_bytes = from;
            return {&stage_.send(truncate(object.fid, from)), frees};
        }
        const std::uint64_t length = 1 + random_.below(2 * kFreeingBytes);
        const std::uint64_t cut_bytes = std::min(length, size - from);
        const bool frees = !object.has_holes && cut_bytes >= kFreeingBytes;
        object.has_holes = true;
        return {&stage_.send(punch(object.fid, {.offset = from, .length = length})), frees};
    }

    void remove_all() {
        std::uint64_t kill_at = plan_.kills ? random_.below(objects_.size()) : objects_.size();
        for (std::size_t at = 0; at < objects_.size();) {
            std::vector<FakeFop*> under_way;
            for (; under_way.size() < 8 && at < objects_.size(); ++at) {
                under_way.push_back(&stage_.send(
                    {.type = type_of("delete"), .body = fop::Delete{.fid = objects_[at].fid}}));
            }
            if (at > kill_at) {
                kill_at = objects_.size();
                at -= under_way.size();
                stage_.run_for(random_.below(5) * 1ms);
                was_killed_ = true;
                kill();
                continue;
            }
            for (const FakeFop* const each : under_way) {
                const fop::Status status = wait_for(*each);
                INFO(each->answer->words);
                if (was_killed_ && status == fop::Status::kNotFound) continue;
                REQUIRE(status == fop::Status::kDone);
            }
        }
        objects_.clear();
    }

    const Plan plan_;
    core::Random random_;
    StoreStage stage_;
    std::vector<Object> objects_;
    std::uint64_t freeing_cuts_ = 0;
    bool was_killed_ = false;
};

}  // namespace

TEST_CASE("reqh full disk: the smallest one can be emptied, whatever it is full of", "[reqh]") {
    const auto filling = GENERATE(Filling::kEmptyObjects, Filling::kLarge, Filling::kFragmented);
    CAPTURE(filling);
    FullDisk(Plan{.disk_bytes = kSmallestDisk, .filling = filling, .rounds = 1}).run();
}

TEST_CASE("reqh full disk: a log that is full says so, waits, and goes on when it can", "[reqh]") {
    FullDisk(
        Plan{.disk_bytes = kSmallestDisk, .filling = Filling::kEmptyObjects, .replies_kept = 1500s})
        .fill_log_and_wait();
}

TEST_CASE("reqh full disk: writes that find no space take none of its log", "[reqh]") {
    FullDisk(Plan{.disk_bytes = kSmallestDisk, .filling = Filling::kLarge}).fill_and_write_on();
}

TEST_CASE("reqh full disk: truncates that free nothing leave room for deletes", "[reqh]") {
    FullDisk(Plan{.disk_bytes = kSmallestDisk, .filling = Filling::kTiny, .replies_kept = 1500s})
        .fill_and_truncate_to_the_same_size();
}

TEST_CASE("reqh full disk: punches of single bytes leave room for deletes", "[reqh]") {
    FullDisk(Plan{.disk_bytes = kSmallestDisk + 1024 * std::uint64_t{objects::kBlock},
                  .filling = Filling::kEmptyObjects,
                  .replies_kept = 1500s})
        .fill_and_punch_bytes();
}

// FOPD_SWARM_SEEDS sets how many seeds, a fiftieth of them; FOPD_SEED runs one.
TEST_CASE("reqh full disk: one of any size can be emptied, with kills in between",
          "[reqh][swarm]") {
    const char* const one = std::getenv("FOPD_SEED");
    const char* const many = std::getenv("FOPD_SWARM_SEEDS");
    const std::uint64_t first = one != nullptr ? std::strtoull(one, nullptr, 10) : 1;
    std::uint64_t count = kFewSeeds;
    if (many != nullptr) count = 1 + std::strtoull(many, nullptr, 10) / kSwarmSeedsToOne;
    if (one != nullptr) count = 1;
    for (std::uint64_t seed = first; seed < first + count; ++seed) {
        CAPTURE(seed);
        core::Random random(seed);
        const Plan plan{.seed = seed,
                        .whose_seed = fopd::testing::Replay::Seed::kOfSwarm,
                        .disk_bytes = kSmallestDisk + random.below(12) * 64 * objects::kBlock,
                        .filling = static_cast<Filling>(random.below(4)),
                        .rounds = 2,
                        .kills = random.below(2) == 0};
        FullDisk(plan).run();
    }
}

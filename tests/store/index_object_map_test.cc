// Goal: the object map is, block by block, what was written, and says truly which blocks of the
// disk become free; also after a crash, when what the index had not yet is done again, and while a
// checkpoint is under way. Method: random operations against a model of single blocks.
#include <set>
#include <tuple>

#include "core/random.h"
#include "store/object_map.h"
#include "tests/store/index_stage.h"

using namespace fopd;
using namespace fopd::store;
using namespace fopd::store::testing;

namespace {

struct Block {
    std::uint64_t block;
    std::uint32_t checksum;
    friend bool operator==(const Block&, const Block&) = default;
};
using Blocks = std::map<std::uint64_t, Block>;

// An operation as a log has it.
struct Operation {
    enum class Kind { kInsert, kPunch, kClear, kRemove } kind;
    Fid fid{};
    BlockRange range{};
    std::uint64_t block = 0;
    std::vector<std::uint32_t> checksums{};
};

constexpr std::uint64_t kObjectBlocks = 1200;

Fid fid_of(std::uint64_t number) {
    return {.high = number / 2, .low = number};
}

Task<void> checkpoint_for(LayeredIndex* index, std::uint64_t applied, int* running) {
    const auto done = co_await index->checkpoint(applied);
    static_cast<void>(done);  // What it did not do is done again after the crash.
    --*running;
}

class Collector final : public MapVisitor {
public:
    Result<void> extent(const StoredExtent& extent) override {
        std::array<std::uint32_t, kExtentBlocksMax> checksums;
        const auto there = std::span(checksums).first(extent.count);
        extent.copy_checksums(0, there);
        for (std::uint32_t i = 0; i < extent.count; ++i) {
            const auto at = extent.first + i;
            REQUIRE(blocks[extent.fid].emplace(at, Block{extent.block + i, there[i]}).second);
        }
        ++extent_count;
        return {};
    }

    Result<void> cleared(const Cleared& cleared) override {
        auto& of_object = blocks[cleared.fid];
        of_object.erase(of_object.lower_bound(cleared.first), of_object.lower_bound(cleared.end));
        return {};
    }

    std::map<Fid, Blocks> blocks;
    std::uint64_t extent_count = 0;
};

class MapStage {
public:
    explicit MapStage(std::uint64_t seed)
        : stage_(seed % 4 == 0 ? IndexKind::kLmdb : IndexKind::kMap, seed), random_(seed) {
        start();
    }
    // A checkpoint may be under way.
    ~MapStage() { stage_.reactor().drop_coroutines(); }
    MapStage(const MapStage&) = delete;
    MapStage& operator=(const MapStage&) = delete;

    void run() {
        for (int step = 0; step < 700; ++step) {
            do_something();
            if (random_.chance_ppm(200'000)) {
                check_range(fid_of(random_.below(6)), random_range(100));
            }
            if (random_.chance_ppm(50'000)) stage_.world().run_for(5ms);
            if (running_ == 0 && random_.chance_ppm(20'000)) {
                ++running_;
                stage_.reactor().spawn(gate_,
                                       checkpoint_for(index_.get(), operations_.size(), &running_));
            }
            if (random_.chance_ppm(8'000)) crash();
        }
        check_all();
        sweep_all();
        check_all();
    }

private:
    void start() {
        index_ = std::make_unique<LayeredIndex>(stage_.index());
        map_ = std::make_unique<ObjectMap>(stage_.reactor(), *index_);
        for (auto number = stage_.index().applied(); number < operations_.size(); ++number) {
            carry_out(operations_[number]);
        }
        // What is swept counts no more: its blocks may be another's by now.
        used_.clear();
        sweep_all();
        for (const auto& [fid, blocks] : collect().blocks) {
            for (const auto& [at, block] : blocks) REQUIRE(used_.insert(block.block).second);
        }
    }

    void crash() {
        stage_.reactor().drop_coroutines();
        running_ = 0;
        map_.reset();
        index_.reset();
        stage_.close();
        REQUIRE(stage_.open().has_value());
        start();
        check_all();
    }

    BlockRange random_range(std::uint64_t count_max) {
        const auto count = random_.below(count_max) + 1;
        return {.first = random_.below(kObjectBlocks - count + 1), .count = count};
    }

    void do_something() {
        Operation operation{.kind = Operation::Kind::kInsert, .fid = fid_of(random_.below(6))};
        while (removed_.contains(operation.fid)) operation.fid.high += 100;
        const auto what = random_.below(100);
        if (what < 4) {
            operation.kind = Operation::Kind::kRemove;
        } else if (what < 20) {
            operation.kind = what < 12 ? Operation::Kind::kPunch : Operation::Kind::kClear;
            operation.range = random_range(400);
        } else {
            // Sometimes it goes on where the last one ended, as a stream does.
            operation.range = random_range(random_.chance_ppm(500'000) ? 4 : kExtentBlocksMax);
            const auto end = last_range_.end();
            if (random_.chance_ppm(500'000) && end + 300 < kObjectBlocks) {
                operation.range.first = end;
                operation.fid = removed_.contains(last_fid_) ? operation.fid : last_fid_;
            }
            operation.block = next_block_;
            for (std::uint64_t i = 0; i < operation.range.count; ++i) {
                operation.checksums.push_back(static_cast<std::uint32_t>(random_.next()));
            }
            next_block_ += operation.range.count + (random_.chance_ppm(200'000) ? 1 : 0);
            last_range_ = operation.range;
            last_fid_ = operation.fid;
            for (auto block = operation.block; block < operation.block + operation.range.count;
                 ++block) {
                used_.insert(block);
            }
        }
        operations_.push_back(operation);
        const auto before = static_cast<std::int64_t>(model_[operation.fid].size());
        change_model(operation);
        free_all(carry_out(operation));
        if (operation.kind == Operation::Kind::kInsert) {
            const auto now = static_cast<std::int64_t>(model_[operation.fid].size());
            REQUIRE(static_cast<std::int64_t>(more_) == now - before);
        }
        check_count(operation.fid);
        if (random_.chance_ppm(100'000)) free_all(sweep_some());
    }

    void change_model(const Operation& operation) {
        auto& blocks = model_[operation.fid];
        if (operation.kind == Operation::Kind::kRemove) {
            removed_.insert(operation.fid);
            model_.erase(operation.fid);
            return;
        }
        for (std::uint64_t i = 0; i < operation.range.count; ++i) {
            const auto at = operation.range.first + i;
            blocks.erase(at);
            if (operation.kind == Operation::Kind::kInsert) {
                blocks[at] = {operation.block + i, operation.checksums[i]};
            }
        }
    }

    std::vector<DiskRange> carry_out(const Operation& operation) {
        std::vector<DiskRange> freed;
        switch (operation.kind) {
            case Operation::Kind::kInsert: {
                const auto more = map_->insert(operation.fid,
                                               {.first = operation.range.first,
                                                .block = operation.block,
                                                .checksums = operation.checksums},
                                               freed);
                REQUIRE(more.has_value());
                more_ = *more;
                break;
            }
            case Operation::Kind::kClear:
                REQUIRE(map_->clear(operation.fid, operation.range).has_value());
                break;
            case Operation::Kind::kPunch:
                for (BlockRange left = operation.range;;) {
                    const auto steps = static_cast<std::uint32_t>(random_.below(20) + 1);
                    const auto punched = map_->punch(operation.fid, left, steps, freed);
                    REQUIRE(punched.has_value());
                    if (punched->finished) break;
                    REQUIRE(punched->next >= left.first);
                    left = {.first = punched->next, .count = left.end() - punched->next};
                }
                break;
            case Operation::Kind::kRemove: map_->remove(operation.fid); break;
        }
        return freed;
    }

    std::vector<DiskRange> sweep_some() {
        std::vector<DiskRange> freed;
        const auto swept = map_->sweep(static_cast<std::uint32_t>(random_.below(8) + 1), freed);
        REQUIRE(swept.has_value());
        if (*swept && (*swept)->range.count > 0) {
            operations_.push_back(
                {.kind = Operation::Kind::kPunch, .fid = (*swept)->fid, .range = (*swept)->range});
        }
        return freed;
    }

    void check_count(Fid fid) {
        if (removed_.contains(fid)) return;
        const auto range = random_range(kObjectBlocks);
        std::uint64_t blocks = 0;
        for (auto rest = range;;) {
            const auto steps = static_cast<std::uint32_t>(random_.below(20) + 1);
            const auto counted = map_->count(fid, rest, steps);
            REQUIRE(counted.has_value());
            blocks += counted->blocks;
            if (counted->finished) break;
            REQUIRE(counted->next > rest.first);
            rest = {.first = counted->next, .count = range.end() - counted->next};
        }
        const auto& model = model_[fid];
        const auto expected =
            std::distance(model.lower_bound(range.first), model.lower_bound(range.end()));
        REQUIRE(static_cast<std::int64_t>(blocks) == expected);
    }

    void sweep_all() {
        for (;;) {
            std::vector<DiskRange> freed;
            const auto swept = map_->sweep(100, freed);
            REQUIRE(swept.has_value());
            if (!*swept) return;
            if (!used_.empty()) free_all(freed);
        }
    }

    // Only what was in use becomes free, and once.
    void free_all(const std::vector<DiskRange>& freed) {
        for (const auto& range : freed) {
            for (auto block = range.block; block < range.block + range.count; ++block) {
                REQUIRE(used_.erase(block) == 1);
            }
        }
    }

    void check_range(Fid fid, BlockRange range) {
        Blocks found;
        auto extents = map_->extents(fid, range);
        auto end = range.first;
        for (;;) {
            const auto extent = extents.next();
            REQUIRE(extent.has_value());
            if (!*extent) break;
            REQUIRE((*extent)->first >= end);
            for (std::uint32_t i = 0; i < (*extent)->count(); ++i) {
                found[(*extent)->first + i] = {(*extent)->block + i, (*extent)->checksums[i]};
            }
            end = (*extent)->end();
            REQUIRE(end <= range.end());
        }
        map_->release();
        Blocks expected;
        if (model_.contains(fid)) {
            const auto& blocks = model_.at(fid);
            expected.insert(blocks.lower_bound(range.first), blocks.lower_bound(range.end()));
        }
        if (!removed_.contains(fid)) REQUIRE(found == expected);
    }

    Collector collect() {
        Collector collector;
        REQUIRE(stage_.run(map_->for_each(KeyKind::kExtent, &collector)).has_value());
        return collector;
    }

    // Everything that is used is an extent's, and every extent is used.
    void check_all() {
        Collector collector = collect();
        auto& found = collector.blocks;
        std::set<std::uint64_t> used;
        for (const auto& [fid, blocks] : found) {
            for (const auto& [at, block] : blocks) REQUIRE(used.insert(block.block).second);
        }
        REQUIRE(used == used_);
        // What is cleared has its blocks, and is a hole.
        REQUIRE(stage_.run(map_->for_each(KeyKind::kCleared, &collector)).has_value());
        for (const auto fid : removed_) found.erase(fid);
        std::erase_if(found, [](const auto& object) { return object.second.empty(); });
        std::erase_if(model_, [](const auto& object) { return object.second.empty(); });
        REQUIRE(found == model_);
    }

    IndexStage stage_;
    core::Random random_;
    core::Gate gate_;
    std::unique_ptr<LayeredIndex> index_;
    std::unique_ptr<ObjectMap> map_;
    int running_ = 0;
    std::vector<Operation> operations_;
    std::map<Fid, Blocks> model_;
    std::set<Fid> removed_;
    std::set<std::uint64_t> used_;
    std::uint64_t next_block_ = 1000;
    std::uint64_t more_ = 0;  // By the last insert.
    BlockRange last_range_{};
    Fid last_fid_{};
};

std::uint64_t extent_count(IndexStage& stage, ObjectMap& map) {
    Collector collector;
    REQUIRE(stage.run(map.for_each(KeyKind::kExtent, &collector)).has_value());
    return collector.extent_count;
}

Object example_object() {
    return {.size_bytes = 5000,
            .version = 3,
            .created = {11},
            .changed = {12},
            .pool = 1,
            .mode = 0640,
            .owner = "ann",
            .group = "staff",
            .name = "a name",
            .name_version = 2};
}

}  // namespace

TEST_CASE("store object map: it is what was written, block by block", "[store][swarm]") {
    for (std::uint64_t seed = 1; seed <= 16; ++seed) {
        INFO("seed " << seed);
        MapStage(seed).run();
    }
}

TEST_CASE("store object map: a stream of blocks becomes long extents", "[store]") {
    IndexStage stage(IndexKind::kMap);
    LayeredIndex index(stage.index());
    ObjectMap map(stage.reactor(), index);
    std::vector<DiskRange> freed;
    const std::uint32_t checksum = 1;

    for (std::uint64_t i = 0; i < 2UL * kExtentBlocksMax; ++i) {
        REQUIRE(
            map.insert(fid_of(1), {.first = i, .block = 50 + i, .checksums = {&checksum, 1}}, freed)
                .has_value());
    }

    REQUIRE(extent_count(stage, map) == 2);
    REQUIRE(freed.empty());
}

TEST_CASE("store object map: inserting an existing extent changes nothing", "[store]") {
    IndexStage stage(IndexKind::kMap);
    LayeredIndex index(stage.index());
    ObjectMap map(stage.reactor(), index);
    std::vector<DiskRange> freed;
    const std::array<std::uint32_t, 8> checksums{1, 2, 3, 4, 5, 6, 7, 8};
    REQUIRE(map.insert(fid_of(1), {.first = 0, .block = 50, .checksums = checksums}, freed)
                .has_value());

    for (std::uint64_t i = 0; i < 8; i += 2) {
        const auto two = std::span(checksums).subspan(i, 2);
        REQUIRE(map.insert(fid_of(1), {.first = i, .block = 50 + i, .checksums = two}, freed)
                    .has_value());
    }

    REQUIRE(extent_count(stage, map) == 1);
    REQUIRE(freed.empty());
}

TEST_CASE("store object map: blocks at the end of the largest object", "[store]") {
    IndexStage stage(IndexKind::kMap);
    LayeredIndex index(stage.index());
    ObjectMap map(stage.reactor(), index);
    std::vector<DiskRange> freed;
    const std::array<std::uint32_t, 2> checksums{1, 2};
    const auto first = kObjectBlocksMax - 2;
    REQUIRE(map.insert(fid_of(1), {.first = first, .block = 50, .checksums = checksums}, freed)
                .has_value());

    const auto punched =
        map.punch(fid_of(1), {.first = first + 1, .count = kObjectBlocksMax}, 10, freed);

    REQUIRE(punched.has_value());
    REQUIRE(punched->finished);
    REQUIRE(freed == std::vector{DiskRange{.block = 51, .count = 1}});
    auto extents = map.extents(fid_of(1), {.first = first, .count = 2});
    const auto extent = extents.next();
    REQUIRE(extent.has_value());
    REQUIRE((*extent)->count() == 1);
    REQUIRE(!extents.next()->has_value());
    map.release();
}

TEST_CASE("store object map: a cleared range is a hole at once, and is freed in parts", "[store]") {
    IndexStage stage(IndexKind::kLmdb);
    LayeredIndex index(stage.index());
    ObjectMap map(stage.reactor(), index);
    std::vector<DiskRange> freed;
    const std::uint32_t checksum = 1;
    constexpr std::uint64_t kExtents = 20'000;
    for (std::uint64_t i = 0; i < kExtents; ++i) {
        REQUIRE(map.insert(fid_of(1),
                           {.first = 2 * i, .block = 50 + i, .checksums = {&checksum, 1}}, freed)
                    .has_value());
    }
    REQUIRE(stage.run(index.checkpoint(1)).has_value());

    REQUIRE(map.clear(fid_of(1), {.first = 10, .count = kObjectBlocksMax}).has_value());
    // As much as one range takes, however many extents it has.
    REQUIRE(index.change_count() == 1);
    REQUIRE(freed.empty());
    const auto left = map.count(fid_of(1), {.first = 0, .count = kObjectBlocksMax}, 100);
    REQUIRE(left->blocks == 5);
    // What is written into it is there, and what was there goes.
    const auto more =
        map.insert(fid_of(1), {.first = 10'000, .block = 9, .checksums = {&checksum, 1}}, freed);
    REQUIRE(more == 1);
    REQUIRE(freed == std::vector{DiskRange{.block = 50 + 5'000, .count = 1}});
    auto extents = map.extents(fid_of(1), {.first = 9'000, .count = 2'000});
    REQUIRE(extents.next()->value().block == 9);
    REQUIRE(!extents.next()->has_value());

    std::size_t steps = 0;
    for (bool more_to_do = true; more_to_do; ++steps) {
        const auto before = freed.size();
        const auto swept = map.sweep(100, freed);
        REQUIRE(swept.has_value());
        REQUIRE(freed.size() - before <= 100);
        more_to_do = swept->has_value();
    }

    REQUIRE(steps < kExtents / 50);
    REQUIRE(freed.size() == kExtents - 5);
    REQUIRE(extent_count(stage, map) == 6);
}

TEST_CASE("store object map: cleared ranges that meet are one", "[store]") {
    IndexStage stage(IndexKind::kMap);
    LayeredIndex index(stage.index());
    ObjectMap map(stage.reactor(), index);
    for (const std::uint64_t first : {10U, 30U, 50U}) {
        REQUIRE(map.clear(fid_of(1), {.first = first, .count = 10}).has_value());
    }

    REQUIRE(map.clear(fid_of(1), {.first = 20, .count = 25}).has_value());

    std::vector<DiskRange> freed;
    const auto first = map.sweep(1, freed);
    REQUIRE((*first)->range == BlockRange{.first = 10, .count = 35});
    const auto second = map.sweep(1, freed);
    REQUIRE((*second)->range == BlockRange{.first = 50, .count = 10});
    REQUIRE(!map.sweep(1, freed)->has_value());
}

TEST_CASE("store object map: an object is found until it is removed", "[store]") {
    IndexStage stage(IndexKind::kMap);
    LayeredIndex index(stage.index());
    ObjectMap map(stage.reactor(), index);
    REQUIRE(!map.find(fid_of(1))->has_value());

    map.put(fid_of(1), example_object());
    const auto found = map.find(fid_of(1));
    REQUIRE(found->has_value());
    REQUIRE((*found)->name == "a name");
    REQUIRE((*found)->version == 3);
    map.remove(fid_of(1));

    REQUIRE(!map.find(fid_of(1))->has_value());
    map.release();
}

TEST_CASE("store object map: an upload becomes an object, with its extents", "[store]") {
    IndexStage stage(IndexKind::kMap);
    LayeredIndex index(stage.index());
    ObjectMap map(stage.reactor(), index);
    std::vector<DiskRange> freed;
    const std::uint32_t checksum = 1;
    map.put_upload(fid_of(1), {.object = example_object(), .write_count = 1});
    REQUIRE(map.insert(fid_of(1), {.first = 0, .block = 9, .checksums = {&checksum, 1}}, freed)
                .has_value());
    REQUIRE(!map.find(fid_of(1))->has_value());
    REQUIRE(map.find_upload(fid_of(1))->value().write_count == 1);

    map.commit_upload(fid_of(1), example_object());

    REQUIRE(map.find(fid_of(1))->has_value());
    REQUIRE(!map.find_upload(fid_of(1))->has_value());
    REQUIRE(map.extents(fid_of(1), {.first = 0, .count = 1}).next()->has_value());
    map.release();
}

TEST_CASE("store object map: a reply is there until it is forgotten", "[store]") {
    IndexStage stage(IndexKind::kMap);
    LayeredIndex index(stage.index());
    ObjectMap map(stage.reactor(), index);
    const ReplyKey key{.client = {}, .request_number = 7};
    REQUIRE(
        map.put_reply({.key = key, .made = Duration(5), .reply = bytes_of("done")}).has_value());
    REQUIRE(text_of(map.find_reply(key)->value().reply) == "done");
    REQUIRE(map.find_reply(key)->value().key == key);
    REQUIRE(!map.find_reply({.client = {}, .request_number = 8})->has_value());

    map.forget_reply(key);

    REQUIRE(!map.find_reply(key)->has_value());
    map.release();
}

TEST_CASE("store object map: of the replies in a place that to the latest request stays",
          "[store]") {
    IndexStage stage(IndexKind::kMap);
    LayeredIndex index(stage.index());
    ObjectMap map(stage.reactor(), index);
    const ReplyKey second{.client = {}, .request_number = 0x0203'0405'0607'0807};
    for (const std::uint64_t number :
         {std::uint64_t{7}, second.request_number, second.request_number - 1024}) {
        const ReplyKey key{.client = {}, .request_number = number};
        REQUIRE(map.put_reply({.key = key, .reply = bytes_of("done")}).has_value());
    }
    REQUIRE(map.find_reply({.client = {}, .request_number = 7})->value().key == second);
    map.release();
}

TEST_CASE("store object map: what cannot be read is an error, and changes nothing", "[store]") {
    IndexStage stage(IndexKind::kMap);
    LayeredIndex index(stage.index());
    ObjectMap map(stage.reactor(), index);
    const auto key = Key::extent(fid_of(1), 3);
    index.put(key, bytes_of("short"));
    const auto changed = index.change_count();
    std::vector<DiskRange> freed;
    const std::array<std::uint32_t, 2> checksums{1, 2};

    const auto inserted =
        map.insert(fid_of(1), {.first = 2, .block = 9, .checksums = checksums}, freed);
    const auto punched = map.punch(fid_of(1), {.first = 0, .count = 10}, 5, freed);
    const auto read = map.extents(fid_of(1), {.first = 0, .count = 10}).next();

    REQUIRE(inserted.error().code == Errc::kCorrupt);
    REQUIRE(punched.error().code == Errc::kCorrupt);
    REQUIRE(read.error().code == Errc::kCorrupt);
    REQUIRE(freed.empty());
    REQUIRE(index.change_count() == changed);
}

TEST_CASE("store object map: an extent of one block takes less than 100 bytes", "[store]") {
    IndexStage stage(IndexKind::kLmdb);
    LayeredIndex index(stage.index());
    ObjectMap map(stage.reactor(), index);
    core::Random random(1);
    std::vector<std::uint64_t> numbers(60'000);
    for (std::uint64_t i = 0; i < numbers.size(); ++i) {
        numbers[i] = i;
        std::swap(numbers[i], numbers[random.below(i + 1)]);
    }
    std::vector<DiskRange> freed;
    for (std::uint64_t i = 0; i < numbers.size(); ++i) {
        const auto checksum = static_cast<std::uint32_t>(random.next());
        const Extent extent{.first = numbers[i], .block = 2 * i, .checksums = {&checksum, 1}};
        REQUIRE(map.insert(fid_of(1), extent, freed).has_value());
        if (i % 8'000 == 0) REQUIRE(stage.run(index.checkpoint(i + 1)).has_value());
    }
    REQUIRE(stage.run(index.checkpoint(numbers.size() + 1)).has_value());

    const auto figures = stage.index().figures();

    REQUIRE(figures.entry_count == numbers.size());
    REQUIRE(figures.size_bytes < 100 * figures.entry_count);
}

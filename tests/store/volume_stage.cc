#include "tests/store/volume_stage.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/crc32c.h"

namespace fopd::store::testing {

namespace {

constexpr std::uint64_t kStepsUnpoisoned = 64;
constexpr std::uint64_t kOverlayBytes = 512UL << 10;
constexpr SweepOptions kSlowSweep{.extents_a_turn = 2, .pause = 1ms};
// What one change may take of that.
constexpr std::uint64_t kReservedBytesMax = 8UL << 10;

// Each version of the records has it that an object's mode is the version.
Result<void> raise_version(Bytes records, RecordWriter& into) {
    RecordReader reader(records);
    for (;;) {
        const auto record = reader.next();
        if (!record) return std::unexpected(record.error());
        if (!record->has_value()) return {};
        const bool is_object = (*record)->kind == RecordKind::kPut &&
                               (*record)->key.front() == static_cast<std::byte>(KeyKind::kObject);
        if (!is_object) {
            into.copy(reader.bytes());
            continue;
        }
        auto object = read_object((*record)->value);
        if (!object) return std::unexpected(object.error());
        ++object->mode;
        ValueBuffer buffer;
        into.put((*record)->key, write_object(buffer, *object));
    }
}

Schema schema_of(std::uint32_t version) {
    static constexpr std::array<SchemaStep, 8> kSteps{
        &raise_version, &raise_version, &raise_version, &raise_version,
        &raise_version, &raise_version, &raise_version, &raise_version};
    return {.version = version, .steps = std::span(kSteps).first(version - 1)};
}

VolumeOptions small_volume(const Plan& plan, std::uint32_t version) {
    VolumeOptions options{.slot = 3,
                          .schema = schema_of(version),
                          .segment_blocks = kSegmentBlocks,
                          .overlay_bytes = kOverlayBytes,
                          .flush_interval = 3ms,
                          // Where nobody gathers, more entries are on their way at once.
                          .gather_time = plan.seed % 2 == 0 ? Duration{0} : 1ms,
                          .checkpoint_interval = 10ms,
                          .zeros_ahead_bytes = plan.discard ? 1UL << 20 : 64UL << 20,
                          .discard = plan.discard,
                          .discard_interval = 1ms,
                          .sweep = plan.in_steps ? kSlowSweep : SweepOptions{}};
    options.disk_id.fill(std::byte{0x7e});
    return options;
}

Object object_of(const ObjectState& state, std::uint32_t version) {
    return {.size_bytes = state.size_bytes,
            .version = state.version + state.attribute_changes,
            .mode = static_cast<std::uint16_t>(version),
            .attribute_changes = state.attribute_changes,
            .owner = "alice",
            .group = "users"};
}

}  // namespace

// A block begins with its stamp; the other bytes depend on object, number and stamp.
void fill(std::span<std::byte> block, Fid fid, std::uint64_t number, std::uint64_t stamp) {
    core::Random random(core::mix(core::mix(fid.low, number), stamp));
    std::memcpy(block.data(), &stamp, sizeof stamp);
    for (std::size_t at = 8; at < block.size(); at += 8) {
        const std::uint64_t word = random.next();
        std::memcpy(block.data() + at, &word, sizeof word);
    }
}

void put_object(RecordWriter& records, Fid fid, const ObjectState& state, std::uint32_t version,
                bool is_released) {
    ValueBuffer buffer;
    Object object = object_of(state, version);
    object.is_released = is_released;
    if (is_released) object.released_blocks = state.stamps.size();
    records.put(Key::object(fid), write_object(buffer, object));
}

// The index as somebody would see it who left something out.
class Machine::MutatedIndex final : public Index {
public:
    MutatedIndex(std::unique_ptr<Index> index, Mutation mutation)
        : index_(std::move(index)), mutation_(mutation) {}

    IndexReader& reader() override { return index_->reader(); }
    std::uint64_t applied() const override { return index_->applied(); }
    Task<Result<void>> apply(Step step) override {
        if (mutation_ == Mutation::kIndexRunsAhead) step.applied += 3;
        Half half(*step.changes);
        if (mutation_ == Mutation::kIndexForgets) step.changes = &half;
        co_return co_await index_->apply(step);
    }
    Task<Result<void>> show_all(IndexShow* show) override { return index_->show_all(show); }
    IndexFigures figures() const override { return index_->figures(); }
    bool has_reserve() const override { return index_->has_reserve(); }
    std::uint64_t room_bytes() const override { return index_->room_bytes(); }

private:
    class Half final : public IndexChanges {
    public:
        explicit Half(IndexChanges& all) : all_(all) {}
        void rewind() override { all_.rewind(); }
        std::optional<IndexChange> next() override {
            auto change = all_.next();
            if (change) change = all_.next();
            return change;
        }

    private:
        IndexChanges& all_;
    };

    const std::unique_ptr<Index> index_;
    const Mutation mutation_;
};

Machine::Machine(core::VirtualWorld& world, Remains& remains, const Plan& plan, core::Random random)
    : remains_(remains), plan_(plan), random_(random), machine_(world) {
    core::Reactor& reactor = machine_.reactor();
    whole_disk_ = machine_.plug_in(
        remains.image, {.seed = random_.next(), .slow_holes = plan.sparse, .faults = plan.faults});
    disk_ = std::make_unique<MutantDisk>(
        reactor, *whole_disk_,
        DiskFlaws{.no_flush = plan.mutation == Mutation::kNoFlush,
                  .zeros_late = plan.mutation == Mutation::kZerosLate,
                  .discards_late = plan.mutation == Mutation::kDiscardsLate});
    auto index = std::make_unique<MapIndex>(
        MapIndex::World{.reactor = reactor, .random = random_, .delay_max = 5ms}, remains.index);
    index_ = std::make_unique<MutatedIndex>(std::move(index), plan.mutation);
    volume_ = std::make_unique<Volume>(
        VolumeParts{.reactor = reactor, .device = *disk_, .index = *index_, .events = events_},
        small_volume(plan, remains.version));
}

Machine::~Machine() {
    machine_.drop_coroutines();
}

void Machine::run(std::uint64_t cut_at, bool rescue) {
    if (rescue) {
        remains_.index.entries.clear();
        remains_.index.applied = 0;
    }
    const auto observe = [this](std::uint64_t step) {
        if (step % kStepsUnpoisoned == 0) look_at_memory();
    };
    if (!machine_.live(live(), cut_at, observe)) violate("the volume hangs");
    look_at_memory();
    const bool is_cut = !machine_.power().on();
    if (is_cut && volume_->serving() && volume_->sweeping()) ++remains_.sweeps;
    remains_.zeros += disk_->zeroed_blocks();
    remains_.discards += disk_->discards();
    machine_.drop_coroutines();
}

// What is free is of no use to anybody, whatever happens next; and what changes take is bounded.
void Machine::look_at_memory() {
    remains_.image.poison_if([this](std::uint64_t block) { return volume_->is_free(block); });
    remains_.changed_bytes_max = std::max(remains_.changed_bytes_max, volume_->changed_bytes());
    if (volume_->changed_bytes() > kOverlayBytes + kReservedBytesMax) {
        violate("changes take " + std::to_string(volume_->changed_bytes()) + " bytes");
    }
}

Task<void> Machine::live() {
    if (!remains_.formatted) {
        const auto formatted = co_await volume_->format();
        if (!formatted) open_error_ = formatted.error();
        if (formatted) remains_.formatted = true;
    }
    if (!open_error_) {
        const auto opened = co_await volume_->open(Volume::Mode::kServe);
        if (!opened) open_error_ = opened.error();
    }
    if (open_error_) {
        if (plan_.mutation == Mutation::kNone && plan_.faults.read_error_ppm == 0) {
            violate(std::string("the volume does not open: ") + open_error_->context);
        }
        const auto closed = co_await volume_->close();
        static_cast<void>(closed);
        co_return;
    }
    ++remains_.recoveries;
    std::vector<Fid> known;
    for (const auto& [fid, states] : remains_.objects) known.push_back(fid);
    for (const Fid fid : known) co_await compare(fid, true);
    check_owners();
    if (plan_.tape) check_cartridges();

    core::Gate gate;
    for (unsigned worker = 0; worker < kWorkers; ++worker)
        machine_.reactor().spawn(gate, work(worker));
    co_await gate.close(machine_.reactor());
    if (plan_.tape && volume_->serving()) check_cartridges();
    remains_.checkpoints += volume_->checkpoint_count();
    remains_.entries = volume_->newest().seq;
    remains_.log_entries = std::uint64_t{volume_->log_space().segments} * kSegmentBlocks;
    const auto closed = co_await volume_->close();
    if (closed) {
        // An orderly end: all of it is durable.
        for (auto& [fid, states] : remains_.objects) {
            while (states.size() > 1) states.pop_front();
        }
    } else if (plan_.faults.write_error_ppm + plan_.faults.flush_error_ppm == 0) {
        violate(std::string("the volume does not close: ") + closed.error().context);
    }
}

Task<void> Machine::work(unsigned worker) {
    core::Random random = random_.fork();
    auto memory = AlignedMemory::allocate(kBlocksOfObject * kBlock);
    ENSURE(memory.has_value());
    std::vector<Fid> mine;
    for (const auto& [fid, states] : remains_.objects) {
        if (fid.low % kWorkers == worker && states.back().exists) mine.push_back(fid);
    }
    while (mine.size() < kObjectsOfWorker) {
        Fid fid{.high = 3ULL << 48, .low = remains_.next_fid * kWorkers + worker};
        ++remains_.next_fid;
        remains_.objects[fid].push_back({});
        mine.push_back(fid);
    }
    for (unsigned i = 0; i < plan_.operations && volume_->serving(); ++i) {
        Fid& fid = mine[random.below(mine.size())];
        const std::uint64_t what = random.below(plan_.tape ? 32 : 20);
        Result<void> done{};
        if (what >= 20 || (plan_.tape && what < 13 && is_released(fid))) {
            done = co_await use_tape(fid, &random, &*memory);
        } else if (what < 11) {
            done = co_await write(fid, &random, &*memory);
        } else if (what < 13) {
            done = co_await truncate(fid, &random);
        } else if (what < 14) {
            done = co_await replace(&fid);
        } else {
            co_await compare(fid, false);
        }
        if (!done && done.error().code == Errc::kNoSpace) {
            ++remains_.full;
        } else if (!done) {
            co_return;
        }
        if (random.below(3) == 0) {
            const auto slept = co_await machine_.reactor().sleep_for(
                Duration{random.between(0, Duration{2ms}.count())});
            ENSURE(slept.has_value());
        }
    }
}

// What it is from now on known to be, at least.
void Machine::acknowledge(Fid fid, const ObjectState& state) {
    std::deque<ObjectState>& states = remains_.objects[fid];
    while (!states.empty() && !(states.front() == state)) states.pop_front();
    if (states.empty()) violate("an acknowledged state that never was");
}

// Whose blocks were counted at the start: those that are found, on the disk or on tape.
void Machine::check_owners() {
    std::uint64_t blocks = 0;
    for (const auto& [fid, states] : remains_.objects) blocks += states.back().stamps.size();
    std::uint64_t counted = 0;
    for (const auto& [pool, owners] : volume_->owners_at_open()) {
        const auto owner = owners.find("alice");
        if (owner != owners.end()) counted += owner->second.blocks;
    }
    if (counted == blocks || !remains_.findings.none()) return;
    violate("the owner has " + std::to_string(blocks) + " blocks, counted were " +
            std::to_string(counted));
}

// How many blocks more the object has is what its states say. The newest is just begun.
void Machine::check_net(Fid fid, const Change& change) {
    const std::deque<ObjectState>& states = remains_.objects[fid];
    const auto more = static_cast<std::int64_t>(states.back().stamps.size()) -
                      static_cast<std::int64_t>(states[states.size() - 2].stamps.size());
    if (more == change.net_blocks()) return;
    violate("object " + std::to_string(fid.low) + " has " + std::to_string(more) +
            " blocks more, counted were " + std::to_string(change.net_blocks()));
}

// The state is noted before it can be found, and acknowledged when it is durable.
Task<Result<void>> Machine::commit(Fid fid, Change* change, std::uint32_t bytes, ObjectState state,
                                   bool durable) {
    const core::WaitOptions wait{.deadline = after(machine_.reactor().now(), 5s)};
    auto reserved = co_await volume_->reserve(bytes, wait);
    if (!reserved) co_return std::unexpected(reserved.error());
    remains_.objects[fid].push_back(state);
    const Result<void> begun =
        volume_->begin(*change, std::move(*reserved),
                       durable ? Durability::kDurable : Durability::kBuffered, Data::kNone);
    if (!begun) co_return begun;
    const auto finished = co_await volume_->finish(change);
    if (!finished) co_return std::unexpected(finished.error());
    if (durable) acknowledge(fid, state);
    co_return Result<void>{};
}

Task<Result<void>> Machine::write(Fid fid, core::Random* random, AlignedMemory* memory) {
    const std::uint64_t first = random->below(kBlocksOfObject);
    const auto count = static_cast<std::uint32_t>(
        1 + random->below(std::min<std::uint64_t>(kBlocksOfWrite, kBlocksOfObject - first)));
    const bool durable = random->below(3) > 0;
    const core::WaitOptions wait{.deadline = after(machine_.reactor().now(), 5s)};
    auto reserved = co_await volume_->reserve(
        static_cast<std::uint32_t>(count * extent_record_bytes(1) + kPutRecordBytesMax), wait);
    if (!reserved) co_return std::unexpected(reserved.error());

    ObjectState state = remains_.objects[fid].back();
    state.exists = true;
    ++state.version;
    state.attribute_changes = 0;
    state.size_bytes = std::max(state.size_bytes, (first + count) * kBlock);
    const std::uint64_t stamp = remains_.next_stamp++;
    Change change;
    std::vector<DiskRange> ranges;
    std::vector<std::uint32_t> checksums(count);
    for (std::uint32_t i = 0; i < count; ++i) {
        const auto block = memory->span().subspan(i * kBlock, kBlock);
        fill(block, fid, first + i, stamp);
        checksums[i] = core::crc32c(block);
        state.stamps[first + i] = stamp;
    }
    for (std::uint32_t done = 0; done < count;) {
        const auto range = volume_->allocate(count - done);
        if (!range) {
            for (const DiskRange& each : ranges) volume_->give_back(each);
            co_return std::unexpected(range.error());
        }
        const Extent extent{.first = first + done,
                            .block = range->block,
                            .checksums = std::span(checksums).subspan(done, range->count)};
        change.records.extent(fid, extent);
        ranges.push_back(*range);
        done += range->count;
    }
    put_object(change.records, fid, state, remains_.version);
    remains_.objects[fid].push_back(state);
    const Result<void> begun =
        volume_->begin(change, std::move(*reserved),
                       durable ? Durability::kDurable : Durability::kBuffered, Data::kPending);
    if (!begun) co_return begun;
    check_net(fid, change);
    if (volume_->sweeping()) ++remains_.writes_meanwhile;
    Result<void> written{};
    std::size_t at = 0;
    for (const DiskRange& range : ranges) {
        core::Buffer from = memory->buffer();
        from.data += at;
        from.size_bytes = range.count * kBlock;
        at += from.size_bytes;
        const auto one = co_await disk_->write(from, range.block * kBlock);
        if (!one) written = one;
    }
    volume_->data_done(change, written);
    const auto finished = co_await volume_->finish(&change);
    if (!finished) co_return std::unexpected(finished.error());
    if (durable) acknowledge(fid, state);
    co_return Result<void>{};
}

Task<Result<void>> Machine::truncate(Fid fid, core::Random* random) {
    ObjectState state = remains_.objects[fid].back();
    if (!state.exists) co_return Result<void>{};
    const BlockRange hole = choose_hole(*random);
    const core::WaitOptions wait{.deadline = after(machine_.reactor().now(), 5s)};
    auto reserved = co_await volume_->reserve(kPunchRecordBytes + kPutRecordBytesMax, wait);
    if (!reserved) co_return std::unexpected(reserved.error());
    if (hole.end() == kObjectBlocksMax) state.size_bytes = hole.first * kBlock;
    ++state.version;
    state.attribute_changes = 0;
    state.stamps.erase(state.stamps.lower_bound(hole.first), state.stamps.lower_bound(hole.end()));
    Change change;
    put_object(change.records, fid, state, remains_.version);
    const auto punched = co_await volume_->punch(&change, fid, hole, wait);
    if (!punched) co_return std::unexpected(punched.error());
    remains_.objects[fid].push_back(state);
    const Result<void> begun =
        volume_->begin(change, std::move(*reserved), Durability::kDurable, Data::kNone);
    if (!begun) co_return begun;
    check_net(fid, change);
    const auto finished = co_await volume_->finish(&change);
    if (!finished) co_return std::unexpected(finished.error());
    acknowledge(fid, state);
    co_return Result<void>{};
}

// All behind a block, or some blocks.
BlockRange Machine::choose_hole(core::Random& random) const {
    const std::uint64_t first = random.below(kBlocksOfObject);
    if (!plan_.in_steps || random.below(2) == 0) {
        return {.first = first, .count = kObjectBlocksMax - first};
    }
    return {.first = first, .count = 1 + random.below(kBlocksOfObject - first)};
}

// The object goes, and another comes.
Task<Result<void>> Machine::replace(Fid* fid) {
    const Fid old = *fid;
    const Fid next{.high = old.high, .low = old.low + kWorkers * remains_.next_fid * 1000};
    ++remains_.next_fid;
    Change change;
    change.records.remove(old);
    const auto removed = co_await commit(old, &change, kRemoveRecordBytes, ObjectState{}, true);
    if (!removed) co_return removed;
    *fid = next;
    remains_.objects[next].push_back({});
    co_return Result<void>{};
}

std::string carry_out(const Plan& plan, Remains& remains) {
    core::VirtualWorld world(plan.seed);
    core::Random random(plan.seed);
    const Boots boots{.random = random, .findings = remains.findings, .images = {&remains.image}};
    return run_boots(plan, boots, [&](const Boot& boot) {
        const bool again = boot.number > 0;
        const bool newer = plan.upgrade && again && boot.number < 8 && random.below(2) == 0;
        if (newer) ++remains.version;
        // An index of an older version is of no use.
        const bool rescue = again && (random.below(4) == 0 || plan.rescue ||
                                      (newer && plan.mutation != Mutation::kOldIndex));
        Machine machine(world, remains, plan, random.fork());
        machine.run(boot.cut_at, rescue);
    });
}

}  // namespace fopd::store::testing

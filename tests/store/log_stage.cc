#include "tests/store/log_stage.h"

#include <algorithm>
#include <utility>

#include "core/byte_order.h"
#include "core/crc32c.h"
#include "store/log_entry.h"
#include "store/superblock.h"
#include "tests/store/forwarding_device.h"

namespace fopd::store::testing {

namespace {

constexpr std::size_t kPutBytes = 24;
constexpr std::uint32_t kFiller = 0xffffffff;  // A record that says nothing.

std::vector<std::byte> encode(const std::vector<Put>& puts) {
    std::vector<std::byte> bytes(puts.size() * kPutBytes);
    for (std::size_t i = 0; i < puts.size(); ++i) {
        const auto record = std::span(bytes).subspan(i * kPutBytes, kPutBytes);
        put_little(record, 0, puts[i].object);
        put_little(record, 4, puts[i].checksum);
        put_little(record, 8, puts[i].version);
        put_little(record, 16, puts[i].block);
    }
    return bytes;
}

std::vector<Put> decode(std::span<const std::byte> bytes) {
    std::vector<Put> puts;
    for (std::size_t at = 0; at + kPutBytes <= bytes.size(); at += kPutBytes) {
        const Put put{.object = get_little<std::uint32_t>(bytes, at),
                      .version = get_little<std::uint64_t>(bytes, at + 8),
                      .block = get_little<std::uint64_t>(bytes, at + 16),
                      .checksum = get_little<std::uint32_t>(bytes, at + 4)};
        if (put.object != kFiller) puts.push_back(put);
    }
    return puts;
}

void fill(std::span<std::byte> block, std::uint32_t object, std::uint64_t version) {
    core::Random random((std::uint64_t{object} << 32) + version);
    for (std::size_t at = 0; at < block.size(); at += 8) put_little(block, at, random.next());
}

std::string text(const char* what, std::uint64_t a, std::uint64_t b) {
    return std::string(what) + ": " + std::to_string(a) + ", " + std::to_string(b);
}

}  // namespace

LogOptions small_log() {
    LogOptions options{.segment_blocks = kSegmentBlocks,
                       .flush_interval = 5ms,
                       .entry_blocks_max = kEntryBlocksMax};
    options.disk_id.fill(std::byte{0x5a});
    return options;
}

// The disk as somebody would see it who left something out.
class Machine::MutatedDisk final : public ForwardingDevice {
public:
    MutatedDisk(devices::Device& disk, Mutation mutation)
        : ForwardingDevice(disk), mutation_(mutation) {}

    Task<Result<void>> read(core::Buffer into, std::uint64_t offset,
                            core::WaitOptions wait) override {
        const auto read = co_await device().read(into, offset, wait);
        if (read) mutate(into.span(), offset);
        co_return read;
    }
    Task<Result<void>> flush() override {
        if (mutation_ == Mutation::kNoFlush) co_return Result<void>{};
        co_return co_await device().flush();
    }

private:
    void mutate(std::span<std::byte> bytes, std::uint64_t offset) {
        if (mutation_ != Mutation::kMarksUnread && mutation_ != Mutation::kEpochsUnread) return;
        if (offset < Log::kSegmentsBlock * devices::kBlockBytes) {
            const auto found = parse_superblock(bytes);
            if (found && found->generation >= superblock_.generation) superblock_ = *found;
            return;
        }
        const LogId id = small_log().disk_id;
        for (std::size_t at = 0; at < bytes.size(); at += devices::kBlockBytes) {
            auto header = peek_entry(bytes.subspan(at), id);
            if (!header || !entry_is_whole(bytes.subspan(at), *header)) continue;
            const std::size_t size = entry_blocks(header->payload_bytes) * devices::kBlockBytes;
            if (mutation_ == Mutation::kMarksUnread) {
                header->mark = 0;
            } else if (header->seq >= superblock_.epoch_first_seq) {
                header->epoch = superblock_.epoch;
            }
            seal_entry(bytes.subspan(at, size), id, *header);
        }
    }

    const Mutation mutation_;
    Superblock superblock_;
};

struct Machine::Operation {
    std::vector<Put> puts;
    std::vector<AlignedMemory> data;
    std::size_t left = 0;
    Result<void> result;
    Commit commit;
    core::WaitQueue* written = nullptr;
};

Machine::Machine(core::VirtualWorld& world, Remains& remains, const Plan& plan, core::Random random)
    : remains_(remains),
      plan_(plan),
      random_(random),
      machine_(world),
      disk_(machine_.plug_in(remains.image, {.seed = random_.next(), .faults = plan.faults})),
      mutated_(std::make_unique<MutatedDisk>(*disk_, plan.mutation)),
      ended_(machine_.reactor()),
      scratch_(std::move(AlignedMemory::allocate(devices::kBlockBytes).value())) {
    LogOptions options = small_log();
    options.segments_max = plan.segments_max;
    if (plan.seed / 2 % 2 == 0) options.gather_time = Duration{0};  // More entries at once.
    log_ = std::make_unique<Log>(machine_.reactor(), *mutated_, static_cast<SegmentSource&>(*this),
                                 options);
}

Machine::~Machine() {
    machine_.drop_coroutines();
    log_.reset();
}

void Machine::run(std::uint64_t cut_at, bool rescue) {
    if (!machine_.live(live(rescue), cut_at)) violated("it never ends");
}

void Machine::violated(std::string what) {
    if (remains_.violation.empty()) remains_.violation = std::move(what);
}

// -- what the log asks for --

Result<std::uint32_t> Machine::take_segment(SegmentNeed /*need*/) {
    if (free_segments_.empty()) {
        return std::unexpected(Error{.code = Errc::kNoSpace, .context = "no segment is free"});
    }
    const std::uint32_t segment = *free_segments_.begin();
    free_segments_.erase(segment);
    ++remains_.grown;
    return segment;
}

void Machine::give_back_segment(std::uint32_t segment) {
    free_segments_.insert(segment);
}

Task<Result<bool>> Machine::block_holds(Put put) {
    const core::WaitOptions no_limit;
    const auto read =
        co_await disk_->read(scratch_.buffer(), put.block * devices::kBlockBytes, no_limit);
    if (!read) co_return std::unexpected(read.error());
    co_return core::crc32c(scratch_.span()) == put.checksum;
}

Task<Result<bool>> Machine::data_ok(LogEntry entry) {
    if (plan_.mutation == Mutation::kDataUnchecked) co_return true;
    for (const Put& put : decode(entry.payload)) {
        const auto holds = co_await block_holds(put);
        if (!holds) co_return std::unexpected(holds.error());
        if (!*holds) {
            ++remains_.dropped;
            co_return false;
        }
    }
    co_return true;
}

Task<Result<void>> Machine::replay(LogEntry entry) {
    for (const Put& put : decode(entry.payload)) state_[put.object] = put;
    co_return Result<void>{};
}

Task<Result<void>> Machine::keep(LogEntry entry) {
    const auto wait = core::WaitOptions{};
    auto room = co_await log_->reserve(static_cast<std::uint32_t>(entry.payload.size()), wait,
                                       Purpose::kCleaning);
    if (!room) co_return std::unexpected(room.error());
    const auto& known = plan_.mutation == Mutation::kCleanLate ? remains_.index : state_;
    std::vector<Put> alive;
    for (const Put& put : decode(entry.payload)) {
        const auto now = known.find(put.object);
        if (now != known.end() && now->second.version == put.version) alive.push_back(put);
    }
    if (alive.empty() || plan_.mutation == Mutation::kCleanForgets) co_return Result<void>{};
    Commit commit;
    log_->begin(commit, std::move(*room), encode(alive), static_cast<std::uint32_t>(alive.size()),
                Durability::kBuffered, Data::kNone);
    for (const Put& put : alive) unapplied_.emplace_back(commit.seq(), put);
    co_return Result<void>{};
}

// -- a life --

Task<Result<Replayed>> Machine::open(bool rescue) {
    ReplayOptions options;
    if (!rescue) {
        state_ = remains_.index;
        options.applied_seq = remains_.applied_seq;
    }
    const auto replayed = co_await log_->open(this, options);
    co_return replayed;
}

Task<void> Machine::live(bool rescue) {
    const auto replayed = co_await open(rescue);
    if (!replayed) {
        open_error_ = replayed.error();
        co_return;
    }
    co_await compare(*replayed);
    const std::vector<std::uint32_t> segments = log_->segments();
    for (std::uint32_t i = 0; i < kLogSegments; ++i) free_segments_.insert(i);
    for (const std::uint32_t segment : segments) free_segments_.erase(segment);
    std::set<std::uint64_t> in_use;
    for (const auto& [object, put] : state_) in_use.insert(put.block);
    for (std::uint64_t i = 0; i < kDataBlocks; ++i) {
        if (!in_use.contains(kDataBlock + i)) free_blocks_.push_back(kDataBlock + i);
    }

    workers_left_ = kWorkers;
    for (unsigned i = 0; i < kWorkers; ++i) machine_.reactor().spawn(gate_, work(i));
    machine_.reactor().spawn(gate_, clean_when_wanted());
    while (workers_left_ > 0) {
        const auto woken = co_await ended_.wait({});
        ENSURE(woken.has_value());
    }
    while (writes_left_ > 0) {
        const auto woken = co_await ended_.wait({});
        ENSURE(woken.has_value());
    }
    const auto closed = co_await log_->close();
    const bool may_fail = plan_.faults.write_error_ppm > 0 || plan_.faults.flush_error_ppm > 0;
    if (!closed && !may_fail) violated("close: " + describe(closed.error()));
}

Task<void> Machine::compare(Replayed replayed) {
    ++remains_.recoveries;
    const auto version_of = [this](std::uint32_t object) {
        const auto found = state_.find(object);
        return found == state_.end() ? 0 : found->second.version;
    };
    const std::uint64_t last_seq = replayed.last_seq;
    if (last_seq < remains_.acknowledged_seq) {
        violated(text("acknowledged entries are gone", last_seq, remains_.acknowledged_seq));
    }
    for (const auto& [object, version] : remains_.acknowledged) {
        if (version_of(object) < version)
            violated(text("an acknowledged write is lost", object, version));
    }
    for (const auto& [object, version] : remains_.recovered) {
        if (version_of(object) < version) violated(text("it went back", object, version));
    }
    std::set<std::pair<std::uint32_t, std::uint64_t>> possible;
    for (const Remains::Begun& begun : remains_.begun) {
        possible.emplace(begun.object, begun.version);
        const bool is_there = version_of(begun.object) >= begun.version;
        if (is_there != (begun.seq <= last_seq)) {
            violated(text("not a prefix", begun.seq, last_seq));
        }
        if (replayed.clean && !is_there) violated(text("clean, and lost", begun.seq, last_seq));
    }
    for (const auto& [object, put] : state_) {
        const auto before = remains_.recovered.find(object);
        const bool old = before != remains_.recovered.end() && before->second == put.version;
        if (!old && !possible.contains({object, put.version})) {
            violated(text("a version nobody could expect", object, put.version));
        }
        const auto holds = co_await block_holds(put);
        if (!holds || !*holds) violated(text("wrong bytes", object, put.version));
    }
    remains_.begun.clear();
    for (const auto& [object, put] : state_) remains_.recovered[object] = put.version;
    remains_.index = state_;
    remains_.applied_seq = last_seq;
    log_->set_applied(last_seq);
}

Task<void> Machine::work(unsigned worker) {
    for (unsigned i = 0; i < plan_.operations; ++i) {
        const auto done = co_await put(worker);
        if (!done) break;
        if (random_.below(4) == 0) checkpoint();
        const Duration pause =
            random_.below(40) == 0 ? 12ms : Duration{random_.between(0, 300'000)};
        if (random_.below(2) == 0) {
            const auto slept = co_await machine_.reactor().sleep_for(pause);
            ENSURE(slept.has_value());
        }
    }
    --workers_left_;
    ended_.wake_all();
}

Task<Result<std::uint64_t>> Machine::allocate() {
    take_freed();
    while (free_blocks_.empty()) {
        ENSURE(!freed_.empty());
        const std::uint64_t seq = freed_.front().seq;
        const auto settled = co_await log_->settle(seq, {});
        if (!settled) co_return std::unexpected(settled.error());
        take_freed();
    }
    const std::uint64_t block = free_blocks_.back();
    free_blocks_.pop_back();
    co_return block;
}

void Machine::take_freed() {
    const std::uint64_t usable_seq =
        plan_.mutation == Mutation::kReuseWhenDurable ? log_->durable_seq() : log_->trusted();
    while (!freed_.empty() && freed_.front().seq <= usable_seq) {
        free_blocks_.push_back(freed_.front().block);
        freed_.pop_front();
    }
}

Task<Result<void>> Machine::put(unsigned worker) {
    const bool durable = random_.below(4) != 0;
    const auto fillers = random_.below(8) == 0 ? random_.below(500) : random_.below(4);
    Operation operation;
    core::WaitQueue written(machine_.reactor());
    operation.written = &written;
    const auto count = 1 + random_.below(2);
    const auto wait = core::WaitOptions{};
    auto room =
        co_await log_->reserve(static_cast<std::uint32_t>((count + fillers) * kPutBytes), wait);
    if (!room) co_return std::unexpected(room.error());
    for (std::uint64_t i = 0; i < count; ++i) {
        const auto block = co_await allocate();
        if (!block) co_return std::unexpected(block.error());
        const auto object =
            static_cast<std::uint32_t>(std::uint64_t{worker} * kObjectsOfWorker +
                                       (i + remains_.next_version[worker]) % kObjectsOfWorker);
        operation.puts.push_back({.object = object, .block = *block});
    }
    // The turn of the begin.
    for (Put& put : operation.puts) {
        put.version = ++remains_.next_version[put.object];
        operation.data.push_back(std::move(AlignedMemory::allocate(devices::kBlockBytes).value()));
        fill(operation.data.back().span(), put.object, put.version);
        put.checksum = core::crc32c(operation.data.back().span());
    }
    operation.left = operation.puts.size();
    for (std::size_t i = 0; i < operation.puts.size(); ++i) {
        ++writes_left_;
        machine_.reactor().spawn(gate_, write_data(&operation, i));
    }
    std::vector<Put> records = operation.puts;
    for (std::uint64_t i = 0; i < fillers; ++i) records.push_back({.object = kFiller});
    log_->begin(operation.commit, std::move(*room), encode(records),
                static_cast<std::uint32_t>(records.size()),
                durable ? Durability::kDurable : Durability::kBuffered, Data::kPending);
    note_begun(operation.commit.seq(), operation.puts);
    while (operation.left > 0) {
        const auto woken = co_await written.wait({});
        ENSURE(woken.has_value());
    }
    log_->data_done(operation.commit, operation.result);
    if (!durable) co_return operation.result;
    const auto kept = co_await log_->durable(operation.commit);
    if (!kept) co_return kept;
    if (log_->durable_seq() < operation.commit.seq()) violated("durable too early");
    for (const Put& put : operation.puts) remains_.acknowledged[put.object] = put.version;
    remains_.acknowledged_seq = std::max(remains_.acknowledged_seq, operation.commit.seq());
    co_return Result<void>{};
}

void Machine::note_begun(std::uint64_t seq, const std::vector<Put>& puts) {
    if (log_->failed() != nullptr) return;
    for (const Put& put : puts) {
        remains_.begun.push_back({.seq = seq, .object = put.object, .version = put.version});
        const auto before = state_.find(put.object);
        if (before != state_.end()) freed_.push_back({.seq = seq, .block = before->second.block});
        state_[put.object] = put;
        unapplied_.emplace_back(seq, put);
    }
}

Task<void> Machine::write_data(Operation* operation, std::size_t which) {
    const std::uint64_t offset = operation->puts[which].block * devices::kBlockBytes;
    const auto written = co_await disk_->write(operation->data[which].buffer(), offset);
    if (!written) operation->result = written;
    --operation->left;
    operation->written->wake_all();
    --writes_left_;
    ended_.wake_all();
}

// The index takes what is durable, at once and for good.
void Machine::checkpoint() {
    const std::uint64_t seq = log_->durable_seq();
    while (!unapplied_.empty() && unapplied_.front().first <= seq) {
        const Put& put = unapplied_.front().second;
        remains_.index[put.object] = put;
        unapplied_.pop_front();
    }
    remains_.applied_seq = std::max(remains_.applied_seq, seq);
    log_->set_applied(remains_.applied_seq);
}

Task<void> Machine::clean_when_wanted() {
    for (;;) {
        const auto wanted = co_await log_->wait_cleaning_wanted({});
        if (!wanted) co_return;
        checkpoint();
        const auto cleaned = co_await log_->clean(this);
        if (cleaned) {
            ++remains_.cleaned;
        } else if (cleaned.error().code == Errc::kBusy) {
            const auto synced = co_await log_->sync({});
            if (!synced) co_return;
        } else {
            if (log_->failed() == nullptr && cleaned.error().code != Errc::kClosed) {
                violated("clean: " + describe(cleaned.error()));
            }
            co_return;
        }
    }
}

// -- lives --

Stage::Stage(const Plan& plan)
    : Replay(plan.seed, Seed::kOfSwarm), world(plan.seed), plan_(plan), remains_(kDiskBytes) {}

void Stage::format() {
    class NoSource final : public SegmentSource {
        Result<std::uint32_t> take_segment(SegmentNeed /*need*/) override {
            return std::unexpected(Error{.code = Errc::kNoSpace});
        }
        void give_back_segment(std::uint32_t) override {}
    };
    NoSource source;
    const auto reactor = world.make_reactor();
    devices::MemoryDisk disk(*reactor, remains_.image, {.seed = plan_.seed});
    std::vector<std::uint32_t> segments;
    // Not in the order of their numbers, which means nothing.
    for (std::uint32_t i = 0; i < plan_.segments_at_first; ++i) segments.push_back(i ^ 1U);
    Log log(*reactor, disk, source, small_log());
    const auto made = world.run(*reactor, log.format(segments));
    ENSURE(made.has_value());
    ENSURE(made->has_value());
    const auto closed = world.run(*reactor, log.close());
    ENSURE(closed.has_value());
}

std::string Stage::run() {
    format();
    core::Random random = world.random().fork();
    // The last boot is one more than the plan has, and only looks.
    Plan boots = plan_;
    ++boots.boots;
    for (unsigned boot = 0; boot <= plan_.boots; ++boot) {
        const bool last = boot == plan_.boots;
        const std::uint64_t cut_at = draw_cut(boots, boot, random);
        Plan plan = plan_;
        if (last) plan.operations = 2;
        std::uint64_t steps = 0;
        {
            Machine machine(world, remains_, plan, random.fork());
            machine.run(cut_at, random.below(3) == 0);
            steps = machine.steps();
            if (boot == 0) first_steps_ = steps;
            if (machine.open_error().has_value() && remains_.violation.empty()) {
                remains_.violation = "open: " + describe(*machine.open_error());
            }
        }
        if (!remains_.violation.empty()) return remains_.violation;
        // Every fifth time only the process ended; the kernel ends what it had begun.
        if (cut_at != 0 && random.below(5) != 0) {
            remains_.image.crash(random);
        } else {
            remains_.image.settle();
        }
        world.trace(steps);
    }
    return {};
}

}  // namespace fopd::store::testing

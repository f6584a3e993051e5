#include "tests/reqh/store_stage.h"

#include <algorithm>
#include <cstring>

#include "core/crc32c.h"
#include "tests/catch.h"

namespace fopd::reqh::testing {

namespace {

constexpr std::string_view kPool = "fast";

store::VolumeOptions volume_options(std::uint32_t number, const StageOptions& stage) {
    store::VolumeOptions options{.slot = static_cast<store::Slot>(kFirstSlot + number),
                                 .segment_blocks = 64,
                                 .overlay_bytes = stage.overlay_bytes,
                                 .flush_interval = 20ms,
                                 .checkpoint_interval = 200ms,
                                 .sweep = stage.sweep};
    options.disk_id.fill(static_cast<std::byte>(0x40 + number));
    return options;
}

class ReplyCounter final : public store::MapVisitor {
public:
    Result<void> reply(const store::ReplyRecord& /*record*/) override {
        ++count;
        return {};
    }

    std::size_t count = 0;
};

}  // namespace

// -- coming and going --

StoreStage::StoreStage(const StageOptions& given)
    : Replay(given.seed, given.whose_seed),
      options(given),
      world(given.seed),
      random(given.seed * 31 + 7) {
    for (std::uint32_t i = 0; i < options.disks; ++i) {
        remains_.push_back(std::make_unique<Remains>(options.disk_bytes));
    }
    name_images_.resize(options.localities);
    start();
}

StoreStage::~StoreStage() {
    destroy();
}

StoreStage::Locality::Locality(StoreStage& stage, std::uint32_t number)
    : reactor(stage.world.make_reactor()),
      buffers(*reactor),
      io(*reactor, {}),
      requests(*reactor, lrs::make_fifo()),
      name_index(std::make_unique<store::MapIndex>(
          store::MapIndex::World{.reactor = *reactor, .random = stage.random, .delay_max = 2ms},
          stage.name_images_[number])),
      shard(std::make_unique<store::NameShard>(
          store::NameShard::World{.reactor = *reactor, .clock = stage.world.clock()}, *name_index,
          store::NameShardOptions{
              .part = {.shard = number, .shard_count = stage.options.localities}})),
      part(std::make_unique<objects::NamePart>(*reactor, names_gate, *shard)) {
    const auto opened = buffers.open(stage.options.buffer_count * core::kBufferBytes);
    REQUIRE(opened.has_value());
    const auto names_opened = shard->open();
    REQUIRE(names_opened.has_value());
}

void StoreStage::make_localities() {
    std::vector<objects::NamePart*> parts;
    for (std::uint32_t i = 0; i < options.localities; ++i) {
        localities_.push_back(std::make_unique<Locality>(*this, i));
        parts.push_back(localities_.back()->part.get());
    }
    auto layout = std::make_shared<objects::StoreLayout>();
    layout->version = 1;
    layout->pools = {{.id = objects::pool_id(kPool), .name = std::string(kPool)},
                     {.id = objects::pool_id("slow"), .name = "slow"}};
    if (options.cold_quota_blocks) {
        layout->pools.push_back(
            {.id = objects::pool_id("cold"), .name = "cold", .staging = objects::pool_id(kPool)});
        layout->pools.back().quota->whole().set_limit(
            {.blocks = *options.cold_quota_blocks, .objects = objects::QuotaAccount::kUnlimited});
    }
    quota_ = layout->pools[0].quota;
    quota_->whole().set_limit(
        {.blocks = options.quota_blocks, .objects = objects::QuotaAccount::kUnlimited});
    for (const auto& [owner, limit] : options.owner_limits)
        quota_->account_of(owner).set_limit(limit);
    for (std::uint32_t i = 0; i < options.disks; ++i) {
        layout->slots.push_back({.slot = static_cast<store::Slot>(kFirstSlot + i),
                                 .locality = home_of(i),
                                 .pool = objects::pool_id(kPool)});
        if (remains_[i]->is_written_off)
            layout->slots.back().state = objects::SlotState::kWrittenOff;
        if (!remains_[i]->is_away || remains_[i]->is_written_off) continue;
        layout->slots.back().state = objects::SlotState::kMissing;
        layout->slots.back().disk = "disk-" + std::to_string(i);
        layout->pools[0].missing = layout->slots.back().disk;
        if (options.cold_quota_blocks) layout->pools.back().missing = layout->slots.back().disk;
    }
    std::vector<objects::Stores*> all;
    for (std::uint32_t i = 0; i < options.localities; ++i) {
        Locality& locality = *localities_[i];
        locality.names = std::make_unique<objects::Names>(*locality.reactor, parts);
        locality.stores =
            std::make_unique<objects::Stores>(objects::StoresParts{.locality = i,
                                                                   .reactor = *locality.reactor,
                                                                   .io = locality.io,
                                                                   .buffers = locality.buffers,
                                                                   .clock = world.clock(),
                                                                   .events = locality.events,
                                                                   .names = *locality.names});
        locality.stores->set_layout(layout);
        all.push_back(locality.stores.get());
    }
    for (std::uint32_t i = 0; i < options.localities; ++i) {
        const auto& locality = localities_[i];
        locality->stores->introduce(all);
        locality->replaced =
            std::make_unique<objects::ReplacedObjects>(*locality->stores, *locality->part);
        locality->upkeep =
            std::make_unique<objects::StoreUpkeep>(*locality->stores, options.upkeep);
        locality->coalescer =
            std::make_unique<objects::Coalescer>(*locality->stores, options.coalescer);
        locality->handler =
            std::make_unique<RequestHandler>(RequestHandlerParts{.reactor = *locality->reactor,
                                                                 .work = locality->work,
                                                                 .buffers = locality->buffers,
                                                                 .requests = locality->requests,
                                                                 .tokens = locality->verdicts,
                                                                 .events = locality->events,
                                                                 .stores = locality->stores.get(),
                                                                 .locality = i,
                                                                 .library = options.library},
                                             RequestHandlerLimits{.max_foms = 16});
    }
}

void StoreStage::tell_names(const store::NameChanges* changes, std::uint32_t disk) {
    core::Reactor& reactor = *localities_[home_of(disk)]->reactor;
    const auto told = world.run(reactor, machines_[disk]->router->tell(changes));
    ENSURE(told.has_value());
    ENSURE(told->has_value());
}

void StoreStage::make_machine(std::uint32_t number) {
    Locality& home = *localities_[home_of(number)];
    auto machine = std::make_unique<Machine>();
    machine->disk = std::make_unique<devices::MemoryDisk>(
        *home.reactor, remains_[number]->image,
        devices::MemoryDiskOptions{.seed = random.next(),
                                   .slow_holes = options.slow_holes,
                                   .power = power_.get(),
                                   .faults = options.faults});
    machine->index = std::make_unique<store::MapIndex>(
        store::MapIndex::World{.reactor = *home.reactor, .random = random, .delay_max = 2ms},
        remains_[number]->index);
    std::vector<store::NameSink*> sinks;
    for (const auto& locality : localities_) {
        if (locality.get() == &home) {
            sinks.push_back(locality->shard.get());
            continue;
        }
        machine->sinks.push_back(
            std::make_unique<objects::DistantNames>(*home.reactor, *locality->part));
        sinks.push_back(machine->sinks.back().get());
    }
    machine->router = std::make_unique<objects::NameRouter>(std::move(sinks));
    machine->volume =
        std::make_unique<store::Volume>(store::VolumeParts{.reactor = *home.reactor,
                                                           .device = *machine->disk,
                                                           .index = *machine->index,
                                                           .events = home.events,
                                                           .names = machine->router.get()},
                                        volume_options(number, options));
    machines_.push_back(std::move(machine));
}

Task<void> StoreStage::open(std::uint32_t number) {
    Machine& machine = *machines_[number];
    Remains& remains = *remains_[number];
    if (!remains.formatted) {
        const auto formatted = co_await machine.volume->format();
        REQUIRE(formatted.has_value());
        remains.formatted = true;
    }
    const auto opened = co_await machine.volume->open(store::Volume::Mode::kServe);
    if (!opened) FAIL(describe(opened.error()));
    Locality& home = *localities_[home_of(number)];
    const io_sched::MediumId medium{number};
    const auto added = io_sched::add_disk(home.io, medium, *machine.disk);
    REQUIRE(added.has_value());
    home.stores->add({.disk_id = volume_options(number, options).disk_id,
                      .pool = objects::pool_id(kPool),
                      .volume = machine.volume.get(),
                      .medium = medium});
}

void StoreStage::run_at(std::uint32_t locality, Task<void> task) {
    const bool has_ended = world.run(*localities_[locality]->reactor, std::move(task));
    REQUIRE(has_ended);
}

void StoreStage::start() {
    REQUIRE(!running());
    power_ = std::make_unique<devices::Power>();
    make_localities();
    for (std::uint32_t i = 0; i < options.disks; ++i) make_machine(i);
    for (std::uint32_t i = 0; i < options.disks; ++i) {
        if (!remains_[i]->is_away) run_at(home_of(i), open(i));
    }
    for (const auto& locality : localities_) {
        locality->replaced->start();
        locality->upkeep->start();
        locality->coalescer->start();
    }
}

Task<void> StoreStage::stop_locality(std::uint32_t number) {
    Locality& locality = *localities_[number];
    locality.handler->drain();
    locality.handler->cut_off();
    co_await locality.work.close(*locality.reactor);
}

void StoreStage::stop() {
    for (std::uint32_t i = 0; i < options.localities; ++i) run_at(i, stop_locality(i));
    for (std::uint32_t i = 0; i < options.localities; ++i) run_at(i, stores(i).stop());
    for (std::uint32_t i = 0; i < options.disks; ++i) {
        if (remains_[i]->is_away) continue;
        const auto closed =
            world.run(*localities_[home_of(i)]->reactor, machines_[i]->volume->close());
        REQUIRE(closed.has_value());
        REQUIRE(closed->has_value());
    }
    for (std::uint32_t i = 0; i < options.localities; ++i) run_at(i, localities_[i]->io.stop());
    destroy();
    for (const auto& remains : remains_) remains->image.settle();
}

void StoreStage::lose_power() {
    power_->cut();
    destroy();
    for (const auto& remains : remains_) remains->image.crash(random);
}

// As a process that is killed: the coroutines go where they are, then what they used.
void StoreStage::destroy() {
    for (auto locality = localities_.rbegin(); locality != localities_.rend(); ++locality) {
        (*locality)->reactor->drop_coroutines();
    }
    for (const auto& locality : localities_) {
        locality->handler.reset();
        locality->replaced.reset();
        locality->upkeep.reset();
        locality->coalescer.reset();
    }
    for (const auto& locality : localities_) locality->stores.reset();
    machines_.clear();
    for (const auto& locality : localities_) {
        locality->names.reset();
        locality->part.reset();
    }
    localities_.clear();
}

std::uint64_t StoreStage::message_count() const {
    std::uint64_t count = 0;
    for (const auto& locality : localities_) count += locality->reactor->stats().messages.get();
    return count;
}

bool StoreStage::all_buffers_are_back() const {
    return std::ranges::all_of(localities_, [](const auto& locality) {
        return locality->buffers.free_count() == locality->buffers.total_count();
    });
}

std::size_t StoreStage::reply_count() {
    ReplyCounter counter;
    store::MapVisitor* const visitor = &counter;
    const auto counted = world.run(stores().parts().reactor,
                                   volume().map().for_each(store::KeyKind::kReply, visitor));
    REQUIRE(counted.has_value());
    REQUIRE(counted->has_value());
    return counter.count;
}

// -- fops --

FakeFop& StoreStage::send(FopSpec spec, std::uint32_t locality) {
    Locality& there = *localities_[locality];
    there.reactor->turn(world.now());
    if (spec.number == 0) spec.number = next_number_++;
    FakeFop& fop = fops.emplace_back(*there.reactor, spec.number, std::move(spec));
    there.handler->on_incoming(fop);
    return fop;
}

FakeFop& StoreStage::call(FopSpec spec, std::uint32_t locality) {
    FakeFop& fop = send(std::move(spec), locality);
    wait_for(fop);
    return fop;
}

void StoreStage::wait_for(FakeFop& fop) {
    while (!fop.answer) REQUIRE(world.step());
}

fop::Fid StoreStage::create(std::string_view name, std::uint16_t slot) {
    FakeFop& fop = call(
        {.type = type_of("create"), .body = fop::Create{.name = name, .slot = slot, .mode = 0600}});
    INFO(fop.answer->words);
    REQUIRE(fop.status() == fop::Status::kDone);
    return std::get<fop::CreateReply>(fop.answer->body).fid;
}

void StoreStage::write(fop::Fid fid, std::uint64_t offset, const Bytes& bytes) {
    const WriteSpec write(fid, {{.offset = offset, .length = bytes.size()}}, bytes);
    FakeFop& fop = call(write.spec(WriteSpec::Way::kMemory));
    INFO(fop.answer->words);
    REQUIRE(fop.status() == fop::Status::kDone);
}

Bytes StoreStage::read(fop::Fid fid, std::uint64_t offset, std::uint64_t length) {
    const ReadSpec read(fid, {{.offset = offset, .length = length}});
    FakeFop& fop = call(read.spec(WriteSpec::Way::kMemory));
    INFO(fop.answer->words);
    REQUIRE(fop.status() == fop::Status::kDone);
    const auto& reply = std::get<fop::ReadReply>(fop.answer->body);
    Bytes bytes = fop.target;
    bytes.resize(reply.bytes);
    const std::vector<fop::Range> there{
        fop::within({.offset = offset, .length = length}, reply.size_bytes)};
    REQUIRE(std::ranges::equal(reply.checksums, checksums_of(there, bytes)));
    return bytes;
}

fop::Attributes StoreStage::stat(fop::Fid fid) {
    FakeFop& fop = call({.type = type_of("stat"), .body = fop::Stat{.fid = fid}});
    INFO(fop.answer->words);
    REQUIRE(fop.status() == fop::Status::kDone);
    return std::get<fop::StatReply>(fop.answer->body).attributes;
}

// -- requests --

Bytes pattern(std::size_t size_bytes, std::uint64_t seed) {
    core::Random random(seed);
    Bytes bytes(size_bytes);
    for (std::size_t at = 0; at < size_bytes; at += 8) {
        const std::uint64_t word = random.next();
        std::memcpy(bytes.data() + at, &word, std::min<std::size_t>(8, size_bytes - at));
    }
    return bytes;
}

std::vector<std::uint32_t> checksums_of(const std::vector<fop::Range>& ranges, const Bytes& bytes) {
    std::vector<std::uint32_t> checksums(fop::count_checksums(ranges));
    fop::checksum_ranges(ranges, bytes, checksums);
    return checksums;
}

FopSpec WriteSpec::spec(Way way, fop::Durability durability) const {
    fop::Write body{.fid = fid_,
                    .ranges = fop::List<fop::Range>(ranges_.data(), ranges_.size()),
                    .checksums = fop::List<std::uint32_t>(checksums_.data(), checksums_.size()),
                    .durability = durability};
    if (way == Way::kMemory) body.source.emplace();
    FopSpec spec{.type = type_of("write"), .body = body};
    if (way == Way::kMemory) {
        spec.source = bytes_;
    } else {
        spec.payload_bytes = bytes_;
    }
    return spec;
}

FopSpec AppendSpec::spec(WriteSpec::Way way) const {
    fop::Append body{.fid = fid_,
                     .length = bytes_.size(),
                     .checksums = fop::List<std::uint32_t>(checksums_.data(), checksums_.size())};
    if (way == WriteSpec::Way::kMemory) body.source.emplace();
    FopSpec spec{.type = type_of("append"), .body = body};
    if (way == WriteSpec::Way::kMemory) {
        spec.source = bytes_;
    } else {
        spec.payload_bytes = bytes_;
    }
    return spec;
}

FopSpec ReadSpec::spec(WriteSpec::Way way) const {
    fop::Read body{.fid = fid_, .ranges = fop::List<fop::Range>(ranges_.data(), ranges_.size())};
    if (way == WriteSpec::Way::kMemory) body.target.emplace();
    FopSpec spec{.type = type_of("read"), .body = body};
    if (way == WriteSpec::Way::kMemory) spec.target_bytes = fop::total_bytes(ranges_);
    return spec;
}

}  // namespace fopd::reqh::testing

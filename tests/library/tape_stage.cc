#include "tests/library/tape_stage.h"

#include <algorithm>
#include <utility>

#include "core/crc32c.h"
#include "devices/tape/element_address.h"
#include "io_sched/disk.h"
#include "objects/block_io.h"
#include "objects/home_volume.h"
#include "objects/object_change.h"
#include "store/aligned_memory.h"
#include "tests/catch.h"

namespace fopd::library::testing {

using objects::kBlock;

Bytes pattern(std::size_t size_bytes, std::uint64_t seed) {
    core::Random random(seed + 1);
    Bytes bytes(size_bytes);
    for (std::byte& each : bytes) each = static_cast<std::byte>(random.next());
    return bytes;
}

// -- the bay --

class StageBay::Open final : public BayLibrary {
public:
    Open(core::Reactor& reactor, devices::TapeLibraryImage& image,
         devices::MemoryLibraryOptions options)
        : library(reactor, image, std::move(options)) {}

    devices::Changer& changer() override { return library; }
    std::vector<devices::TapeDrive*> drives() override {
        std::vector<devices::TapeDrive*> drives;
        for (std::uint32_t i = 0; i < library.drive_count(); ++i) {
            drives.push_back(&library.drive(i));
        }
        return drives;
    }
    Task<void> close() override { co_return; }

    devices::MemoryLibrary library;
};

Task<Result<std::unique_ptr<BayLibrary>>> StageBay::open_library(core::Reactor* reactor,
                                                                 LibraryOptions options) {
    co_await reactor->yield();
    devices::MemoryLibraryOptions of_library{
        .name = options.name, .technologies = technologies, .seed = seed_, .power = power_};
    auto open = std::make_unique<Open>(*reactor, image_, std::move(of_library));
    library_ = &open->library;
    co_return open;
}

Task<Result<std::string>> StageBay::read_media(core::Reactor* reactor) {
    co_await reactor->yield();
    if (media_.empty()) {
        co_return std::unexpected(Error{.code = Errc::kNotFound, .context = "the table"});
    }
    co_return media_;
}

Task<Result<void>> StageBay::write_media(core::Reactor* reactor, std::string text) {
    co_await reactor->sleep_for(1ms);
    if (refuses_to_write) {
        co_return std::unexpected(Error{.code = Errc::kIo, .context = "the table"});
    }
    media_ = std::move(text);
    co_return Result<void>{};
}

// -- coming and going --

TapeStage::TapeStage(const TapeStageOptions& given)
    : Replay(given.seed),
      options(given),
      world(given.seed),
      random(given.seed * 31 + 7),
      tapes({.drives = given.drives, .exchange = given.exchange}),
      bay(tapes) {
    bay.technologies = options.technologies;
    node_.fill(std::byte{7});
    for (std::uint32_t i = 0; i < options.disks; ++i) {
        remains_.push_back(std::make_unique<Remains>(options.disk_bytes));
    }
    for (std::uint32_t i = 0; i < options.cartridges; ++i) {
        tapes.add({.barcode = "V0000" + std::to_string(i) + "L9",
                   .capacity_bytes = options.cartridge_bytes});
    }
    start();
}

TapeStage::~TapeStage() {
    destroy();
}

TapeStage::Locality::Locality(TapeStage& stage, std::uint32_t /*number*/)
    : reactor(stage.world.make_reactor()),
      buffers(*reactor),
      io(*reactor, stage.options.io),
      name_index({.reactor = *reactor, .random = stage.random}, name_image),
      shard({.reactor = *reactor, .clock = stage.world.clock()}, name_index, {}),
      part(*reactor, names_gate, shard),
      names(*reactor, {&part}) {
    const auto opened = buffers.open(4 * core::kBufferBytes);
    REQUIRE(opened.has_value());
    REQUIRE(shard.open().has_value());
}

void TapeStage::make_machine(std::uint32_t number) {
    core::Reactor& reactor = *localities_[home_of(number)]->reactor;
    store::NameSink* const names = options.names ? &localities_[home_of(number)]->shard : nullptr;
    auto machine = std::make_unique<Machine>();
    machine->disk = std::make_unique<devices::MemoryDisk>(
        reactor, remains_[number]->image,
        devices::MemoryDiskOptions{.seed = random.next(), .power = power_.get()});
    machine->index = std::make_unique<store::MapIndex>(
        store::MapIndex::World{.reactor = reactor, .random = random}, remains_[number]->index);
    store::VolumeOptions volume{.slot = static_cast<store::Slot>(1 + number),
                                .segment_blocks = 64,
                                .flush_interval = 20ms,
                                .checkpoint_interval = 200ms};
    volume.disk_id.fill(static_cast<std::byte>(disks_made_ + number));
    machine->disk_id = volume.disk_id;
    machine->volume = std::make_unique<store::Volume>(store::VolumeParts{.reactor = reactor,
                                                                         .device = *machine->disk,
                                                                         .index = *machine->index,
                                                                         .events = events,
                                                                         .names = names},
                                                      volume);
    machines_.push_back(std::move(machine));
}

Task<Result<void>> TapeStage::open(std::uint32_t number) {
    Machine& machine = *machines_[number];
    if (!remains_[number]->formatted) {
        const auto formatted = co_await machine.volume->format();
        if (!formatted) co_return formatted;
        remains_[number]->formatted = true;
    }
    const auto opened = co_await machine.volume->open(store::Volume::Mode::kServe);
    if (!opened) co_return opened;
    Locality& home = *localities_[home_of(number)];
    const io_sched::MediumId medium{1'000'000 + number};
    const auto added = io_sched::add_disk(home.io, medium, *machine.disk);
    if (!added) co_return added;
    objects::HomeDisk disk{.disk_id = machine.disk_id,
                           .pool = objects::pool_id(options.pool.staging),
                           .volume = machine.volume.get(),
                           .medium = medium};
    home.stores->add(disk);
    co_return Result<void>{};
}

std::shared_ptr<objects::StoreLayout> TapeStage::layout() const {
    auto layout = std::make_shared<objects::StoreLayout>();
    layout->version = 1;
    const std::string missing = away_.empty() ? "" : "a disk";
    layout->pools = {{.id = objects::pool_id(options.pool.staging),
                      .name = options.pool.staging,
                      .missing = missing},
                     {.id = objects::pool_id(options.pool.name),
                      .name = options.pool.name,
                      .staging = objects::pool_id(options.pool.staging),
                      .missing = missing}};
    for (std::uint32_t i = 0; i < options.disks; ++i) {
        layout->slots.push_back({.slot = static_cast<store::Slot>(1 + i),
                                 .locality = home_of(i),
                                 .pool = objects::pool_id(options.pool.staging)});
    }
    return layout;
}

void TapeStage::bring_back(std::uint32_t disk) {
    away_.erase(disk);
    const auto opened = at(home_of(disk), open(disk));
    if (!opened) FAIL(describe(opened.error()));
    for (const auto& each : localities_) each->stores->set_layout(layout());
    localities_[home_of(disk)]->staging->look_at(static_cast<store::Slot>(1 + disk));
}

void TapeStage::start() {
    power_ = std::make_unique<devices::Power>();
    bay.begin_life(*power_, random.next());
    for (std::uint32_t i = 0; i < options.localities; ++i) {
        localities_.push_back(std::make_unique<Locality>(*this, i));
    }
    LibraryOptions library{.name = "library",
                           .timing = options.timing,
                           .labels_blank = options.labels_blank,
                           .pools = {options.pool}};
    library.pools.front().piece_bytes = piece_bytes;
    std::vector<objects::Stores*> all;
    for (std::uint32_t i = 0; i < options.localities; ++i) {
        Locality& locality = *localities_[i];
        locality.stores =
            std::make_unique<objects::Stores>(objects::StoresParts{.locality = i,
                                                                   .reactor = *locality.reactor,
                                                                   .io = locality.io,
                                                                   .buffers = locality.buffers,
                                                                   .clock = world.clock(),
                                                                   .events = events,
                                                                   .names = locality.names});
        locality.stores->set_layout(layout());
        locality.staging = std::make_unique<StagingDisks>(*locality.stores, library);
        all.push_back(locality.stores.get());
    }
    for (const auto& each : localities_) each->stores->introduce(all);
    for (std::uint32_t i = 0; i < options.disks; ++i) make_machine(i);
    for (std::uint32_t i = 0; i < options.disks; ++i) {
        if (away_.contains(i)) continue;
        const auto opened = at(home_of(i), open(i));
        if (!opened) FAIL(describe(opened.error()));
    }
    library_ = std::make_unique<TapeLibrary>(TapeLibrary::Parts{.reactor = reactor(0),
                                                                .clock = world.clock(),
                                                                .events = events,
                                                                .io = localities_[0]->io,
                                                                .bay = bay,
                                                                .node = node_},
                                             library);
    std::vector<HomeDoors::Door> doors;
    for (const auto& each : localities_) {
        doors.push_back({.disks = each->staging.get(),
                         .reactor = each->reactor.get(),
                         .gate = &each->stores->duties()});
    }
    library_->start(std::move(doors));
    for (const auto& each : localities_) {
        each->staging->begin({.reactor = &reactor(0), .bell = library_.get()});
    }
}

Task<std::uint64_t> TapeStage::stop_library(Instant deadline) {
    co_return co_await library_->stop(deadline);
}

Task<Result<void>> TapeStage::stop_stores(std::uint32_t locality) {
    co_await localities_[locality]->stores->stop();
    co_return Result<void>{};
}

void TapeStage::stop() {
    REQUIRE(at(0, stop_library(kNever)) == 0);
    stop_disks();
    for (std::uint32_t i = 0; i < options.localities; ++i) {
        REQUIRE(world.run(reactor(i), localities_[i]->io.stop()));
    }
    destroy();
    for (const auto& each : remains_) each->image.settle();
    tapes.settle();
}

void TapeStage::lose_node(End end, std::uint32_t disks) {
    if (end == End::kStopped) {
        stop();
    } else {
        lose_power();
    }
    options.disks = disks;
    remains_.clear();
    for (std::uint32_t i = 0; i < disks; ++i) {
        remains_.push_back(std::make_unique<Remains>(options.disk_bytes));
    }
    disks_made_ = static_cast<std::uint8_t>(disks_made_ + 0x10);
    node_.fill(static_cast<std::byte>(disks_made_));
    bay.media().clear();
    away_.clear();
    start();
}

std::optional<store::Fid> TapeStage::find_name(std::string_view wanted, std::uint32_t locality) {
    const objects::ObjectName of_pool{.pool = objects::pool_id(options.pool.name), .name = wanted};
    const auto found = at(locality, localities_[locality]->names.find(of_pool));
    REQUIRE(found.has_value());
    if (!*found) return std::nullopt;
    return (*found)->fid;
}

bool TapeStage::exists(store::Fid fid) {
    if (disk_of(fid) >= options.disks) return false;
    const auto object = volume(disk_of(fid)).map().find(fid);
    REQUIRE(object.has_value());
    const bool exists = object->has_value();
    volume(disk_of(fid)).map().release();
    return exists;
}

// Its texts are the object's while it stays as it is.
store::Object TapeStage::attributes(store::Fid fid) {
    const auto object = volume(disk_of(fid)).map().find(fid);
    REQUIRE(object.has_value());
    REQUIRE(object->has_value());
    return **object;
}

void TapeStage::stop_disks() {
    for (std::uint32_t i = 0; i < options.localities; ++i) {
        REQUIRE(at(i, stop_stores(i)).has_value());
        localities_[i]->staging->let_go();
        for (const auto& home : localities_[i]->stores->volumes()) {
            REQUIRE(home->hold_count() == 0);
        }
    }
    for (std::uint32_t i = 0; i < options.disks; ++i) {
        const auto closed = at(home_of(i), machines_[i]->volume->close());
        REQUIRE(closed.has_value());
    }
}

std::uint64_t TapeStage::stop_within(Duration patience) {
    const std::uint64_t left = at(0, stop_library(after(world.now(), patience)));
    stop_disks();
    destroy();
    for (const auto& each : remains_) each->image.settle();
    tapes.settle();
    return left;
}

void TapeStage::lose_power() {
    power_->cut();
    destroy();
    for (const auto& each : remains_) each->image.crash(random);
    tapes.crash(random);
}

void TapeStage::lose_power_within(std::uint64_t steps, Duration span) {
    power_->cut_at(1 + random.below(steps));
    const Instant end = after(world.now(), span);
    while (power_->on() && world.now() < end && world.step(end)) {
    }
    lose_power();
}

// As a process that is killed: the coroutines go where they are, then what they used.
void TapeStage::destroy() {
    for (auto each = localities_.rbegin(); each != localities_.rend(); ++each) {
        (*each)->reactor->drop_coroutines();
    }
    library_.reset();
    for (const auto& each : localities_) each->staging.reset();
    for (const auto& each : localities_) each->stores.reset();
    machines_.clear();
    localities_.clear();
}

// -- objects --

StagingDisks& TapeStage::staging_of(store::Fid fid) {
    return staging(home_of(disk_of(fid)));
}

// A new content for the object, or its removal.
Task<Result<void>> TapeStage::change(store::Fid fid, const Bytes* bytes) {
    Locality& locality = *localities_[home_of(disk_of(fid))];
    objects::HomeVolume& home = *locality.stores->find(fid.slot());
    const objects::HomeVolume::Hold hold(home);
    objects::RangeLock lock;
    const objects::LockRequest whole{
        .fid = fid, .range = objects::kWholeObject, .mode = objects::LockMode::kExclusive};
    const auto locked = co_await home.locks().acquire(lock, whole, {});
    if (!locked) co_return locked;
    objects::ObjectChange change(home);
    const objects::PoolOwner alice{.pool = objects::pool_id(options.pool.name), .owner = "alice"};
    change.set_block_owner(alice);
    if (bytes == nullptr) {
        const auto blocks = co_await home.volume().count_owned(fid, {});
        if (!blocks) co_return std::unexpected(blocks.error());
        change.will_free(alice, {.blocks = *blocks});
        change.remove(fid);
        auto room = co_await change.reserve(0, {}, store::Purpose::kFreeing);
        if (!room) co_return std::unexpected(room.error());
        const auto removed = co_await change.commit(std::move(*room));
        if (!removed) co_return std::unexpected(removed.error());
        co_return Result<void>{};
    }
    const std::size_t blocks = (bytes->size() + kBlock - 1) / kBlock;
    for (std::uint64_t at = 0; at < blocks; at += 1024) {
        const std::uint64_t count = std::min<std::uint64_t>(blocks - at, 1024);
        const auto charged = change.charge_holes(fid, {.first = at, .count = count});
        if (!charged) co_return std::unexpected(charged.error());
    }
    auto memory = store::AlignedMemory::allocate(std::max<std::size_t>(blocks, 1) * kBlock);
    if (!memory) co_return std::unexpected(memory.error());
    std::ranges::fill(memory->span(), std::byte{0});
    std::ranges::copy(*bytes, memory->span().begin());
    objects::BlockIo io;
    io.use({.reactor = locality.reactor.get(), .scheduler = &locality.io, .medium = home.medium()});
    std::deque<std::vector<std::uint32_t>> checksums;
    for (std::size_t at = 0; at < blocks;) {
        const auto wanted = static_cast<std::uint32_t>(std::min<std::size_t>(blocks - at, 200));
        const auto range = co_await change.allocate(wanted, {});
        if (!range) {
            change.give_back();
            co_return std::unexpected(range.error());
        }
        auto& sums = checksums.emplace_back();
        for (std::size_t i = 0; i < range->count; ++i) {
            sums.push_back(core::crc32c(memory->span().subspan((at + i) * kBlock, kBlock)));
        }
        change.records().extent(fid, {.first = at, .block = range->block, .checksums = sums});
        const core::Buffer from{.data = memory->span().data() + at * kBlock,
                                .size_bytes = range->count * kBlock};
        io.write(from, range->block, {});
        const auto written = co_await io.wait();
        if (!written) co_return written;
        at += range->count;
    }
    const auto before = home.volume().map().find(fid);
    if (!before) co_return std::unexpected(before.error());
    store::Object object = *before ? **before : store::Object{.version = 0, .mode = 0600};
    object.pool = objects::pool_id(options.pool.name);
    object.size_bytes = bytes->size();
    if (bytes->empty()) {
        object.is_released = false;
        object.released_blocks = 0;
    }
    object.owner = "alice";
    if (!before->has_value()) {
        object.collection = collection;
        object.group = group;
        object.name = name;
        object.name_version = name.empty() ? 0 : ++name_version;
    }
    object.changed = world.clock().wall();
    object.next_content();
    change.put_object(fid, object);
    auto room = co_await change.reserve(0, {});
    if (!room) co_return std::unexpected(room.error());
    const auto done = co_await change.commit(std::move(*room));
    if (!done) co_return std::unexpected(done.error());
    co_return Result<void>{};
}

store::Fid TapeStage::put(const Bytes& bytes, std::uint32_t disk) {
    Locality& locality = *localities_[home_of(disk)];
    const store::Fid fid = locality.stores->find(static_cast<store::Slot>(1 + disk))->make_fid();
    const auto done = at_home(fid, change(fid, &bytes));
    if (!done) FAIL(describe(done.error()));
    return fid;
}

void TapeStage::overwrite(store::Fid fid, const Bytes& bytes) {
    const auto done = at_home(fid, change(fid, &bytes));
    if (!done) FAIL(describe(done.error()));
}

void TapeStage::remove(store::Fid fid) {
    const auto done = at_home(fid, change(fid, nullptr));
    if (!done) FAIL(describe(done.error()));
}

Task<Result<std::optional<Bytes>>> TapeStage::read_all(store::Fid fid) {
    Locality& locality = *localities_[home_of(disk_of(fid))];
    objects::HomeVolume& home = *locality.stores->find(fid.slot());
    const auto object = home.volume().map().find(fid);
    if (!object) co_return std::unexpected(object.error());
    ENSURE(object->has_value());
    if ((*object)->is_released) co_return std::optional<Bytes>();
    const std::uint64_t size = (*object)->size_bytes;
    const std::uint64_t blocks = (size + kBlock - 1) / kBlock;
    auto memory = store::AlignedMemory::allocate(std::max<std::size_t>(blocks, 1) * kBlock);
    if (!memory) co_return std::unexpected(memory.error());
    std::ranges::fill(memory->span(), std::byte{0});
    struct Run {
        std::uint64_t first = 0;
        std::uint64_t block = 0;
        std::uint64_t count = 0;
    };
    std::vector<Run> runs;
    for (std::uint64_t at = 0; at < blocks; at += 1024) {
        const std::uint64_t count = std::min<std::uint64_t>(blocks - at, 1024);
        auto extents = home.volume().map().extents(fid, {.first = at, .count = count});
        for (;;) {
            const auto extent = extents.next();
            if (!extent) co_return std::unexpected(extent.error());
            if (!extent->has_value()) break;
            runs.push_back({.first = (*extent)->first,
                            .block = (*extent)->block,
                            .count = (*extent)->count()});
        }
    }
    objects::BlockIo io;
    io.use({.reactor = locality.reactor.get(), .scheduler = &locality.io, .medium = home.medium()});
    for (const Run& run : runs) {
        const core::Buffer into{.data = memory->span().data() + run.first * kBlock,
                                .size_bytes = run.count * kBlock};
        io.read(into, run.block, {});
        const auto got = co_await io.wait();
        if (!got) co_return std::unexpected(got.error());
    }
    const auto bytes = memory->span().first(size);
    co_return std::optional<Bytes>(Bytes(bytes.begin(), bytes.end()));
}

std::optional<Bytes> TapeStage::read(store::Fid fid) {
    auto bytes = at_home(fid, read_all(fid));
    if (!bytes) FAIL(describe(bytes.error()));
    return *std::move(bytes);
}

bool TapeStage::is_released(store::Fid fid) {
    const auto object = volume(disk_of(fid)).map().find(fid);
    REQUIRE(object.has_value());
    REQUIRE(object->has_value());
    const bool is_released = (*object)->is_released;
    volume(disk_of(fid)).map().release();
    return is_released;
}

std::uint64_t TapeStage::owned_blocks() {
    std::uint64_t blocks = 0;
    const objects::PoolOwner alice{.pool = objects::pool_id(options.pool.name), .owner = "alice"};
    for (std::uint32_t i = 0; i < options.disks; ++i) {
        objects::Stores& stores = *localities_[home_of(i)]->stores;
        objects::HomeVolume& home = *stores.find(static_cast<store::Slot>(1 + i));
        blocks += home.use().owner(alice).amount().blocks;
    }
    return blocks;
}

std::vector<store::Copy> TapeStage::copies_of(store::Fid fid) {
    const auto copies = volume(disk_of(fid)).copies_of(fid);
    REQUIRE(copies.has_value());
    return *copies;
}

Bytes TapeStage::recalled(store::Fid fid) {
    auto bytes = read(fid);
    for (int tries = 0; !bytes && tries < 3; ++tries) {
        const auto asked = recall(fid);
        if (!asked) FAIL(describe(asked.error()));
        const RecallEnd end = wait_for(fid);
        INFO(end.reason);
        REQUIRE(end.how == RecallEnd::How::kDone);
        bytes = read(fid);
    }
    REQUIRE(bytes.has_value());
    return *std::move(bytes);
}

Result<void> TapeStage::sync(Duration patience) {
    const core::WaitOptions wait{.deadline = after(world.now(), patience)};
    return at(0, library().sync(options.pool.name, wait));
}

Result<void> TapeStage::release(store::Fid fid) {
    const core::WaitOptions wait{.deadline = after(world.now(), 1min)};
    return at_home(fid, staging_of(fid).release(fid, wait));
}

Result<RecallAsked> TapeStage::recall(store::Fid fid, Duration pin) {
    const core::WaitOptions wait{.deadline = after(world.now(), 1min)};
    return at_home(fid, staging_of(fid).recall({.fid = fid, .pin = pin}, wait));
}

RecallEnd TapeStage::wait_for(store::Fid fid, Duration patience) {
    const core::WaitOptions wait{.deadline = after(world.now(), patience)};
    const auto end = at_home(fid, staging_of(fid).wait_for_recall(fid, wait));
    if (!end) FAIL(describe(end.error()));
    return *end;
}

// -- what several tests do --

Book put_some(TapeStage& stage, std::size_t count, std::size_t size_max) {
    Book book;
    for (std::size_t i = 0; i < count; ++i) {
        const Bytes bytes = pattern(1 + stage.random.below(size_max), stage.random.next());
        const auto disk = static_cast<std::uint32_t>(i % stage.options.disks);
        book.emplace(stage.put(bytes, disk), bytes);
    }
    return book;
}

void release_all(TapeStage& stage, const Book& book) {
    for (const auto& [fid, bytes] : book) {
        const auto released = stage.release(fid);
        if (!released) FAIL(describe(released.error()));
        REQUIRE(released.has_value());
    }
}

void check_all(TapeStage& stage, const Book& book) {
    for (const auto& [fid, bytes] : book) {
        const Bytes found = stage.recalled(fid);
        const bool is_same = found == bytes;
        REQUIRE(is_same);
    }
}

Cartridge cartridge(TapeStage& stage, std::string_view barcode) {
    for (const Cartridge& each : stage.library().media()) {
        if (each.barcode == barcode) return each;
    }
    FAIL("there is no cartridge " << barcode);
    return {};
}

void restart_with_state(TapeStage& stage, std::string_view barcode, CartridgeState state,
                        std::string_view reason) {
    stage.stop();
    std::string& media = stage.bay.media();
    auto table = MediaTable::parse(media);
    REQUIRE(table.has_value());
    table->set_state(table->find(barcode)->id, state, reason);
    media = table->text();
    stage.start();
}

void unload_all(TapeStage& stage) {
    for (const DriveRow& each : stage.library().drives()) {
        const MediaOutcome outcome = stage.at(0, stage.library().unload(each.name));
        REQUIRE(outcome.kind == MediaOutcome::Kind::kDone);
    }
}

std::uint32_t address_of(TapeStage& stage, std::string_view barcode) {
    for (std::uint32_t i = 0; i < stage.tapes.size().storage; ++i) {
        const std::uint32_t address = devices::kStorageAddress + i;
        devices::CartridgeImage* const image = stage.tapes.at(address);
        if (image != nullptr && image->info().barcode == barcode) return address;
    }
    FAIL("cartridge " << barcode << " is in no storage element");
    return 0;
}

}  // namespace fopd::library::testing

#include "tests/library/tape_stage.h"

#include <utility>

#include "devices/tape/element_address.h"
#include "io_sched/disk.h"
#include "objects/home_volume.h"
#include "tests/catch.h"

namespace fopd::library::testing {

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
    const auto slept = co_await reactor->sleep_for(1ms);
    ENSURE(slept.has_value());
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

void TapeStage::use_io(const io_sched::IoSchedSettings& settings) {
    localities_.front()->io.use(settings);
    library_->io_settings_changed();
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

// -- what several tests do --

Cartridge cartridge(TapeStage& stage, std::string_view barcode) {
    for (const Cartridge& each : stage.library().media()) {
        if (each.barcode == barcode) return each;
    }
    FAIL("there is no cartridge " << barcode);
    return {};
}

std::string written_cartridge(TapeStage& stage) {
    for (const Cartridge& each : stage.library().media()) {
        if (each.files > 0) return each.barcode;
    }
    FAIL("no cartridge has been written");
    return {};
}

OnTape put_on_tape(TapeStage& stage, std::uint64_t seed) {
    OnTape object{.bytes = pattern(100'000, seed)};
    object.fid = stage.put(object.bytes);
    REQUIRE(stage.sync().has_value());
    REQUIRE(stage.release(object.fid).has_value());
    const std::vector<store::Copy> copies = stage.copies_of(object.fid);
    REQUIRE_FALSE(copies.empty());
    for (const Cartridge& each : stage.library().media()) {
        if (each.vsn_text() == copies.front().cartridge.vsn) object.barcode = each.barcode;
    }
    REQUIRE_FALSE(object.barcode.empty());
    return object;
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

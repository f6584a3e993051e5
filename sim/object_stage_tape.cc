// Faults of the tape library of an ObjectStage, and what must hold of its tapes.

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "core/ensure.h"
#include "devices/tape/element_address.h"
#include "devices/tape/memory_library.h"
#include "library/tape_library.h"
#include "objects/fids.h"
#include "sim/object_stage.h"
#include "store/tape/recovery.h"
#include "store/tape/tape_reader.h"

namespace fopd::sim {

namespace {

using devices::CartridgeImage;
using devices::kDriveAddress;

constexpr Duration kRest = 1h;
// Cartridges that were not written for so long get their index files, or have them.
constexpr Duration kSessionsEnd = 3min;
// Faults of a library last so much longer than others.
constexpr int kSlower = 1000;
constexpr Duration kBetweenLooks = 1min;
// In which a library that was repaired is opened, and its foreign cartridges are looked at.
constexpr Duration kLookMax = 4h;

std::string barcode_of(CartridgeImage* image) {
    return image->info().barcode;
}

// The volume serial number in VOL1; empty: it has no such label.
std::string label_of(const CartridgeImage& image) {
    constexpr std::size_t kVsnAt = 4;
    if (image.count() == 0) return {};
    const devices::TapeRecord first = image.map().find(0);
    std::array<std::byte, store::kTapeLabelBytes> label{};
    if (!first.readable || first.size_bytes != label.size()) return {};
    image.read(0, label);
    const std::string text(reinterpret_cast<const char*>(label.data()), label.size());
    return text.starts_with("VOL1") ? text.substr(kVsnAt, store::Vsn::kCharacters) : "";
}

}  // namespace

// -- faults --

library::TapeLibrary* ObjectStage::tape_library() {
    return node_.running() ? node_.node().localities()[0]->library() : nullptr;
}

std::vector<std::uint32_t> ObjectStage::idle_cartridges() {
    std::vector<std::uint32_t> elements = node_.library().image().full_elements();
    std::erase_if(elements, [](std::uint32_t each) { return each < devices::kStorageAddress; });
    return elements;
}

void ObjectStage::carry_out_on_tapes(const ObjectFault& fault) {
    using Kind = ObjectFault::Kind;
    SimulatedLibrary& library = node_.library();
    const std::vector<std::uint32_t> idle = idle_cartridges();
    if (fault.kind == Kind::kRepack) return repack_a_cartridge(fault.tape);
    if (fault.kind != Kind::kDamage) {
        book_.excuse_tapes();
        due_.push_back({after(world_.now(), kSlower * fault.span), fault});
    }
    switch (fault.kind) {
        case Kind::kTapes: library.set_faults(fault.tapes); break;
        case Kind::kDriveDies:
            library.image().drive(fault.tape % library.image().size().drives).dead = true;
            break;
        case Kind::kSwapLabels: {
            if (idle.size() < 2) break;
            const std::size_t first = fault.tape % (idle.size() - 1);
            devices::CartridgeInfo& one = library.image().at(idle[first])->info();
            devices::CartridgeInfo& other = library.image().at(idle[first + 1])->info();
            book_.tell("the labels " + one.barcode + " and " + other.barcode + " are swapped");
            labels_swapped_ = true;
            std::swap(one.barcode, other.barcode);
            break;
        }
        case Kind::kTakeCartridge:
            if (idle.empty()) break;
            taken_cartridges_.push_back(library.image().take(idle[fault.tape % idle.size()]));
            book_.tell(barcode_of(taken_cartridges_.back().get()) + " is taken");
            break;
        case Kind::kDamage: damage_a_file(fault.tape); break;
        default: ENSURE(false);
    }
}

// People repair the library, and start the node again, as drives that are down stay so.
void ObjectStage::end_fault_of_tapes(const ObjectFault& fault) {
    if (!node_.running() || restarting_) {
        due_.push_back({after(world_.now(), 10s), fault});
        return;
    }
    end_node({.kind = ObjectFault::Kind::kRestart, .repair_tapes = true});
}

// REQUIRES: the node does not run.
void ObjectStage::repair_library() {
    SimulatedLibrary& library = node_.library();
    library.set_faults({});
    for (std::uint32_t i = 0; i < library.image().size().drives; ++i) {
        library.image().drive(i).dead = false;
    }
    for (auto& each : taken_cartridges_) library.image().bring(std::move(each));
    taken_cartridges_.clear();
    if (std::exchange(labels_swapped_, false)) put_right_labels();
    book_.tell("the library is repaired");
}

// Each cartridge gets the barcode that its own label says; those without a label get the rest.
void ObjectStage::put_right_labels() {
    devices::TapeLibraryImage& image = node_.library().image();
    std::set<std::string> barcodes;
    std::vector<CartridgeImage*> blank;
    for (const std::uint32_t address : image.full_elements()) {
        barcodes.insert(barcode_of(image.at(address)));
    }
    for (const std::uint32_t address : image.full_elements()) {
        CartridgeImage* const cartridge = image.at(address);
        const std::string own = label_of(*cartridge);
        const auto right = std::ranges::find_if(
            barcodes, [&own](const std::string& each) { return each.starts_with(own); });
        if (own.empty() || right == barcodes.end()) {
            blank.push_back(cartridge);
            continue;
        }
        cartridge->info().barcode = *right;
        barcodes.erase(right);
    }
    for (CartridgeImage* const each : blank) {
        each->info().barcode = *barcodes.begin();
        barcodes.erase(barcodes.begin());
    }
}

std::vector<store::Copy> ObjectStage::live_copies() {
    std::vector<store::Copy> all;
    for (const auto& disk : node_.node().disks().all()) {
        store::Volume* const volume = disk->volume();
        if (volume == nullptr) continue;
        for (const auto& [vsn, use] : volume->cartridges()) {
            const auto copies = volume->copies_on(vsn, {}, use.live_copies);
            ENSURE(copies.has_value());
            all.insert(all.end(), copies->begin(), copies->end());
        }
    }
    return all;
}

// The block in which a copy begins.
void ObjectStage::damage_a_file(std::uint32_t number) {
    if (!node_.running() || node_.node().state() != daemon::NodeState::kReady) return;
    const std::vector<store::Copy> copies = live_copies();
    if (copies.empty()) return;
    const store::Copy& copy = copies[number % copies.size()];
    const std::string vsn(store::text_of(copy.cartridge.vsn));
    for (const std::uint32_t address : idle_cartridges()) {
        CartridgeImage* const image = node_.library().image().at(address);
        if (!barcode_of(image).starts_with(vsn)) continue;
        const store::TapeFile file{.number = copy.place.file, .block = copy.block};
        const std::uint64_t block =
            file.first_data_block() + copy.place.member / store::kTapeDataBytes;
        if (block >= image->count()) return;
        image->make_unreadable(block);
        has_damage_ = true;
        std::set<fop::Fid> fids;
        for (const store::Copy& each : copies) {
            const bool is_there =
                each.cartridge == copy.cartridge && each.place.file == file.number;
            if (is_there) fids.insert(objects::fop_fid(each.fid));
        }
        book_.excuse_copies(fids);
        book_.tell("file " + std::to_string(file.number) + " of " + vsn + " is damaged");
        return;
    }
}

// An administrator, who does what can be done with the cartridge.
Task<void> ObjectStage::order_repack(library::TapeLibrary* library, std::string barcode,
                                     std::uint32_t number) {
    const std::vector<library::Cartridge> media = library->media();
    const auto cartridge = std::ranges::find(media, barcode, &library::Cartridge::barcode);
    if (cartridge == media.end()) co_return;
    const bool ends = number % 3 == 0;
    // The library may refuse each of them.
    if (number % 5 == 0) {
        [[maybe_unused]] const auto scrubbed = co_await library->scrub(std::move(barcode));
    } else if (cartridge->repack == library::Repack::kDone && !ends) {
        const library::LibraryService::FormatWish wish{.barcode = barcode, .pool = cartridge->pool};
        [[maybe_unused]] const auto formatted = co_await library->format(wish);
    } else if (cartridge->repack == library::Repack::kNone || !ends) {
        [[maybe_unused]] const auto begun = co_await library->repack(std::move(barcode));
    } else {
        [[maybe_unused]] const auto ended = co_await library->cancel_repack(std::move(barcode));
    }
}

void ObjectStage::repack_a_cartridge(std::uint32_t number) {
    if (!node_.running() || node_.node().state() != daemon::NodeState::kReady) return;
    std::vector<library::Cartridge> media = tape_library()->media();
    std::erase_if(media, [](const library::Cartridge& each) { return each.files == 0; });
    if (media.empty()) return;
    std::string barcode = media[number % media.size()].barcode;
    book_.tell(barcode + " is repacked");
    daemon::Locality& locality = *node_.node().localities()[0];
    locality.reactor().spawn(locality.work(),
                             order_repack(tape_library(), std::move(barcode), number));
}

// -- after faults --

// An administrator loads cartridges that had another one's label, so that they are looked at again.
Task<void> ObjectStage::load_foreign(library::TapeLibrary* library, core::Reactor* reactor,
                                     bool* done) {
    for (;;) {
        const auto media = library->media();
        const auto foreign =
            std::ranges::find(media, library::CartridgeState::kForeign, &library::Cartridge::state);
        const auto drives = library->drives();
        const bool is_open =
            library->is_open() && drives.size() == node_.library().image().size().drives;
        if (is_open && foreign == media.end()) break;
        if (is_open) {
            for (std::size_t i = 0; i < drives.size(); ++i) {
                const library::LibraryService::LoadWish wish{.barcode = foreign->barcode,
                                                             .drive = drives[i].name};
                const auto loaded = co_await library->load(wish);
                if (loaded.kind == library::MediaOutcome::Kind::kDone) break;
            }
        }
        const auto slept = co_await reactor->sleep_for(1s);
        if (!slept) co_return;
    }
    *done = true;
}

bool ObjectStage::repair_tapes() {
    end_node({.kind = ObjectFault::Kind::kRestart, .repair_tapes = true});
    if (!play() || !run_until_ready()) return false;
    bool done = false;
    daemon::Locality& locality = *node_.node().localities()[0];
    locality.reactor().spawn(locality.work(),
                             load_foreign(tape_library(), &locality.reactor(), &done));
    const Instant limit = after(world_.now(), kLookMax);
    while (kept() && !done && world_.now() < limit) step(limit);
    if (!done) book_.break_promise("a library that was repaired has foreign cartridges");
    book_.repair_tapes();
    return kept();
}

bool ObjectStage::sync_tapes() {
    users_.front()->make({.kind = ObjectWish::Kind::kSyncTape});
    return play();
}

// What the library has to do, for a broken promise.
std::string ObjectStage::describe_tapes() {
    library::TapeLibrary* const library = tape_library();
    if (library == nullptr) return {};
    std::string words;
    for (const library::RecallRow& each : library->recalls(4)) {
        words += "; recall of " + text(objects::fop_fid(each.ticket)) + " from " + each.cartridge;
    }
    for (const library::DriveRow& each : library->drives()) {
        words += "; " + each.name + " " + each.activity + " " + each.barcode + " " + each.reason;
    }
    for (const library::Cartridge& each : library->media()) {
        words += "; " + each.barcode + " " + std::string(to_string(each.state));
    }
    return words;
}

bool ObjectStage::do_tapes_rest() {
    library::TapeLibrary* const library = tape_library();
    if (library == nullptr || !library->recalls(1).empty()) return false;
    const auto media = library->media();
    const bool is_worked_on = std::ranges::any_of(media, [](const library::Cartridge& each) {
        return each.repack == library::Repack::kRunning || each.scrub_file != 0;
    });
    if (is_worked_on) return false;
    const auto drives = library->drives();
    const bool are_idle = std::ranges::all_of(drives, [](const library::DriveRow& each) {
        return each.activity == "idle" || each.activity == "down";
    });
    return are_idle && !drives.empty();
}

bool ObjectStage::rest_tapes() {
    const Instant limit = after(world_.now(), work_max_);
    while (kept() && !do_tapes_rest()) {
        const Instant next = after(world_.now(), kBetweenLooks);
        while (kept() && world_.now() < next) step(next);
        if (world_.now() >= limit) book_.break_promise("recalls do not end" + describe_tapes());
    }
    if (!kept()) return false;
    for (const fop::Fid fid : book_.fids()) {
        const daemon::NodeDisk* disk = nullptr;
        for (const auto& each : node_.node().disks().all()) {
            if (each->slot() == fid.slot()) disk = each.get();
        }
        if (disk == nullptr || disk->volume() == nullptr) continue;
        const auto recall = disk->volume()->map().find_recall(objects::store_fid(fid));
        disk->volume()->map().release();
        const bool is_left = recall && recall->has_value() && (*recall)->ticket != 0;
        if (is_left) book_.break_promise("a recall of " + text(fid) + " is left");
    }
    const auto activity = [this] {
        const devices::MemoryLibrary& library = *node_.library().library();
        std::uint64_t sum = library.moves();
        for (std::uint32_t i = 0; i < library.drive_count(); ++i) {
            const devices::DriveFigures& figures = node_.library().library()->drive(i).figures();
            sum += figures.loads + figures.locates + figures.flushes + figures.read_bytes +
                   figures.written_bytes;
        }
        return sum;
    };
    std::uint64_t before = 0;
    do {
        before = activity();
        const Instant next = after(world_.now(), kSessionsEnd);
        while (kept() && world_.now() < next) step(next);
        if (world_.now() >= limit) book_.break_promise("sessions do not end" + describe_tapes());
    } while (kept() && (activity() != before || !do_tapes_rest()));
    const Instant end = after(world_.now(), kRest);
    while (kept() && world_.now() < end) step(end);
    if (activity() != before) book_.break_promise("a library that has nothing to do moves");
    return kept();
}

// -- the tapes, without the node --

class ObjectStage::TapeCheck final : public store::RecoverySink {
public:
    TapeCheck(ObjectStage& stage, std::vector<store::Copy> copies,
              std::vector<library::Cartridge> media)
        : stage_(stage),
          copies_(std::move(copies)),
          media_(std::move(media)),
          reactor_(stage.world_.make_reactor()),
          library_(*reactor_, stage.node_.library().image(), {}) {}

    Task<Result<void>> run();

    Task<Result<void>> found(store::TapeEntry entry) override {
        entries_.insert_or_assign({entry.file.number, entry.position}, std::move(entry));
        co_return Result<void>{};
    }
    Task<Result<void>> damaged(std::uint64_t file_number, Error error) override {
        if (!stage_.has_damage_) {
            wrong("file " + std::to_string(file_number) + " is damaged: " + describe(error));
        }
        co_return Result<void>{};
    }

    core::Reactor& reactor() { return *reactor_; }

private:
    devices::TapeLibraryImage& image() { return stage_.node_.library().image(); }
    devices::MemoryTape& drive() { return library_.drive(0); }
    void wrong(const std::string& words) {
        stage_.book_.break_promise("cartridge " + barcode_ + ": " + words);
    }
    Task<Result<void>> check(std::uint32_t address);
    Task<Result<void>> check_loaded();
    Task<Result<void>> compare(const store::TapeIdentity* identity);
    Task<Result<void>> read(store::TapeReader* reader, store::TapeEntry entry);

    ObjectStage& stage_;
    std::vector<store::Copy> copies_;
    std::vector<library::Cartridge> media_;
    std::unique_ptr<core::Reactor> reactor_;
    devices::MemoryLibrary library_;
    std::string barcode_;
    std::map<std::pair<std::uint64_t, std::uint64_t>, store::TapeEntry> entries_;
};

Task<Result<void>> ObjectStage::TapeCheck::run() {
    for (std::uint32_t i = 0; i < library_.drive_count(); ++i) {
        if (image().at(kDriveAddress + i) == nullptr) continue;
        const auto unloaded = co_await library_.drive(i).unload();
        if (!unloaded) co_return unloaded;
        image().bring(image().take(kDriveAddress + i));
    }
    for (const std::uint32_t address : image().full_elements()) {
        barcode_ = barcode_of(image().at(address));
        const auto checked = co_await check(address);
        if (!checked) {
            wrong(describe(checked.error()));
            co_return checked;
        }
    }
    for (const store::Copy& each : copies_) {
        const bool is_known = std::ranges::any_of(media_, [&each](const library::Cartridge& one) {
            return one.vsn == store::text_of(each.cartridge.vsn) &&
                   one.generation == each.cartridge.generation;
        });
        const std::string vsn(store::text_of(each.cartridge.vsn));
        if (!is_known) wrong("a record names " + vsn + ", which is none");
    }
    co_return Result<void>{};
}

Task<Result<void>> ObjectStage::TapeCheck::check(std::uint32_t address) {
    image().move(address, kDriveAddress);
    const auto loaded = co_await drive().load();
    if (!loaded) co_return std::unexpected(loaded.error());
    const auto checked = co_await check_loaded();
    if (!checked) co_return checked;
    const auto unloaded = co_await drive().unload();
    if (!unloaded) co_return unloaded;
    image().move(kDriveAddress, address);
    co_return Result<void>{};
}

Task<Result<void>> ObjectStage::TapeCheck::check_loaded() {
    entries_.clear();
    const auto known = std::ranges::find(media_, barcode_, &library::Cartridge::barcode);
    // It was never loaded, or its label was not written.
    const bool is_labelled = known != media_.end() && known->generation > 0 &&
                             known->state != library::CartridgeState::kBlank &&
                             known->state != library::CartridgeState::kFailed;
    if (!is_labelled) {
        const bool is_needed = std::ranges::any_of(copies_, [this](const store::Copy& each) {
            return barcode_.starts_with(store::text_of(each.cartridge.vsn));
        });
        if (is_needed) wrong("it has no label, and copies are said to be on it");
        co_return Result<void>{};
    }
    if (known->state == library::CartridgeState::kSuspect && !stage_.has_damage_) {
        wrong("it is suspect: " + known->reason);
    }
    const store::TapeIdentity identity{.vsn = *store::Vsn::from_barcode(barcode_),
                                       .node = stage_.node_.disks().node_id(),
                                       .generation = known->generation};
    store::TapeRecovery recovery(drive(), identity);
    const auto recovered = co_await recovery.run({}, this);
    if (!recovered) co_return std::unexpected(recovered.error());
    stage_.tapes_seen_.files += recovered->end.files;
    if (recovered->end.files < known->files || recovered->end.block < known->end_block) {
        wrong("it has less than the table of media says");
    }
    co_return co_await compare(&identity);
}

// Each record of a copy has a complete member, which has the bytes that it says.
Task<Result<void>> ObjectStage::TapeCheck::compare(const store::TapeIdentity* identity) {
    store::TapeReader reader(drive(), *identity);
    for (std::size_t i = 0; i < copies_.size(); ++i) {
        const store::Copy copy = copies_[i];
        if (store::text_of(copy.cartridge.vsn) != identity->vsn.text()) continue;
        const auto found = entries_.find({copy.place.file, copy.place.member});
        const bool is_known = found != entries_.end() && found->second.member.fid == copy.fid &&
                              found->second.file.block == copy.block &&
                              found->second.member.version == copy.version &&
                              found->second.member.offset == copy.offset &&
                              found->second.member.size_bytes == copy.length &&
                              found->second.member.checksum == copy.checksum &&
                              copy.cartridge.generation == identity->generation;
        if (!is_known) {
            if (!stage_.has_damage_) {
                wrong("no member is what the record of a copy in file " +
                      std::to_string(copy.place.file) + " says");
            }
            continue;
        }
        ++stage_.tapes_seen_.copies;
        const auto read_it = co_await read(&reader, found->second);
        if (!read_it && !stage_.has_damage_) wrong("a copy: " + describe(read_it.error()));
    }
    co_return Result<void>{};
}

Task<Result<void>> ObjectStage::TapeCheck::read(store::TapeReader* reader, store::TapeEntry entry) {
    auto opening = reader->open(std::move(entry));
    const auto opened = co_await std::move(opening);
    if (!opened) co_return opened;
    for (;;) {
        const auto piece = co_await reader->next();
        if (!piece) co_return std::unexpected(piece.error());
        if (piece->bytes.empty()) co_return Result<void>{};
    }
}

bool ObjectStage::end_and_check_tapes() {
    std::vector<store::Copy> copies = live_copies();
    std::vector<library::Cartridge> media = tape_library()->media();
    if (!end()) return false;
    TapeCheck check(*this, std::move(copies), std::move(media));
    [[maybe_unused]] const auto checked = world_.run(check.reactor(), check.run());
    return kept();
}

}  // namespace fopd::sim

// Checks the tapes of an ObjectStage.

#include <algorithm>
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

using devices::kDriveAddress;

constexpr Duration kRest = 1h;
// After so long without writes, each cartridge has its index file.
constexpr Duration kSessionsEnd = 3min;
constexpr Duration kBetweenLooks = 1min;
// The time limit for a repaired library to open, and to check its foreign cartridges.
constexpr Duration kLookMax = 4h;

}  // namespace

// -- after faults --

// An administrator loads the foreign cartridges, so that the library compares their labels again.
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
    bad_cartridges_.clear();
    return kept();
}

bool ObjectStage::sync_tapes() {
    users_.front()->sync_tape();
    return play();
}

// The state of the library, for the text of a broken promise.
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
        if (!is_harmed(file_number)) {
            wrong("file " + std::to_string(file_number) + " is damaged: " + describe(error));
        }
        co_return Result<void>{};
    }

    core::Reactor& reactor() { return *reactor_; }

private:
    devices::TapeLibraryImage& image() { return stage_.node_.library().image(); }
    devices::MemoryTape& drive() { return library_.drive(0); }
    bool is_harmed(std::uint64_t file) const {
        return stage_.is_harmed(barcode_.substr(0, store::Vsn::kCharacters), file);
    }
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
        barcode_ = image().at(address)->info().barcode;
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
        if (!is_known) wrong("a record names " + vsn + ", which is no cartridge");
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
        if (is_needed) wrong("it has no label, but records name copies on it");
        co_return Result<void>{};
    }
    const auto older = stage_.files_left_.find(known->vsn);
    const bool is_older = older != stage_.files_left_.end();
    // A cartridge is blamed for the failures of several drives.
    const bool is_blamed = stage_.drives_failed_ && known->reason.ends_with("I/O error");
    const bool may_be_suspect = is_older || is_blamed || stage_.damaged_files_.contains(known->vsn);
    if (known->state == library::CartridgeState::kSuspect && !may_be_suspect) {
        wrong("it is suspect: " + known->reason);
    }
    const store::TapeIdentity identity{.vsn = *store::Vsn::from_barcode(barcode_),
                                       .node = stage_.node_.disks().node_id(),
                                       .generation = known->generation};
    store::TapeRecovery recovery(drive(), identity);
    const auto recovered = co_await recovery.run({}, this);
    if (!recovered) co_return std::unexpected(recovered.error());
    stage_.tapes_seen_.files += recovered->end.files;
    if (is_older) {
        if (recovered->end.files > older->second) wrong("it was written, and has less than it had");
    } else if (recovered->end.files < known->files || recovered->end.block < known->end_block) {
        wrong("it has less than the table of media says");
    }
    co_return co_await compare(&identity);
}

// Checks that each recorded copy is a complete member with the recorded bytes.
Task<Result<void>> ObjectStage::TapeCheck::compare(const store::TapeIdentity* identity) {
    store::TapeReader reader(drive(), *identity);
    for (std::size_t i = 0; i < copies_.size(); ++i) {
        const store::Copy copy = copies_[i];
        if (store::text_of(copy.cartridge.vsn) != identity->vsn.text()) continue;
        const auto found = entries_.find({copy.position.file, copy.position.member});
        const bool is_known = found != entries_.end() && found->second.member.fid == copy.fid &&
                              found->second.file.block == copy.block &&
                              found->second.member.version == copy.version &&
                              found->second.member.offset == copy.offset &&
                              found->second.member.size_bytes == copy.length &&
                              found->second.member.checksum == copy.checksum &&
                              copy.cartridge.generation == identity->generation;
        if (!is_known) {
            if (!is_harmed(copy.position.file)) {
                wrong("no member matches the record of a copy in file " +
                      std::to_string(copy.position.file));
            }
            continue;
        }
        ++stage_.tapes_seen_.copies;
        const auto read_it = co_await read(&reader, found->second);
        if (!read_it && !is_harmed(copy.position.file))
            wrong("a copy: " + describe(read_it.error()));
    }
    co_return Result<void>{};
}

Task<Result<void>> ObjectStage::TapeCheck::read(store::TapeReader* reader, store::TapeEntry entry) {
    auto opening = reader->open(std::move(entry));
    const auto opened = co_await std::move(opening);
    if (!opened) co_return opened;
    for (;;) {
        const auto part = co_await reader->next();
        if (!part) co_return std::unexpected(part.error());
        if (part->bytes.empty()) co_return Result<void>{};
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

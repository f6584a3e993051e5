// Faults of the tape library of an ObjectStage, and their repair.

#include <algorithm>
#include <array>
#include <utility>

#include "core/ensure.h"
#include "devices/tape/element_address.h"
#include "library/tape_library.h"
#include "objects/fids.h"
#include "sim/object_stage.h"
#include "store/tape/labels.h"
#include "store/tape/tape_file.h"

namespace fopd::sim {

namespace {

using devices::CartridgeImage;

// Faults of a library last so many times longer than other faults.
constexpr int kSlower = 1000;

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

library::TapeLibrary* ObjectStage::tape_library() {
    return node_.running() ? node_.node().localities()[0]->library() : nullptr;
}

bool ObjectStage::is_ready() {
    return node_.running() && node_.node().state() == daemon::NodeState::kReady;
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
    const bool is_repaired = fault.kind != Kind::kFormat && fault.kind != Kind::kDamage &&
                             fault.kind != Kind::kOlderTape;
    if (is_repaired) {
        const bool is_of_drives = fault.kind == Kind::kTapes || fault.kind == Kind::kDriveDies;
        if (is_of_drives) book_.excuse_tapes();
        drives_failed_ = drives_failed_ || is_of_drives;
        due_.push_back({after(world_.now(), kSlower * fault.span), fault});
    }
    switch (fault.kind) {
        case Kind::kTapes: library.set_faults(fault.tapes); break;
        case Kind::kDriveDies:
            library.image().drive(fault.tape % library.image().size().drives).dead = true;
            break;
        case Kind::kSwapLabels: {
            if (!is_ready()) {
                swap_labels(fault.tape);
                break;
            }
            daemon::Locality& locality = *node_.node().localities()[0];
            locality.reactor().spawn(locality.work(), mislabel(tape_library(), fault.tape));
            break;
        }
        case Kind::kSwapElements: {
            const auto pair = draw_pair(fault.tape);
            if (!pair) break;
            excuse_cartridge(pair->first);
            excuse_cartridge(pair->second);
            library.image().swap(pair->first, pair->second);
            break;
        }
        case Kind::kTakeCartridge:
            if (idle.empty()) break;
            excuse_cartridge(idle[fault.tape % idle.size()]);
            taken_cartridges_.push_back(library.image().take(idle[fault.tape % idle.size()]));
            book_.tell(barcode_of(taken_cartridges_.back().get()) + " is taken");
            break;
        case Kind::kFormat: format_empty(fault.tape); break;
        case Kind::kDamage: damage_a_file(fault.tape); break;
        case Kind::kOlderTape: bring_older_tape(fault.tape); break;
        default: ENSURE(false);
    }
}

// Excuses a cartridge that is missing or has another label: until the library is repaired, its
// copies may be unreadable, and nothing is written to it.
void ObjectStage::excuse_cartridge(std::uint32_t element) {
    bad_cartridges_.insert(barcode_of(node_.library().image().at(element)));
    book_.excuse_cartridges();
    if (is_ready() || !node_.running()) return note_bad_cartridges();
    // The records of copies cannot be read while the node starts or stops.
    book_.excuse_tapes();
}

// Excuses the objects with live copies on bad cartridges. Called repeatedly: a crash that loses the
// last change of an object makes dead copies of it live again.
void ObjectStage::note_bad_cartridges() {
    if (bad_cartridges_.empty() || !is_ready()) return;
    std::set<fop::Fid> fids;
    for (const store::Copy& each : live_copies()) {
        const auto on_it = [&each](const std::string& barcode) {
            return barcode.starts_with(store::text_of(each.cartridge.vsn));
        };
        if (std::ranges::any_of(bad_cartridges_, on_it)) fids.insert(objects::fop_fid(each.fid));
    }
    book_.excuse_objects(fids);
}

// Notes whether the library lacks tape: not while it has a blank cartridge for each copy.
void ObjectStage::note_lack_of_tape() {
    if (tape_library() == nullptr) return;
    const std::vector<library::Cartridge> media = tape_library()->media();
    const auto blank = std::ranges::count_if(media, [](const library::Cartridge& each) {
        return each.state == library::CartridgeState::kBlank;
    });
    if (blank < tape_copies_) book_.excuse_lack_of_tape();
}

// Draws two elements with cartridges. Often, by the table of media, the first cartridge has data
// and the second one has none.
std::optional<std::pair<std::uint32_t, std::uint32_t>> ObjectStage::draw_pair(
    std::uint32_t number) {
    const std::vector<std::uint32_t> idle = idle_cartridges();
    const std::size_t count = idle.size();
    if (count < 2) return std::nullopt;
    const std::size_t first = number % count;
    const std::size_t second = (first + 1 + number / count % (count - 1)) % count;
    const std::pair any{idle[first], idle[second]};
    if (number % 3 == 0 || !is_ready()) return any;
    std::optional<std::uint32_t> full;
    std::optional<std::uint32_t> blank;
    const std::vector<library::Cartridge> media = tape_library()->media();
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint32_t address = idle[(first + i) % count];
        const std::string barcode = barcode_of(node_.library().image().at(address));
        const auto known = std::ranges::find(media, barcode, &library::Cartridge::barcode);
        const bool has_data = known != media.end() && known->files > 0;
        (has_data ? full : blank) = address;
    }
    return full && blank ? std::pair{*full, *blank} : any;
}

// Swaps the barcode labels of two cartridges. Returns the new barcode of the first one.
std::string ObjectStage::swap_labels(std::uint32_t number) {
    const auto pair = draw_pair(number);
    if (!pair) return {};
    excuse_cartridge(pair->first);
    excuse_cartridge(pair->second);
    devices::TapeLibraryImage& image = node_.library().image();
    std::string& first = image.at(pair->first)->info().barcode;
    std::string& second = image.at(pair->second)->info().barcode;
    book_.tell("the labels " + first + " and " + second + " are swapped");
    labels_swapped_ = true;
    std::swap(first, second);
    return first;
}

// People swap the labels of two cartridges, and have the seemingly blank one formatted.
Task<void> ObjectStage::mislabel(library::TapeLibrary* library, std::uint32_t number) {
    const auto drives = library->drives();
    for (std::size_t i = 0; i < drives.size(); ++i) {
        [[maybe_unused]] const auto unloaded = co_await library->unload(drives[i].name);
    }
    const std::string barcode = swap_labels(number);
    if (barcode.empty() || number % 4 == 0) co_return;
    library::LibraryService::FormatWish wish{.barcode = barcode, .pool = tape_pool_};
    co_await format(library, std::move(wish));
}

// An administrator formats a cartridge without files, by the table of media.
void ObjectStage::format_empty(std::uint32_t number) {
    if (!is_ready()) return;
    std::vector<library::Cartridge> media = tape_library()->media();
    std::erase_if(media, [](const library::Cartridge& each) { return each.files > 0; });
    if (media.empty()) return;
    library::LibraryService::FormatWish wish{.barcode = media[number % media.size()].barcode,
                                             .pool = tape_pool_};
    book_.tell(wish.barcode + " is formatted");
    daemon::Locality& locality = *node_.node().localities()[0];
    locality.reactor().spawn(locality.work(), format(tape_library(), std::move(wish)));
}

Task<void> ObjectStage::format(library::TapeLibrary* library,
                               library::LibraryService::FormatWish wish) {
    // The library may refuse this, or a drive may fail.
    [[maybe_unused]] const auto formatted = co_await library->format(std::move(wish));
}

// People repair the library and restart the node, since drives that are down stay down.
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

// Gives each cartridge the barcode of its own label. A cartridge without a label, which may have
// been written in part, keeps its barcode, or gets one of the rest.
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
    std::erase_if(blank, [&barcodes](CartridgeImage* each) {
        return barcodes.erase(each->info().barcode) > 0;
    });
    for (CartridgeImage* const each : blank) {
        each->info().barcode = *barcodes.begin();
        barcodes.erase(barcodes.begin());
    }
}

std::vector<store::Copy> ObjectStage::live_copies() {
    std::vector<store::Copy> all;
    for (const auto& disk : node_.node().disks().all()) {
        store::Volume* const volume = disk->volume();
        if (volume == nullptr || !volume->serving()) continue;
        for (const auto& [vsn, use] : volume->cartridges()) {
            const auto copies = volume->copies_on(vsn, {}, use.live_copies);
            ENSURE(copies.has_value());
            all.insert(all.end(), copies->begin(), copies->end());
        }
        volume->map().release();
    }
    return all;
}

// The block in which a copy begins.
void ObjectStage::damage_a_file(std::uint32_t number) {
    if (!is_ready()) return;
    const std::vector<store::Copy> copies = live_copies();
    if (copies.empty()) return;
    const store::Copy& copy = copies[number % copies.size()];
    const std::string vsn(store::text_of(copy.cartridge.vsn));
    for (const std::uint32_t address : idle_cartridges()) {
        CartridgeImage* const image = node_.library().image().at(address);
        if (!barcode_of(image).starts_with(vsn)) continue;
        const store::TapeFile file{.number = copy.position.file, .block = copy.block};
        const std::uint64_t block =
            file.first_data_block() + copy.position.member / store::kTapeDataBytes;
        if (block >= image->count()) return;
        image->make_unreadable(block);
        damaged_files_[vsn].insert(file.number);
        excuse_copies(copies);
        book_.tell("file " + std::to_string(file.number) + " of " + vsn + " is damaged");
        return;
    }
}

// Cuts the data of a cartridge: it then has fewer files than the table of media says, perhaps with
// an incomplete file at the end.
void ObjectStage::bring_older_tape(std::uint32_t number) {
    if (!is_ready()) return;
    const std::vector<std::uint32_t> idle = idle_cartridges();
    if (idle.empty()) return;
    CartridgeImage* const image = node_.library().image().at(idle[number % idle.size()]);
    const auto media = tape_library()->media();
    const auto known = std::ranges::find(media, barcode_of(image), &library::Cartridge::barcode);
    if (known == media.end() || known->files == 0 || image->count() < known->end_block) return;
    // It keeps its label, and loses at least the end of the last file.
    constexpr std::uint64_t kLabel = 1;
    const std::uint64_t left = kLabel + number / idle.size() % (known->end_block - kLabel);
    const std::uint64_t files = image->map().filemarks_before(left) / 3;
    if (files >= known->files) return;
    image->cut(left);
    image->make_durable();
    const std::string vsn(known->vsn);
    const auto [entry, is_new] = files_left_.try_emplace(vsn, files);
    if (!is_new) entry->second = std::min(entry->second, files);
    excuse_copies(live_copies());
    book_.tell(vsn + " has only " + std::to_string(files) + " files");
}

bool ObjectStage::is_harmed(const std::string& vsn, std::uint64_t file) const {
    const auto damaged = damaged_files_.find(vsn);
    if (damaged != damaged_files_.end() && damaged->second.contains(file)) return true;
    const auto older = files_left_.find(vsn);
    return older != files_left_.end() && file > older->second;
}

// Excuses the copies in harmed files.
void ObjectStage::excuse_copies(const std::vector<store::Copy>& copies) {
    std::set<fop::Fid> fids;
    for (const store::Copy& each : copies) {
        const std::string vsn(store::text_of(each.cartridge.vsn));
        if (is_harmed(vsn, each.position.file)) fids.insert(objects::fop_fid(each.fid));
    }
    book_.excuse_copies(fids);
}

// An administrator scrubs, repacks or formats the cartridge, or ends its repack.
Task<void> ObjectStage::order_repack(library::TapeLibrary* library, std::string barcode,
                                     std::uint32_t number) {
    const std::vector<library::Cartridge> media = library->media();
    const auto cartridge = std::ranges::find(media, barcode, &library::Cartridge::barcode);
    if (cartridge == media.end()) co_return;
    const bool ends = number % 3 == 0;
    // The library may refuse each of these requests.
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
    if (!is_ready()) return;
    std::vector<library::Cartridge> media = tape_library()->media();
    std::erase_if(media, [](const library::Cartridge& each) { return each.files == 0; });
    if (media.empty()) return;
    std::string barcode = media[number % media.size()].barcode;
    book_.tell(barcode + " is repacked");
    daemon::Locality& locality = *node_.node().localities()[0];
    locality.reactor().spawn(locality.work(),
                             order_repack(tape_library(), std::move(barcode), number));
}

}  // namespace fopd::sim

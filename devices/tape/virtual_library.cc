#include "devices/tape/virtual_library.h"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "core/directory.h"
#include "core/ensure.h"
#include "core/killed_process.h"
#include "devices/tape/library_directory.h"
#include "devices/tape/tape_error.h"

namespace fopd::devices {

namespace {

ElementCounts counts_of(const VirtualLibraryOptions& options) {
    return {.drives = options.drive_count,
            .exchange = options.exchange_count,
            .storage = options.storage_count};
}

std::uint32_t count_in(const CartridgePositions& positions, const ElementRange& elements) {
    return static_cast<std::uint32_t>(std::ranges::count_if(
        positions, [&](const auto& each) { return elements.has(each.first); }));
}

// Gives at most so many of the unplaced cartridges free elements of the range.
void place_in(const ElementRange& elements, std::uint32_t most, std::set<std::string>& unplaced,
              CartridgePositions& positions) {
    std::uint32_t address = elements.first;
    while (most > 0 && !unplaced.empty() && elements.has(address)) {
        if (positions.emplace(address, *unplaced.begin()).second) {
            unplaced.erase(unplaced.begin());
            --most;
        }
        ++address;
    }
}

}  // namespace

// The cartridges in the directory.
struct VirtualLibrary::Found {
    std::vector<std::string> names;
    std::map<std::string, std::string> barcodes;
};

VirtualLibrary::VirtualLibrary(core::Reactor& reactor, core::Offload& offload,
                               VirtualLibraryOptions options)
    : reactor_(reactor), offload_(offload), options_(std::move(options)) {
    ENSURE(options_.drive_count <= kElementsMax);
    ENSURE(options_.exchange_count <= kElementsMax);
    ENSURE(options_.storage_count <= kStorageMax);
    for (std::uint32_t index = 0; index < options_.drive_count; ++index) {
        const std::string name = options_.name + "-drive" + std::to_string(index);
        drives_.push_back(std::make_unique<VirtualDrive>(
            reactor_, offload_,
            VirtualDriveOptions{.name = name,
                                .serial = name,
                                .technology = options_.technology,
                                .timing = options_.timing,
                                .capacity_bytes = options_.capacity_bytes}));
    }
}

VirtualLibrary::~VirtualLibrary() = default;

// Blocks, as look() does.
Result<core::OwnedFd> VirtualLibrary::lock() const {
    core::OwnedFd directory = core::open_directory(options_.path);
    if (directory.get() < 0) {
        return std::unexpected(os_error(errno, "open the directory of a library"));
    }
    const auto locked = core::lock_file(
        directory.get(),
        {.held = "library is open in another daemon", .failed = "lock the directory of a library"});
    if (!locked) return std::unexpected(locked.error());
    return directory;
}

Result<VirtualLibrary::Found> VirtualLibrary::look() const {
    auto names = list_cartridges(options_.path);
    if (!names) return std::unexpected(names.error());
    Found found{.names = std::move(*names), .barcodes = {}};
    for (const std::string& name : found.names) {
        // One that cannot be read has no barcode; a drive says why when it loads the cartridge.
        const auto info = read_cartridge_text(cartridge_text_path(options_.path, name));
        if (info) found.barcodes[name] = info->barcode;
    }
    return found;
}

bool VirtualLibrary::has_element(std::uint32_t address) const {
    return devices::has_element(counts_of(options_), address);
}

VirtualDrive* VirtualLibrary::drive_at(std::uint32_t address) {
    if (address < kDriveAddress || address - kDriveAddress >= drives_.size()) return nullptr;
    return drives_[address - kDriveAddress].get();
}

// Tells a drive which cartridge is in it, unless it uses one.
void VirtualLibrary::fill_drive(std::uint32_t index) {
    VirtualDrive& drive = *drives_[index];
    if (drive.busy()) return;
    const auto position = positions_.find(kDriveAddress + index);
    if (position == positions_.end()) return drive.put(std::nullopt);
    drive.put(
        VirtualDrive::Cartridge{.image_path = image_path(options_.path, position->second),
                                .text_path = cartridge_text_path(options_.path, position->second),
                                .boot_id = options_.boot_id});
}

// Forgets cartridges whose files are gone unless they are in use, and assigns elements to new
// cartridges. Returns whether an assignment has changed.
bool VirtualLibrary::place_found(const Found& found) {
    std::set<std::string> unplaced(found.names.begin(), found.names.end());
    CartridgePositions kept;
    for (const auto& [address, name] : positions_) {
        const VirtualDrive* const drive = drive_at(address);
        const bool is_used = drive != nullptr && drive->busy();
        if (!has_element(address) || (!unplaced.contains(name) && !is_used)) continue;
        kept.emplace(address, name);
        unplaced.erase(name);
    }
    const auto [drives, exchange, storage] = element_ranges(counts_of(options_));
    const std::uint32_t reserved = count_in(kept, drives);
    const std::uint32_t taken = count_in(kept, storage) + reserved;
    place_in(storage, storage.count - std::min(storage.count, taken), unplaced, kept);
    place_in(exchange, exchange.count, unplaced, kept);
    return std::exchange(positions_, kept) != kept;
}

Task<Result<void>> VirtualLibrary::keep_positions(CartridgePositions positions) {
    const auto call = [this, &positions] { return write_positions(options_.path, positions); };
    const auto called = co_await offload_.run(reactor_, call);
    if (!called) co_return std::unexpected(called.error());
    co_return *called;
}

// Compares the directory with the known elements and cartridges.
Task<Result<void>> VirtualLibrary::refresh() {
    const auto call = [this] { return look(); };
    const auto called = co_await offload_.run(reactor_, call);
    if (!called) co_return std::unexpected(called.error());
    if (!*called) co_return std::unexpected(called->error());
    const Found& found = **called;
    barcodes_ = found.barcodes;
    const bool is_changed = place_found(found);
    for (std::uint32_t index = 0; index < options_.drive_count; ++index) fill_drive(index);
    if (!is_changed) co_return Result<void>{};
    co_return co_await keep_positions(positions_);
}

Task<Result<void>> VirtualLibrary::open() {
    ENSURE(lock_.get() < 0);
    const auto lock_call = [this] { return lock(); };
    auto locked = co_await offload_.run(reactor_, lock_call);
    if (!locked) co_return std::unexpected(locked.error());
    if (!*locked) co_return std::unexpected(locked->error());
    lock_ = std::move(**locked);
    const auto read_call = [this] {
        if (options_.boot_id.empty()) options_.boot_id = read_boot_id();
        return read_positions(options_.path);
    };
    const auto read = co_await offload_.run(reactor_, read_call);
    if (!read) co_return std::unexpected(read.error());
    if (!*read) co_return std::unexpected(read->error());
    positions_ = **read;
    co_return co_await refresh();
}

Task<Result<void>> VirtualLibrary::close() {
    Result<void> first;
    for (const auto& drive : drives_) {
        if (!drive->loaded()) continue;
        const auto closed = co_await drive->close();
        if (!closed && first) first = closed;
    }
    lock_ = {};
    co_return first;
}

Task<Result<std::vector<LibraryElement>>> VirtualLibrary::inventory() {
    ENSURE(!std::exchange(in_flight_, true));
    const auto refreshed = co_await refresh();
    in_flight_ = false;
    if (!refreshed) co_return std::unexpected(refreshed.error());
    std::vector<LibraryElement> inventory;
    for (const ElementRange& elements : element_ranges(counts_of(options_))) {
        for (std::uint32_t i = 0; i < elements.count; ++i) {
            const std::uint32_t address = elements.first + i;
            LibraryElement element;
            element.kind = elements.kind;
            element.address = address;
            if (const auto position = positions_.find(address); position != positions_.end()) {
                element.full = true;
                const auto barcode = barcodes_.find(position->second);
                if (barcode != barcodes_.end()) element.barcode = barcode->second;
            }
            if (const VirtualDrive* const drive = drive_at(address); drive != nullptr) {
                element.drive_serial = drive->serial();
            }
            inventory.push_back(std::move(element));
        }
    }
    co_return inventory;
}

Task<Result<void>> VirtualLibrary::move(std::uint32_t from, std::uint32_t to) {
    ENSURE(!in_flight_);
    if (!has_element(from) || !has_element(to)) {
        co_return tape_refused(Errc::kNotFound, "library has no such element");
    }
    const auto source = positions_.find(from);
    if (source == positions_.end()) co_return tape_refused(Errc::kNotFound, "element is empty");
    if (positions_.contains(to)) co_return tape_refused(Errc::kBusy, "element is full");
    for (const std::uint32_t address : {from, to}) {
        const VirtualDrive* const drive = drive_at(address);
        if (drive != nullptr && drive->busy())
            co_return tape_refused(Errc::kBusy, "drive is in use");
    }
    CartridgePositions moved = positions_;
    moved.emplace(to, source->second);
    moved.erase(from);
    // The cartridge is in no drive while it moves.
    if (VirtualDrive* const drive = drive_at(from); drive != nullptr) drive->put(std::nullopt);
    in_flight_ = true;
    const auto kept = co_await keep_positions(moved);
    in_flight_ = false;
    if (kept) positions_ = std::move(moved);
    for (std::uint32_t index = 0; index < options_.drive_count; ++index) fill_drive(index);
    if (!kept) co_return kept;
    if (options_.timing != TapeTiming::kNone) clock_ += kChangerMove;
    if (options_.timing == TapeTiming::kReal) {
        const auto slept = co_await reactor_.sleep_for(kChangerMove);
        ENSURE(slept.has_value());
    }
    co_return Result<void>{};
}

}  // namespace fopd::devices

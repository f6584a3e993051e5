#include "devices/tape/memory_library.h"

#include <utility>

#include "core/ensure.h"
#include "devices/tape/element_address.h"
#include "devices/tape/tape_error.h"

namespace fopd::devices {

MemoryLibrary::MemoryLibrary(core::Reactor& reactor, TapeLibraryImage& image,
                             MemoryLibraryOptions options)
    : reactor_(reactor), image_(image), options_(std::move(options)), random_(options_.seed) {
    for (std::uint32_t index = 0; index < image_.size().drives; ++index) {
        drives_.push_back(std::make_unique<MemoryTape>(
            reactor_, image_,
            MemoryTapeOptions{
                .name = options_.name + "-drive" + std::to_string(index),
                .technology = options_.technologies[index % options_.technologies.size()],
                .index = index,
                .seed = random_.next(),
                .power = options_.power,
                .faults = options_.tape_faults}));
    }
}

Task<void> MemoryLibrary::spend(Duration span) {
    const auto slept = co_await reactor_.sleep_for(span);
    ENSURE(slept.has_value());
    co_await NeedsPower(options_.power);
}

Task<Result<std::vector<LibraryElement>>> MemoryLibrary::inventory() {
    ++inventories_;
    co_await spend(10ms);
    if (options_.changer_faults.gone) {
        co_return std::unexpected(Error{.code = Errc::kIo, .context = "the changer"});
    }
    std::vector<LibraryElement> inventory;
    if (options_.changer_faults.reports_nothing) co_return inventory;
    for (const ElementRange& range : element_ranges(image_.size())) {
        for (std::uint32_t i = 0; i < range.count; ++i) {
            LibraryElement element;
            element.kind = range.kind;
            element.address = range.first + i;
            if (CartridgeImage* const cartridge = image_.at(element.address)) {
                element.full = true;
                element.barcode = cartridge->info().barcode;
            }
            if (range.kind == LibraryElement::Kind::kDrive) {
                element.drive_serial = drives_[i]->serial();
            }
            inventory.push_back(std::move(element));
        }
    }
    co_return inventory;
}

Result<void> MemoryLibrary::check_move(std::uint32_t from, std::uint32_t to) const {
    if (!image_.has_element(from) || !image_.has_element(to)) {
        return tape_refused(Errc::kNotFound, "library has no such element");
    }
    if (image_.at(from) == nullptr) return tape_refused(Errc::kNotFound, "element is empty");
    if (image_.at(to) != nullptr) return tape_refused(Errc::kBusy, "element is full");
    for (const std::uint32_t address : {from, to}) {
        if (address < kDriveAddress || address - kDriveAddress >= drives_.size()) continue;
        const std::uint32_t index = address - kDriveAddress;
        if (drives_[index]->busy() || image_.drive(index).threaded) {
            return tape_refused(Errc::kBusy, "drive is in use");
        }
    }
    return {};
}

// The first other storage element with a cartridge; the element itself if there is none.
std::uint32_t MemoryLibrary::other_than(std::uint32_t address) const {
    for (const ElementRange& range : element_ranges(image_.size())) {
        if (range.kind != LibraryElement::Kind::kStorage) continue;
        for (std::uint32_t other = range.first; other < range.first + range.count; ++other) {
            if (other != address && image_.at(other) != nullptr) return other;
        }
    }
    return address;
}

Task<Result<void>> MemoryLibrary::move(std::uint32_t from, std::uint32_t to) {
    ++moves_;
    const ChangerFaults& faults = options_.changer_faults;
    if (const auto checked = check_move(from, to); !checked) co_return checked;
    if (faults.busy_ppm > 0 && random_.chance_ppm(faults.busy_ppm)) {
        co_return tape_refused(Errc::kBusy, "library's door is open");
    }
    const bool is_out_of_drive = from >= kDriveAddress && from - kDriveAddress < drives_.size();
    if (is_out_of_drive && faults.stuck_ppm > 0 && random_.chance_ppm(faults.stuck_ppm)) {
        co_return tape_refused(Errc::kBusy, "cartridge is stuck in the drive");
    }
    const bool fails = faults.error_ppm > 0 && random_.chance_ppm(faults.error_ppm);
    co_await power_step(options_.power);
    const bool takes_other = std::exchange(options_.changer_faults.takes_other, false);
    const std::uint32_t taken = takes_other ? other_than(from) : from;
    if (!fails || random_.below(2) == 0) image_.move(taken, to);
    co_await power_step(options_.power);
    co_await spend(kChangerMove);
    if (fails) co_return tape_refused(Errc::kIo, "move a cartridge");
    co_return Result<void>{};
}

}  // namespace fopd::devices

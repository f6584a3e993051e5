#include "sim/simulated_library.h"

#include <memory>
#include <utility>
#include <vector>

#include "core/ensure.h"
#include "devices/power.h"
#include "library/media_table.h"

namespace fopd::sim {

namespace {

constexpr std::size_t kFormerMediaMax = 32;

struct Label {
    library::CartridgeId id = 0;
    std::string barcode;
    std::uint32_t generation = 0;
    bool is_blank = false;

    friend bool operator==(const Label&, const Label&) = default;
};

// The labels that a table of media knows.
std::vector<Label> labels_in(const std::string& media) {
    const auto table = library::MediaTable::parse(media);
    if (!table) return {};
    std::vector<Label> labels;
    for (const library::Cartridge& each : table->all()) {
        labels.push_back({.id = each.id,
                          .barcode = each.barcode,
                          .generation = each.generation,
                          .is_blank = each.state == library::CartridgeState::kBlank});
    }
    return labels;
}

}  // namespace

class SimulatedLibrary::Open final : public library::BayLibrary {
public:
    Open(SimulatedLibrary& bay, core::Reactor& reactor, devices::MemoryLibraryOptions options)
        : bay_(bay), library_(reactor, bay.image_, std::move(options)) {
        bay_.library_ = &library_;
    }
    Open(const Open&) = delete;
    Open& operator=(const Open&) = delete;
    ~Open() override { bay_.library_ = nullptr; }

    devices::Changer& changer() override { return library_; }
    std::vector<devices::TapeDrive*> drives() override {
        std::vector<devices::TapeDrive*> drives;
        for (std::uint32_t i = 0; i < library_.drive_count(); ++i) {
            drives.push_back(&library_.drive(i));
        }
        return drives;
    }
    Task<void> close() override { co_return; }

private:
    SimulatedLibrary& bay_;
    devices::MemoryLibrary library_;
};

SimulatedLibrary::SimulatedLibrary(std::uint64_t seed, const SimulatedLibraryOptions& options)
    : random_(seed), image_({.drives = options.drives}) {
    for (std::uint32_t i = 0; i < options.cartridges; ++i) {
        image_.add({.barcode = "V" + std::to_string(10'000 + i) + "L9",
                    .capacity_bytes = options.cartridge_bytes});
    }
}

void SimulatedLibrary::begin_life(devices::Power& power) {
    power_ = &power;
    ENSURE(library_ == nullptr);
    // Drives have written what an ended process had given them.
    image_.settle();
}

void SimulatedLibrary::crash() {
    ENSURE(library_ == nullptr);
    image_.crash(random_);
}

void SimulatedLibrary::set_faults(const Faults& faults) {
    faults_ = faults;
    if (library_ == nullptr) return;
    library_->faults() = faults.robot;
    for (std::uint32_t i = 0; i < library_->drive_count(); ++i) {
        library_->drive(i).faults() = faults.drives;
    }
}

bool SimulatedLibrary::bring_older_media() {
    ENSURE(library_ == nullptr);
    const auto labels = labels_in(media_);
    std::vector<std::string> alike;
    for (const std::string& each : former_media_) {
        if (each != media_ && labels_in(each) == labels) alike.push_back(each);
    }
    if (alike.empty()) return false;
    media_ = alike[random_.below(alike.size())];
    return true;
}

Task<Result<std::unique_ptr<library::BayLibrary>>> SimulatedLibrary::open_library(
    core::Reactor* reactor, library::LibraryOptions options) {
    co_await reactor->yield();
    devices::MemoryLibraryOptions of_library{.name = options.name,
                                             .seed = random_.next(),
                                             .power = power_,
                                             .tape_faults = faults_.drives,
                                             .changer_faults = faults_.robot};
    co_return std::make_unique<Open>(*this, *reactor, std::move(of_library));
}

Task<Result<std::string>> SimulatedLibrary::read_media(core::Reactor* reactor) {
    co_await reactor->yield();
    if (media_.empty()) {
        co_return std::unexpected(Error{.code = Errc::kNotFound, .context = "the file media"});
    }
    co_return media_;
}

Task<Result<void>> SimulatedLibrary::write_media(core::Reactor* reactor, std::string text) {
    co_await devices::power_step(power_);
    (void)co_await reactor->sleep_for(1ms);
    co_await devices::NeedsPower(power_);
    if (!media_.empty()) former_media_.push_back(std::move(media_));
    if (former_media_.size() > kFormerMediaMax) former_media_.pop_front();
    media_ = std::move(text);
    co_await devices::power_step(power_);
    co_return Result<void>{};
}

}  // namespace fopd::sim

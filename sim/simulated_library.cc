#include "sim/simulated_library.h"

#include <memory>
#include <utility>
#include <vector>

namespace fopd::sim {

class SimulatedLibrary::Open final : public library::BayLibrary {
public:
    Open(core::Reactor& reactor, devices::TapeLibraryImage& image,
         devices::MemoryLibraryOptions options)
        : library_(reactor, image, std::move(options)) {}

    devices::MemoryLibrary& library() { return library_; }
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
    library_ = nullptr;
    // Drives have written what an ended process had given them.
    image_.settle();
}

void SimulatedLibrary::crash() {
    library_ = nullptr;
    image_.crash(random_);
}

Task<Result<std::unique_ptr<library::BayLibrary>>> SimulatedLibrary::open_library(
    core::Reactor* reactor, library::LibraryOptions options) {
    co_await reactor->yield();
    devices::MemoryLibraryOptions of_library{
        .name = options.name, .seed = random_.next(), .power = power_};
    auto open = std::make_unique<Open>(*reactor, image_, std::move(of_library));
    library_ = &open->library();
    co_return open;
}

Task<Result<std::string>> SimulatedLibrary::read_media(core::Reactor* reactor) {
    co_await reactor->yield();
    if (media_.empty()) {
        co_return std::unexpected(Error{.code = Errc::kNotFound, .context = "the file media"});
    }
    co_return media_;
}

Task<Result<void>> SimulatedLibrary::write_media(core::Reactor* reactor, std::string text) {
    (void)co_await reactor->sleep_for(1ms);
    media_ = std::move(text);
    co_return Result<void>{};
}

}  // namespace fopd::sim

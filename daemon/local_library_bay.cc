#include "daemon/local_library_bay.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <utility>

#include <sys/stat.h>

#include "daemon/durable_file.h"
#include "devices/tape/library_directory.h"
#include "devices/tape/scsi_library.h"
#include "devices/tape/sg_port.h"
#include "devices/tape/virtual_library.h"

namespace fopd::daemon {

namespace {

template <typename Library>
std::vector<devices::TapeDrive*> drives_of(Library& library) {
    std::vector<devices::TapeDrive*> drives;
    for (std::uint32_t i = 0; i < library.drive_count(); ++i) drives.push_back(&library.drive(i));
    return drives;
}

class OpenVirtualLibrary final : public library::BayLibrary {
public:
    OpenVirtualLibrary(core::Reactor& reactor, core::Offload& offload,
                       devices::VirtualLibraryOptions options)
        : library_(reactor, offload, std::move(options)) {}

    Task<Result<void>> open() { return library_.open(); }
    devices::Changer& changer() override { return library_; }
    std::vector<devices::TapeDrive*> drives() override { return drives_of(library_); }
    Task<void> close() override {
        // Everything that counts was made durable before.
        [[maybe_unused]] const auto closed = co_await library_.close();
    }

private:
    devices::VirtualLibrary library_;
};

class OpenScsiLibrary final : public library::BayLibrary {
public:
    OpenScsiLibrary(core::Reactor& reactor, core::Offload& offload, devices::ScsiLibraryPorts ports,
                    devices::ScsiLibraryOptions options)
        : library_(reactor, offload, std::move(ports), std::move(options)) {}

    Task<Result<void>> open() { return library_.open(); }
    devices::Changer& changer() override { return library_; }
    std::vector<devices::TapeDrive*> drives() override { return drives_of(library_); }
    // Cartridges stay where they are, and their devices are closed.
    Task<void> close() override { co_return; }

private:
    devices::ScsiLibrary library_;
};

Result<std::unique_ptr<devices::SgPort>> open_device(const std::string& path) {
    const auto node = devices::find_scsi_node(path);
    if (!node) return std::unexpected(node.error());
    return devices::SgPort::open(*node);
}

// Blocks.
Result<devices::ScsiLibraryPorts> open_devices(const library::LibraryOptions& options) {
    devices::ScsiLibraryPorts ports;
    auto changer = open_device(options.path);
    if (!changer) return std::unexpected(changer.error());
    const auto locked = (*changer)->lock();
    if (!locked) return std::unexpected(locked.error());
    ports.changer = *std::move(changer);
    for (const std::string& path : options.drive_paths) {
        auto drive = open_device(path);
        if (!drive) return std::unexpected(drive.error());
        ports.drives.push_back(*std::move(drive));
    }
    return ports;
}

devices::TapeTiming timing_of(library::LibraryTiming timing) {
    switch (timing) {
        case library::LibraryTiming::kNone: return devices::TapeTiming::kNone;
        case library::LibraryTiming::kCalculate: return devices::TapeTiming::kCalculate;
        case library::LibraryTiming::kReal: return devices::TapeTiming::kReal;
    }
    return devices::TapeTiming::kNone;
}

// Such as "V00001L9": cartridges of LTO have their generation at the end.
std::string barcode_of(std::uint32_t number, const std::string& technology) {
    std::array<char, 16> text{};
    const char generation = technology == "lto10" ? 'A' : technology.back();
    std::snprintf(text.data(), text.size(), "V%05uL%c", number, generation);
    return text.data();
}

// Blocks. Makes the directory, and cartridges if it has none. Returns how many there are.
Result<std::size_t> make_library(const library::LibraryOptions& options) {
    if (::mkdir(options.path.c_str(), kDirectoryMode) != 0 && errno != EEXIST) {
        return std::unexpected(os_error(errno, "make the directory of the library"));
    }
    const auto there = devices::list_cartridges(options.path);
    if (!there) return std::unexpected(there.error());
    if (!there->empty()) return there->size();
    for (std::uint32_t i = 1; i <= options.cartridges; ++i) {
        const devices::CartridgeInfo info{.barcode = barcode_of(i, options.model),
                                          .technology = options.model,
                                          .capacity_bytes = options.cartridge_bytes};
        const auto made = devices::create_cartridge(options.path, info.barcode, info);
        if (!made) return std::unexpected(made.error());
    }
    return options.cartridges;
}

// A storage element for each cartridge, and some for cartridges that people bring.
std::uint32_t elements_for(std::size_t cartridges) {
    constexpr std::size_t kFree = 24;
    return static_cast<std::uint32_t>(
        std::min<std::size_t>(cartridges + kFree, devices::kStorageMax));
}

}  // namespace

Task<Result<std::unique_ptr<library::BayLibrary>>> LocalLibraryBay::open_library(
    core::Reactor* reactor, library::LibraryOptions options) {
    const bool is_scsi = options.kind == library::LibraryKind::kScsi;
    if (offload_ == nullptr) {
        // One for each drive and one for the changer, so that none waits for another.
        const std::size_t drives = is_scsi ? options.drive_paths.size() : options.drives;
        core::OffloadOptions threads{.name = "tape",
                                     .thread_count = static_cast<unsigned>(drives + 1)};
        auto made = core::make_thread_offload(std::move(threads));
        if (!made) co_return std::unexpected(made.error());
        offload_ = *std::move(made);
    }
    if (is_scsi) co_return co_await open_scsi(reactor, std::move(options));
    co_return co_await open_virtual(reactor, std::move(options));
}

Task<Result<std::unique_ptr<library::BayLibrary>>> LocalLibraryBay::open_scsi(
    core::Reactor* reactor, library::LibraryOptions options) {
    auto open = [&options] { return open_devices(options); };
    auto ports = co_await offload_->run(*reactor, open);
    if (!ports) co_return std::unexpected(ports.error());
    if (!*ports) co_return std::unexpected(ports->error());
    devices::ScsiLibraryOptions of_library{.name = options.name, .technology = options.model};
    auto library = std::make_unique<OpenScsiLibrary>(*reactor, *offload_, **std::move(ports),
                                                     std::move(of_library));
    const auto opened = co_await library->open();
    if (!opened) co_return std::unexpected(opened.error());
    co_return library;
}

Task<Result<std::unique_ptr<library::BayLibrary>>> LocalLibraryBay::open_virtual(
    core::Reactor* reactor, library::LibraryOptions options) {
    auto make = [&options] { return make_library(options); };
    const auto made = co_await offload_->run(*reactor, make);
    if (!made) co_return std::unexpected(made.error());
    if (!*made) co_return std::unexpected(made->error());
    devices::VirtualLibraryOptions of_library{.name = options.name,
                                              .path = options.path,
                                              .technology = options.model,
                                              .drive_count = options.drives,
                                              .storage_count = elements_for(**made),
                                              .timing = timing_of(options.timing),
                                              .capacity_bytes = options.cartridge_bytes};
    auto library = std::make_unique<OpenVirtualLibrary>(*reactor, *offload_, std::move(of_library));
    const auto opened = co_await library->open();
    if (!opened) co_return std::unexpected(opened.error());
    co_return library;
}

std::string wrong_library_device(const std::vector<library::LibrarySettings>& libraries) {
    if (libraries.empty() || libraries.front().kind != library::LibraryKind::kScsi) return {};
    const library::LibrarySettings& options = libraries.front();
    using Type = devices::ScsiDeviceType;
    const auto is_other = [](const std::string& path, Type type) {
        const auto node = devices::find_scsi_node(path);
        // A device that is missing may come later.
        return node ? node->type != type : node.error().code == Errc::kInvalid;
    };
    if (is_other(options.path, Type::kChanger)) {
        return "libraries[0].path: " + options.path + " is not a media changer";
    }
    for (std::size_t i = 0; i < options.drive_paths.size(); ++i) {
        const std::string& path = options.drive_paths[i];
        if (!is_other(path, Type::kTape)) continue;
        return "libraries[0].drive_paths[" + std::to_string(i) + "]: " + path +
               " is not a tape drive";
    }
    return {};
}

Task<Result<std::string>> LocalLibraryBay::read_media(core::Reactor* reactor) {
    auto read = [this] { return read_small_file(data_dir_ + "/media"); };
    auto text = co_await offload_->run(*reactor, read);
    if (!text) co_return std::unexpected(text.error());
    co_return *std::move(text);
}

Task<Result<void>> LocalLibraryBay::write_media(core::Reactor* reactor, std::string text) {
    auto write = [this, &text] { return replace_file(data_dir_ + "/media", text, kFileMode); };
    const auto written = co_await offload_->run(*reactor, write);
    if (!written) co_return std::unexpected(written.error());
    co_return *written;
}

}  // namespace fopd::daemon

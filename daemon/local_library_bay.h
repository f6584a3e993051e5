#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/offload.h"
#include "library/library_bay.h"
#include "library/settings.h"

namespace fopd::daemon {

// This machine's tape library: one of SCSI devices, or a virtual one in a directory, which is made
// with its cartridges if it is not there yet. The table of media is the file `media` of the data
// directory. Drives and changer have threads of their own.
class LocalLibraryBay final : public library::LibraryBay {
public:
    // The directory exists and is used by this process only.
    explicit LocalLibraryBay(std::string data_dir) : data_dir_(std::move(data_dir)) {}

    Task<Result<std::unique_ptr<library::BayLibrary>>> open_library(
        core::Reactor* reactor, library::LibraryOptions options) override;
    Task<Result<std::string>> read_media(core::Reactor* reactor) override;
    Task<Result<void>> write_media(core::Reactor* reactor, std::string text) override;

private:
    Task<Result<std::unique_ptr<library::BayLibrary>>> open_scsi(core::Reactor* reactor,
                                                                 library::LibraryOptions options);
    Task<Result<std::unique_ptr<library::BayLibrary>>> open_virtual(
        core::Reactor* reactor, library::LibraryOptions options);

    const std::string data_dir_;
    std::unique_ptr<core::Offload> offload_;  // From the first open_library() on.
};

// A path of a SCSI library that leads to something else, in words; empty: there is none. Blocks for
// a moment only.
std::string wrong_library_device(const std::vector<library::LibrarySettings>& libraries);

}  // namespace fopd::daemon

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/reactor.h"
#include "core/result.h"
#include "core/task.h"
#include "devices/tape/changer.h"
#include "devices/tape/tape_drive.h"
#include "library/options.h"

namespace fopd::library {

// The drives and the changer of a library, opened for exclusive use. Lives on the reactor it was
// opened for.
class BayLibrary {
public:
    virtual ~BayLibrary() = default;
    // The changer and the drives exist as long as this object.
    virtual devices::Changer& changer() = 0;
    virtual std::vector<devices::TapeDrive*> drives() = 0;
    // Leaves cartridges where they are, and releases the library to others. Called once, while no
    // operation is in progress.
    virtual Task<void> close() = 0;
};

// Opens the tape library of a node, and stores its table of media. In the real world, the library
// is a directory or devices, and the table is a file. In the simulated world, both are images.
// Outlives the node.
class LibraryBay {
public:
    virtual ~LibraryBay() = default;

    virtual Task<Result<std::unique_ptr<BayLibrary>>> open_library(core::Reactor* reactor,
                                                                   LibraryOptions options) = 0;
    // The table of media as text; kNotFound if it was never written.
    virtual Task<Result<std::string>> read_media(core::Reactor* reactor) = 0;
    // Durable on return; after a failure the old table or the new one is kept.
    virtual Task<Result<void>> write_media(core::Reactor* reactor, std::string text) = 0;
};

}  // namespace fopd::library

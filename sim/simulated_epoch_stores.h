#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "core/gate.h"
#include "core/random.h"
#include "core/reactor.h"
#include "daemon/epoch_stores.h"
#include "eh/static_view_store.h"
#include "sim/epochs/simulated_view_store.h"

namespace fopd::sim {

// The files of epochs, which outlive the processes of a node.
struct EpochFiles {
    // All contents that a file has had, the present one last; empty: there is no file yet.
    using Contents = std::vector<std::vector<std::byte>>;
    Contents incarnation{};
    Contents view{};
    Contents numbers{};
    // While set, the files cannot be replaced: the disk is full.
    bool is_full = false;
    // While set, calls that replace a file do not end: the disk hangs.
    bool hangs = false;
};

// A small file whose calls take a few milliseconds. A process that ends meanwhile leaves the old
// bytes or the new ones.
class SimulatedSmallFile final : public eh::SmallFile {
public:
    // All outlive it.
    SimulatedSmallFile(core::Reactor& reactor, core::Random random, EpochFiles& files,
                       EpochFiles::Contents& contents)
        : reactor_(reactor), random_(random), files_(files), contents_(contents) {}

    void read(eh::SmallFileUser& user) override;
    void replace(std::vector<std::byte> bytes, eh::SmallFileUser& user) override;
    Task<bool> close(Instant deadline);

private:
    Task<void> read_for(eh::SmallFileUser* user);
    Task<void> replace_for(eh::SmallFileUser* user, std::vector<std::byte> bytes);
    Duration some_time();

    core::Reactor& reactor_;
    core::Random random_;
    EpochFiles& files_;
    EpochFiles::Contents& contents_;
    core::Gate work_;
};

// The files and the view store that one process of a simulated node uses for epochs.
class SimulatedEpochStores final : public daemon::EpochStores {
public:
    // Null `shared`: the view is in a file of the node. All outlive the stores.
    SimulatedEpochStores(core::Reactor& reactor, core::Random random, EpochFiles& files,
                         SimulatedViewRegister* shared);

    eh::SmallFile& incarnation() override { return incarnation_; }
    eh::ViewStore& views() override;
    eh::SmallFile& numbers() override { return numbers_; }
    Task<bool> close(Instant deadline) override;

private:
    SimulatedSmallFile incarnation_;
    SimulatedSmallFile view_file_;
    eh::StaticViewStore file_views_;
    std::optional<SimulatedViewStore> shared_views_;
    SimulatedSmallFile numbers_;
};

}  // namespace fopd::sim

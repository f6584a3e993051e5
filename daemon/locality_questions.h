#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/reactor.h"
#include "core/task.h"
#include "daemon/class_ledger.h"
#include "daemon/locality.h"
#include "library/media_bytes.h"

namespace fopd::daemon {

// Asks all localities of a node for an administrator's figures, and merges their answers. Each
// question is a message to each locality, and waits for its answer. Lives on the control reactor.
class LocalityQuestions {
public:
    // All of it outlives the questions.
    LocalityQuestions(core::Reactor& control,
                      const std::vector<std::unique_ptr<Locality>>& localities,
                      ClassLedger& classes)
        : control_(control), localities_(localities), classes_(classes) {}

    struct LocalSession {
        std::uint32_t locality;
        fabric::SessionInfo info;
    };
    Task<std::vector<LocalSession>> sessions();
    // The figures of the request scheduler's classes: at most `count_max` classes, and one sum of
    // all others.
    Task<std::vector<lrs::ClassFigures>> class_figures(std::size_t count_max);
    // The running fops, and the `queued_max` oldest of those that wait for their turn.
    Task<reqh::FopList> fops(std::size_t queued_max);
    // The last slow fops of each locality, the oldest first.
    Task<reqh::FopList> slow_fops();
    Task<std::optional<reqh::FopRecord>> trace(reqh::FopId id);
    // Detached if the node has no network.
    Task<eh::peers::EpochStatus> epochs();
    Task<std::expected<Duration, std::string>> waive_majority();
    // Counts, bytes and latencies of the fops of each locality.
    Task<std::vector<reqh::FopLoad::Row>> load();
    // What is known about cartridges and drives. Empty without a tape library.
    struct Media {
        // Why the library is not open, for people; none: it is open, or the node has no library.
        std::optional<std::string> not_open;
        std::vector<library::Cartridge> cartridges;
        std::vector<library::DriveRow> drives;
        library::MediaBytes bytes;
    };
    Task<Media> media();
    // Like media(), but without the cartridges.
    Task<Media> drives();
    // Unloads all drives as TapeLibrary::unload_all() does. Empty: the node has no library, or it
    // stops.
    Task<std::vector<library::DriveRow>> unload_drives(Duration patience);

private:
    using FopsOf = std::function<reqh::FopList(const Locality&)>;
    // The fops that each locality gives.
    Task<reqh::FopList> fops_of(FopsOf of, std::size_t queued_max);

    core::Reactor& control_;
    const std::vector<std::unique_ptr<Locality>>& localities_;
    ClassLedger& classes_;
};

}  // namespace fopd::daemon

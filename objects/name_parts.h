#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/clock.h"
#include "core/events.h"
#include "core/gate.h"
#include "core/reactor.h"
#include "core/result.h"
#include "core/task.h"
#include "devices/label.h"
#include "objects/name_part.h"
#include "objects/name_router.h"
#include "objects/names.h"
#include "store/index.h"
#include "store/names.h"

namespace fopd::objects {

// The storage of the parts' indexes. The returned indexes live on the given reactor. An interface,
// because daemon::DiskBay, real or simulated, implements it and this folder does not know daemon/.
class NameIndexes {
public:
    struct Owner {
        devices::NodeId node{};
        std::uint32_t part = 0;
    };
    // kNotFound: there is none yet. kCorrupt, kInvalid: the existing one is unusable.
    virtual Task<Result<std::unique_ptr<store::Index>>> open_names(core::Reactor* reactor,
                                                                   Owner owner) = 0;
    // Creates an empty index, replacing an existing one. REQUIRES: the existing one is not open.
    virtual Task<Result<std::unique_ptr<store::Index>>> make_names(core::Reactor* reactor,
                                                                   Owner owner) = 0;

protected:
    ~NameIndexes() = default;
};

// The names of a node's objects: one part on each locality. They exist before the first volume is
// opened, and until the last one is closed, because volumes report names until then. Lives on the
// control reactor.
class NameParts {
public:
    // All of it outlives the parts.
    struct World {
        core::Reactor& control;
        NameIndexes& indexes;
        core::EventSink& events;
        const core::Clock& clock;
        devices::NodeId node{};
        bool had_disks = false;  // Had disks before: its name indexes should exist.
    };
    NameParts(const World& world, const std::vector<core::Reactor*>& localities);
    ~NameParts();
    NameParts(const NameParts&) = delete;
    NameParts& operator=(const NameParts&) = delete;

    // Called first. A part that is damaged, or was made for another number of localities, begins
    // empty; the volumes notice that and report all their names to it.
    Task<Result<void>> open();
    // REQUIRES: open() has ended; all volumes are closed, and names are no longer used. Returns
    // false if some part has not ended by the deadline.
    Task<bool> close(Instant deadline);

    // After open(): shows the stored index of a part, as it is now.
    Task<Result<void>> show(std::uint32_t number, store::IndexShow* show);

    // After open(): the sink for all parts, for use on the control reactor.
    store::NameSink& whole() { return *whole_; }

    // -- after open(); these live on the locality's reactor --

    NamePart& part(std::uint32_t locality) { return *parts_[locality]->part; }
    // All names, for use on the locality.
    Names& names(std::uint32_t locality) { return *parts_[locality]->names; }
    // The sink to which the locality's volumes report their names.
    store::NameSink& sink(std::uint32_t locality) { return *parts_[locality]->router; }

private:
    struct Part {
        explicit Part(core::Reactor& on) : reactor(on) {}

        core::Reactor& reactor;
        core::Gate gate;     // Entered by work for other localities.
        core::Gate errands;  // Entered by its own opening and closing.
        std::unique_ptr<store::Index> index;
        std::unique_ptr<store::NameShard> shard;
        std::unique_ptr<NamePart> part;
        // Access from this locality to all parts.
        std::unique_ptr<Names> names;
        std::vector<std::unique_ptr<DistantNames>> distant;
        std::unique_ptr<NameRouter> router;
    };

    Task<Result<void>> open_part(std::uint32_t number);
    Task<Result<void>> find_part(std::uint32_t number);
    Task<Result<void>> make_part(std::uint32_t number);
    Result<void> use_index(std::uint32_t number, std::unique_ptr<store::Index> index);
    static Task<bool> close_part(Part* part, Instant deadline);
    void introduce();

    const World world_;
    std::vector<std::unique_ptr<Part>> parts_;
    // Access from the control reactor to all parts.
    std::vector<std::unique_ptr<DistantNames>> distant_;
    std::unique_ptr<NameRouter> whole_;
};

}  // namespace fopd::objects

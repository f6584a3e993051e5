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

// Where the indexes of the parts are stored. What it returns lives on the given reactor.
class NameIndexes {
public:
    struct Owner {
        devices::NodeId node{};
        std::uint32_t part = 0;
    };
    // kNotFound: there is none yet. kCorrupt, kInvalid: the one that is there is of no use.
    virtual Task<Result<std::unique_ptr<store::Index>>> open_names(core::Reactor* reactor,
                                                                   Owner owner) = 0;
    // An empty one, which replaces any other. REQUIRES: that one is not open.
    virtual Task<Result<std::unique_ptr<store::Index>>> make_names(core::Reactor* reactor,
                                                                   Owner owner) = 0;

protected:
    ~NameIndexes() = default;
};

// The names of a node's objects: as many parts as there are localities, one on each. They are there
// before the first volume is opened, and until the last one is closed, which tells its names to the
// end. Lives on the control reactor.
class NameParts {
public:
    // All of it outlives the parts.
    struct World {
        core::Reactor& control;
        NameIndexes& indexes;
        core::EventSink& events;
        const core::Clock& clock;
        devices::NodeId node{};
        bool had_disks = false;  // And names of what was on them, then.
    };
    NameParts(const World& world, const std::vector<core::Reactor*>& localities);
    ~NameParts();
    NameParts(const NameParts&) = delete;
    NameParts& operator=(const NameParts&) = delete;

    // Before anything else. A part that is damaged, or was made for another number of localities,
    // begins empty: the volumes see that it knows nothing of them, and tell it everything.
    Task<Result<void>> open();
    // Requires: open() has ended; all volumes are closed, and nobody asks for a name any more.
    // False when some part has not ended by the deadline.
    Task<bool> close(Instant deadline);

    // After open(): what is kept of a part's names, as it is now.
    Task<Result<void>> show(std::uint32_t number, store::IndexShow* show);

    // After open(): changes all parts of the names, from the control reactor.
    store::NameSink& whole() { return *whole_; }

    // -- after open(); these live on the locality's reactor --

    NamePart& part(std::uint32_t locality) { return *parts_[locality]->part; }
    // All of them, as the locality reaches them.
    Names& names(std::uint32_t locality) { return *parts_[locality]->names; }
    // Where the volumes of the locality tell theirs.
    store::NameSink& sink(std::uint32_t locality) { return *parts_[locality]->router; }

private:
    struct Part {
        explicit Part(core::Reactor& on) : reactor(on) {}

        core::Reactor& reactor;
        core::Gate gate;     // What others ask of it.
        core::Gate errands;  // Its own opening and closing.
        std::unique_ptr<store::Index> index;
        std::unique_ptr<store::NameShard> shard;
        std::unique_ptr<NamePart> part;
        // How the others are reached from here.
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
    // How they are reached from the control reactor.
    std::vector<std::unique_ptr<DistantNames>> distant_;
    std::unique_ptr<NameRouter> whole_;
};

}  // namespace fopd::objects

#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "core/gate.h"
#include "core/reactor.h"
#include "core/task.h"
#include "objects/object_name.h"
#include "store/name_sink.h"
#include "store/names.h"

namespace fopd::objects {

// A locality's part of the node's names, with the holds that other localities have on them. Lives
// on that locality's reactor; others reach it only by messages.
class NamePart {
public:
    // All of them outlive the part. Work for other localities enters the gate, which is open until
    // all volumes are closed: a volume reports names until then.
    NamePart(core::Reactor& reactor, core::Gate& gate, store::NameShard& shard)
        : reactor_(reactor), gate_(gate), shard_(shard) {}
    NamePart(const NamePart&) = delete;
    NamePart& operator=(const NamePart&) = delete;

    // From any thread.
    core::Reactor& reactor() { return reactor_; }
    core::Gate& gate() { return gate_; }

    // -- on the part's reactor --

    store::NameShard& shard() { return shard_; }
    struct Wanted {
        Wanted(store::PoolName wanted_name, bool removes, core::WaitOptions options)
            : name(std::move(wanted_name)), to_remove(removes), wait(options) {}
        store::PoolName name;
        bool to_remove;  // As Names::hold_to_remove() holds it.
        core::WaitOptions wait;
    };
    Task<Result<NameHold>> hold(Wanted wanted);
    // Does nothing if the hold has ended already, even if the name has another holder now.
    void let_go(const NameHold& hold);
    // Receives the changes of a volume on another locality. Ends the holds under which the changes
    // were made: their holders need not let go.
    Task<Result<void>> tell(const store::NameChanges* changes);

private:
    struct Held {
        store::ReservedName name;
        bool to_remove;
    };
    void end_hold_of(const store::NameChange& change);

    core::Reactor& reactor_;
    core::Gate& gate_;
    store::NameShard& shard_;
    std::map<store::PoolName, Held> holds_;
};

// The sink for names of a part on another locality. Lives on the volume's reactor.
class DistantNames final : public store::NameSink {
public:
    DistantNames(core::Reactor& here, NamePart& part) : here_(here), part_(part) {}

    Task<Result<std::uint64_t>> known(devices::DiskId disk) override;
    Task<Result<void>> forget(Origin origin) override;
    Task<Result<void>> tell(const store::NameChanges* changes) override;
    Task<Result<void>> keep(Kept kept) override;
    Task<Result<ClaimPage>> claims(store::Slot slot, ClaimCursor from) override;
    Task<Result<void>> remove_known(std::vector<store::NameClaim>* claims) override;

private:
    core::Reactor& here_;
    NamePart& part_;
};

}  // namespace fopd::objects

// How the library ends sessions of writing, each with an index file.

#include <algorithm>
#include <utility>

#include "library/awaited_tape.h"
#include "library/tape_library.h"
#include "objects/object_name.h"

namespace fopd::library {

namespace {

// A session ends when the cartridge was not written for so long.
constexpr Duration kSessionIdle = 1min;
// The space that the scheduler counts for an index file.
constexpr std::uint64_t kIndexBytes = 4UL << 20;

}  // namespace

class TapeLibrary::IndexJob final : public TapeJob {
public:
    Task<Result<void>> run(DriveUnit* drive, CartridgeId /*cartridge*/) override {
        co_await drive->end_session();
        co_return Result<void>{};
    }
    bool ends_session() const override { return true; }
};

// Ends the sessions that are due. Returns when to call it again at the latest.
Instant TapeLibrary::begin_indexes() {
    Instant next = kNever;
    const Instant now = parts_.reactor.now();
    for (Unit& each : units_) {
        const auto session_at = each.drive->session_at();
        if (!session_at || each.is_indexing || each.is_handled) continue;
        const CartridgeId id = *each.drive->cartridge();
        // A full cartridge gets its index file when it leaves the drive.
        if (shelf_->find(id)->state != CartridgeState::kOk) continue;
        const Instant due = after(*session_at, kSessionIdle);
        if (now < due || !each.device->is_idle()) {
            next = std::min(next, now < due ? due : after(now, kSessionIdle));
            continue;
        }
        each.is_indexing = true;
        parts_.reactor.spawn(gate_, write_index(&each, id));
    }
    return next;
}

Task<void> TapeLibrary::write_index(Unit* unit, CartridgeId id) {
    IndexJob job;
    const Cartridge cartridge = *shelf_->find(id);
    const AwaitedTape::Scheduler scheduler{.reactor = parts_.reactor, .main = parts_.io};
    const AwaitedTape::Options options{
        .type = io_sched::IoType::kWrite,
        .priority = io_sched::IoPriority::kBackground,
        .pool = objects::pool_id(cartridge.pool),
        .collection = MediaShelf::collection_number(cartridge.collection),
        .cancel = &stop_};
    std::vector<io_sched::IoPart> where{
        {.medium = io_sched::MediumId{id}, .size_bytes = kIndexBytes}};
    AwaitedTape request(scheduler, job, options, std::move(where));
    // The drive has reported an error by an event.
    [[maybe_unused]] const auto written = co_await request;
    unit->is_indexing = false;
    show_drives();
    ring();
}

}  // namespace fopd::library

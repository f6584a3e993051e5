#include "daemon/device_changes.h"

#include <utility>

#include "core/remote.h"
#include "core/remote_task.h"

namespace fopd::daemon {

namespace {

// How long a client may take to acknowledge its reply, or to reconnect for it.
constexpr Duration kHeardWithin = 15s;
constexpr Duration kLookAgainAfter = 100ms;
// How long running fops may take on a disk that is empty.
constexpr Duration kFopsEndWithin = 10s;

// Names that were given moments before the node was killed may be on the lost disk alone.
std::string count_of_objects(std::uint64_t count) {
    return "at least " + std::to_string(count) + (count == 1 ? " object" : " objects") +
           " with a name";
}

std::unexpected<Error> stopping() {
    return std::unexpected(Error{.code = Errc::kClosed, .context = "the node is stopping"});
}

}  // namespace

const char* to_string(DeviceOutcome::Kind kind) {
    switch (kind) {
        case DeviceOutcome::Kind::kAdded: return "added";
        case DeviceOutcome::Kind::kRemoved: return "removed";
        case DeviceOutcome::Kind::kForgotten: return "forgotten";
        case DeviceOutcome::Kind::kNotAdded: return "not-added";
        case DeviceOutcome::Kind::kNotRemoved: return "not-removed";
        case DeviceOutcome::Kind::kNotForgotten: return "not-forgotten";
    }
    return "unknown";
}

// -- adding a disk --

Task<DeviceOutcome> DeviceChanges::add(devices::DeviceSettings settings) {
    const std::string name = settings.name;
    if (NodeDisk* const given_up = parts_.disks.find(name)) co_await drop(given_up);
    NodeDisk* const disk = &parts_.disks.add(std::move(settings));
    Locality* const home = parts_.localities[disk->locality().index].get();
    auto own = [home, disk] { home->own(*disk); };
    co_await core::run_on(parts_.control, home->reactor(), own);
    co_await parts_.disks.open_one(disk);
    co_await parts_.layout.publish();
    if (disk->stage() == DiskStage::kGivenUp) {
        co_return DeviceOutcome{.device = name,
                                .kind = DeviceOutcome::Kind::kNotAdded,
                                .words = disk->settings().path + ": " + disk->reason()};
    }
    auto serve = [home, disk] { home->serve_disk(*disk); };
    co_await core::run_on(parts_.control, home->reactor(), serve);
    co_await look_at_replaced_again();
    emit_each(parts_.events, core::Level::kInfo, "daemon.device_added",
              {{"device", std::string_view(name)},
               {"path", std::string_view(disk->settings().path)},
               {"pool", std::string_view(disk->settings().pool)},
               {"slot", std::uint64_t{*disk->slot()}},
               {"locality", std::uint64_t{disk->locality().index}}});
    co_return DeviceOutcome{.device = name, .kind = DeviceOutcome::Kind::kAdded};
}

// Replaced objects may be waiting for an object on another disk, or for its absence.
Task<void> DeviceChanges::look_at_replaced_again() {
    for (const auto& each : parts_.localities) {
        auto look_again = [&each] { each->look_at_replaced_again(); };
        co_await core::run_on(parts_.control, each->reactor(), look_again);
    }
}

// -- removing a disk --

Task<DeviceOutcome> DeviceChanges::remove(std::string name, Keep keep) {
    NodeDisk* const disk = parts_.disks.find(name);
    ENSURE(disk != nullptr);
    if (disk->stage() != DiskStage::kGivenUp) {
        auto outcome = co_await remove_open(disk);
        if (!outcome.done()) co_return outcome;
    }
    const std::string path = disk->settings().path;
    if (keep == Keep::kYes) parts_.disks.remember(*disk);
    co_await drop(disk);
    co_await parts_.layout.publish();
    emit_each(parts_.events, core::Level::kInfo, "daemon.device_removed",
              {{"device", std::string_view(name)}, {"path", std::string_view(path)}});
    co_return DeviceOutcome{.device = name, .kind = DeviceOutcome::Kind::kRemoved};
}

DeviceOutcome DeviceChanges::not_removed(const NodeDisk& disk, std::string words,
                                         bool try_later) const {
    return {.device = disk.settings().name,
            .kind = DeviceOutcome::Kind::kNotRemoved,
            .words = std::move(words),
            .try_later = try_later};
}

Task<DeviceOutcome> DeviceChanges::remove_open(NodeDisk* disk) {
    objects::Stores& stores = *parts_.localities[disk->locality().index]->stores();
    Leaving leaving{.disk = disk, .departure = objects::DiskDeparture(stores, *disk->slot())};
    // A first look, before the disk stops accepting fops.
    const auto before =
        co_await wait_until_heard(&leaving, after(parts_.control.now(), kHeardWithin));
    if (!before) co_return not_removed(*disk, describe(before.error()), false);
    if (!before->empty()) {
        co_return not_removed(*disk, "it has " + objects::describe(*before),
                              before->holds_only_replies());
    }
    const auto made = co_await make_leave(&leaving);
    if (!made) {
        co_return not_removed(*disk, "fops that run on it do not end: " + describe(made.error()),
                              true);
    }
    const auto there =
        co_await wait_until_heard(&leaving, after(parts_.control.now(), kHeardWithin));
    if (!there || !there->empty()) {
        co_await call_off(&leaving);
        if (!there) co_return not_removed(*disk, describe(there.error()), false);
        co_return not_removed(*disk, "it has " + objects::describe(*there),
                              there->holds_only_replies());
    }
    auto end = [&leaving] { return leaving.departure.end(); };
    const auto ended = co_await core::run_task_on<Result<void>>(
        parts_.control, disk->locality().reactor, disk->duties(), end);
    ENSURE(ended && *ended);
    parts_.disks.note_released(*disk);
    co_await parts_.layout.publish();
    co_await parts_.disks.release(disk);
    co_return DeviceOutcome{.device = disk->settings().name, .kind = DeviceOutcome::Kind::kRemoved};
}

Task<Result<void>> DeviceChanges::make_leave(Leaving* leaving) {
    NodeDisk* const disk = leaving->disk;
    const Instant deadline = after(parts_.control.now(), kFopsEndWithin);
    auto begin = [leaving, deadline] { return leaving->departure.begin(deadline); };
    const auto begun = co_await core::run_task_on<Result<void>>(
        parts_.control, disk->locality().reactor, disk->duties(), begin);
    if (!begun) co_return stopping();
    co_return *begun;
}

Task<void> DeviceChanges::call_off(Leaving* leaving) {
    auto job = [leaving] { leaving->departure.call_off(); };
    co_await core::run_on(parts_.control, leaving->disk->locality().reactor, job);
}

// Returns as soon as the disk holds anything besides replies, or nothing at all, or at the
// deadline.
Task<Result<objects::DiskContents>> DeviceChanges::wait_until_heard(Leaving* leaving,
                                                                    Instant deadline) {
    for (;;) {
        const auto contents = co_await look(leaving);
        if (!contents || contents->empty() || !contents->holds_only_replies()) co_return contents;
        if (parts_.control.now() >= deadline) co_return contents;
        if (!parts_.life.may_change()) co_return stopping();
        const auto slept = co_await parts_.control.sleep_for(kLookAgainAfter);
        ENSURE(slept.has_value());
    }
}

Task<Result<objects::DiskContents>> DeviceChanges::look(Leaving* leaving) {
    objects::DiskDeparture::Unheard unheard{.may_be_any = parts_.life.clients_may_return()};
    for (const auto& each : parts_.localities) {
        auto ask = [&each] { return each->unheard_replies(); };
        const auto some = co_await core::run_on(parts_.control, each->reactor(), ask);
        unheard.keys.insert(unheard.keys.end(), some.begin(), some.end());
    }
    NodeDisk* const disk = leaving->disk;
    auto job = [leaving, &unheard] { return leaving->departure.look(&unheard); };
    const auto looked = co_await core::run_task_on<Result<objects::DiskContents>>(
        parts_.control, disk->locality().reactor, disk->duties(), job);
    if (!looked) co_return stopping();
    co_return *looked;
}

// The disk cannot be found any more, and coroutines of its locality that had found it have had a
// turn before it is destroyed.
Task<void> DeviceChanges::drop(NodeDisk* disk) {
    const std::unique_ptr<NodeDisk> dropped = parts_.disks.take_out(disk);
    Locality* const home = parts_.localities[disk->locality().index].get();
    auto disown = [home, disk] { home->disown(*disk); };
    co_await core::run_on(parts_.control, home->reactor(), disown);
}

// -- forgetting a lost disk --

// The names are forgotten first: as long as the table lists the disk as missing, a name that is not
// found is not reported as absent, and a disk that comes back after all adds its names again.
Task<DeviceOutcome> DeviceChanges::forget(Lost lost) {
    const SlotEntry entry = *parts_.disks.slots().find(lost.slot);
    ENSURE(entry.use != SlotUse::kEmpty);
    ENSURE(parts_.disks.open_disk_of(entry) == nullptr);
    DeviceOutcome outcome{.device = lost.device, .kind = DeviceOutcome::Kind::kNotForgotten};
    const auto count = co_await count_claims(lost.slot);
    if (!count) {
        outcome.words = "its names cannot be counted: " + describe(count.error());
        co_return outcome;
    }
    const std::string disk = devices::format_id(entry.disk);
    if (!lost.is_sure) {
        outcome.words =
            "slot " + std::to_string(lost.slot) + ", disk " + disk + " of pool " + entry.pool +
            ": " + count_of_objects(*count) +
            " would be lost for good, and all objects without a known name; --yes confirms that";
        co_return outcome;
    }
    if (!parts_.life.may_change()) {
        outcome.words = "the node is stopping";
        outcome.try_later = true;
        co_return outcome;
    }
    const store::NameSink::Origin origin{.disk = entry.disk, .slot = entry.slot};
    const auto forgotten = co_await forget_names(origin);
    if (!forgotten) {
        outcome.words = "its names cannot be forgotten: " + describe(forgotten.error());
        co_return outcome;
    }
    const Result<void> written = parts_.disks.write_off(lost.slot);
    if (!written) {
        outcome.words = "the slot table cannot be written: " + describe(written.error());
        co_return outcome;
    }
    co_await parts_.layout.publish();
    co_await look_at_replaced_again();
    emit_each(parts_.events, core::Level::kWarn, "daemon.device_forgotten",
              {{"device", std::string_view(lost.device)},
               {"slot", std::uint64_t{lost.slot}},
               {"disk", std::string_view(disk)},
               {"pool", std::string_view(entry.pool)},
               {"objects", *count}});
    outcome.kind = DeviceOutcome::Kind::kForgotten;
    outcome.lost = {.slot = lost.slot, .disk = disk, .pool = entry.pool, .object_count = *count};
    co_return outcome;
}

Task<Result<std::uint64_t>> DeviceChanges::count_claims(store::Slot slot) {
    std::uint64_t count = 0;
    store::NameSink& names = parts_.names->whole();
    store::NameSink::ClaimCursor cursor;
    for (;;) {
        auto asked = names.claims(slot, std::move(cursor));
        auto page = co_await std::move(asked);
        if (!page) co_return std::unexpected(page.error());
        count += page->claims.size();
        if (page->end) co_return count;
        cursor = std::move(page->next);
    }
}

// Durable in all name shards.
Task<Result<void>> DeviceChanges::forget_names(store::NameSink::Origin origin) {
    store::NameSink& names = parts_.names->whole();
    const auto forgotten = co_await names.forget(origin);
    if (!forgotten) co_return forgotten;
    const store::NameSink::Kept nothing{.disk = origin.disk, .seq = 0};
    co_return co_await names.keep(nothing);
}

}  // namespace fopd::daemon

#include "library/recall_forecast.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "store/tape/block_reader.h"

namespace fopd::library {

namespace {

using devices::DriveModel;

// The time to bring a cartridge to an empty drive and to load it.
Duration bringing(const DriveModel& model) {
    return devices::kChangerMove + model.load;
}

// With the capacity of the cartridge, if it is known.
DriveModel model_for(const RecallForecast::Drive& drive, const RecallForecast::Wait& wait) {
    return wait.capacity_bytes == 0 ? drive.model
                                    : devices::with_capacity(drive.model, wait.capacity_bytes);
}

Duration taking_away(const DriveModel& model, std::uint64_t position) {
    return devices::rewind_time(model, devices::position_of_byte(model, position)) + model.unload +
           devices::kChangerMove;
}

// A drive reads on to a copy that is near. For others it reads the labels of the tape file first,
// and then locates the copy in the file.
Duration opening(const DriveModel& model, std::uint64_t position, std::uint64_t offset) {
    const bool is_near = position <= offset && offset - position <= store::kTapeReadOnBytes;
    if (is_near) return devices::transfer_time(model, offset - position);
    return model.costs.base + devices::locate_time(model,
                                                   devices::position_of_byte(model, position),
                                                   devices::position_of_byte(model, offset));
}

}  // namespace

void RecallForecast::add(const Drive& drive) {
    Duration left{0};
    switch (drive.activity) {
        case DriveActivity::kIdle:
        case DriveActivity::kDown: break;
        // The operation after the exchange is among the waits, or is short.
        case DriveActivity::kExchanging: left = bringing(drive.model); break;
        case DriveActivity::kReading:
        case DriveActivity::kWriting:
            left = drive.model.costs.base + devices::transfer_time(drive.model, drive.busy_bytes);
            break;
    }
    const Instant free_at = after(drive.busy_since, taking(left));
    drives_.push_back({.drive = drive, .free_at = std::max(options_.now, free_at)});
}

std::vector<RecallForecast::Group> RecallForecast::groups() const {
    std::vector<Group> groups;
    std::map<CartridgeId, std::size_t> group_of;
    for (std::size_t i = 0; i < waits_.size(); ++i) {
        if (waits_[i].cartridge == 0 || waits_[i].reads) continue;
        if (!options_.grouped) {
            groups.push_back({i});
            continue;
        }
        const auto [at, is_new] = group_of.emplace(waits_[i].cartridge, groups.size());
        if (is_new) groups.emplace_back();
        groups[at->second].push_back(i);
    }
    for (Group& each : groups) {
        std::ranges::sort(each, {}, [this](std::size_t i) {
            return std::tuple(-int{waits_[i].priority}, waits_[i].offset, i);
        });
    }
    return groups;
}

RecallForecast::State* RecallForecast::loaded(CartridgeId cartridge) {
    for (State& each : drives_) {
        if (each.drive.cartridge == cartridge) return &each;
    }
    return nullptr;
}

RecallForecast::State* RecallForecast::first_free() {
    return &*std::ranges::min_element(drives_, {}, &State::free_at);
}

// Adds the time to read the copies of a group, one after the other, on the drive of the cartridge.
void RecallForecast::read(State& state, const Group& group) {
    Drive& drive = state.drive;
    const Wait& first = waits_[group.front()];
    Instant at = state.free_at;
    if (drive.cartridge != first.cartridge) {
        if (drive.cartridge) {
            at = after(at, taking(taking_away(drive.model, drive.position)));
        }
        at = after(at, taking(bringing(drive.model)));
        drive.cartridge = first.cartridge;
        drive.position = 0;
    }
    const DriveModel model = model_for(drive, first);
    for (const std::size_t i : group) {
        const Wait& wait = waits_[i];
        at = after(at, taking(opening(model, drive.position, wait.offset) +
                              devices::transfer_time(model, wait.size_bytes)));
        ends_[i] = at;
        drive.position = wait.offset + wait.size_bytes;
    }
    state.free_at = at;
}

std::vector<std::optional<Instant>> RecallForecast::ends() {
    ends_.assign(waits_.size(), std::nullopt);
    if (drives_.empty()) return std::move(ends_);
    for (std::size_t i = 0; i < waits_.size(); ++i) {
        if (!waits_[i].reads) continue;
        State* const state = loaded(waits_[i].cartridge);
        if (state == nullptr) continue;
        // First it goes to the labels of the tape file, from there to the copy.
        const Drive& drive = state->drive;
        const DriveModel model = model_for(drive, waits_[i]);
        const Duration left =
            devices::locate_time(model, devices::position_of_byte(model, drive.position),
                                 devices::position_of_byte(model, waits_[i].offset)) +
            2 * model.costs.base + devices::transfer_time(model, waits_[i].size_bytes);
        const Instant end = after(drive.busy_since, taking(left));
        state->free_at = std::max(options_.now, end);
        // The end of an operation that takes longer than that is unknown.
        if (end >= options_.now) ends_[i] = end;
    }
    std::vector<Group> later;
    for (Group& each : groups()) {
        // Cartridges that are loaded go first.
        State* const drive = options_.grouped ? loaded(waits_[each.front()].cartridge) : nullptr;
        if (drive != nullptr) {
            read(*drive, each);
        } else {
            later.push_back(std::move(each));
        }
    }
    for (const Group& each : later) {
        State* drive = loaded(waits_[each.front()].cartridge);
        if (drive == nullptr) drive = first_free();
        read(*drive, each);
    }
    return std::move(ends_);
}

}  // namespace fopd::library

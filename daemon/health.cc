#include "daemon/health.h"

#include <functional>
#include <string_view>
#include <utility>

#include "daemon/space_watch.h"
#include "devices/settings.h"

namespace fopd::daemon {

namespace {

using Cause = NodeHealth::Cause;
using Level = NodeHealth::Level;

// A quota that is used up to this part is reported.
constexpr std::uint64_t kQuotaPercent = 95;

std::string number_of(std::uint64_t count, std::string_view noun) {
    return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

// Looks at a node, one kind of problem after the other.
class Examination {
public:
    Examination(const Node& node, const Configuration& configuration, const core::Clock& clock)
        : node_(node),
          configuration_(configuration),
          now_s_(clock.wall().unix_ns / 1'000'000'000),
          missing_(node.disks().missing_slots()) {}

    NodeHealth run() {
        look_at_state();
        look_at_missing_disks();
        const std::vector<DiskReport> disks = node_.disks().reports();
        for (const DiskReport& each : disks) look_at_disk(each);
        look_at_pools(disks);
        look_at_localities();
        look_at_epochs();
        look_at_configuration();
        look_at_quotas();
        look_at_tapes();
        return std::move(health_);
    }

private:
    void add(Cause cause, std::string text) {
        const Level level = NodeHealth::kCauses[static_cast<std::size_t>(cause)].level;
        const auto at = std::ranges::upper_bound(health_.problems, level, std::ranges::greater{},
                                                 &NodeHealth::Problem::level);
        health_.problems.insert(at, {.cause = cause, .level = level, .text = std::move(text)});
    }

    void look_at_state();
    void look_at_missing_disks();
    void look_at_disk(const DiskReport& disk);
    void look_at_scrub(const DiskReport& disk);
    void look_at_pools(const std::vector<DiskReport>& disks);
    void look_at_localities();
    void look_at_epochs();
    void look_at_configuration();
    void look_at_quotas();
    void look_at_quota(const objects::QuotaAccount& account, const std::string& words);
    void look_at_tapes();
    void look_at_cartridge(const library::Cartridge& cartridge);
    std::string unreadable_objects(const MissingSlot& missing) const;

    const Node& node_;
    const Configuration& configuration_;
    const std::int64_t now_s_;
    const std::vector<MissingSlot> missing_;
    NodeHealth health_;
};

void Examination::look_at_state() {
    if (node_.state() == NodeState::kReady) return;
    const bool is_drained = node_.state() == NodeState::kDrained;
    add(Cause::kNotReady, std::string("the node is ") + to_string(node_.state()) +
                              (is_drained ? ", and serves again after a restart" : ""));
}

std::uint64_t objects_of(const objects::LayoutPool& pool) {
    return pool.quota->whole().used().objects;
}

// "3 of 4 objects cannot be read", as far as that is known. All objects are those of the pools that
// have objects on its disks, and those that missing disks have a name for.
std::string Examination::unreadable_objects(const MissingSlot& missing) const {
    const auto lost = node_.missing().objects_of(missing.slot);
    const objects::StoreLayoutPtr& layout = node_.layout().current();
    const objects::LayoutPool* const pool =
        layout == nullptr ? nullptr : layout->find_pool(missing.pool);
    if (!lost || pool == nullptr) return "its objects cannot be read";
    std::uint64_t all = 0;
    for (const objects::LayoutPool& each : layout->pools) {
        if (each.disk_pool() == pool->id) all += objects_of(each);
    }
    for (const MissingSlot& each : missing_) {
        if (each.pool == missing.pool) all += node_.missing().objects_of(each.slot).value_or(0);
    }
    return std::to_string(*lost) + " of " + number_of(all, "object") + " cannot be read";
}

void Examination::look_at_epochs() {
    if (!node_.opened()) return;
    const NodeEpochs* const epochs = std::as_const(*node_.localities().front()).epochs();
    if (epochs == nullptr) return;
    if (epochs->lacks_epochs()) {
        add(Cause::kNoEpochs, "the node gets no epochs from its peers: fopctl epoch show");
        return;
    }
    const NodeEpochs::MemberCount members = epochs->member_count();
    if (members.present == 0 || members.present >= members.expected) return;
    add(Cause::kEpochMembersAway, std::to_string(members.present) + " of " +
                                      std::to_string(members.expected) +
                                      " daemons take part in epochs: fopctl epoch show");
}

void Examination::look_at_missing_disks() {
    for (const MissingSlot& each : missing_) {
        const std::string slot = "slot " + std::to_string(each.slot);
        const std::string which = each.device.empty()
                                      ? "the disk of " + slot + " is missing"
                                      : "disk " + each.device + " is missing (" + slot + ")";
        add(Cause::kDiskMissing, which + ": " + unreadable_objects(each));
    }
}

void Examination::look_at_disk(const DiskReport& disk) {
    const std::string which = "disk " + disk.name;
    const std::string_view state = disk.state;
    const std::string why = disk.reason.empty() ? "" : ": " + disk.reason;
    if (disk.capacity_bytes) ++health_.open_disks;
    if (state == "given-up") {
        // A missing disk has been reported with its objects.
        const bool is_missing = std::ranges::any_of(missing_, [&disk](const auto& missing) {
            return missing.slot == disk.slot && devices::format_id(missing.disk) == disk.disk;
        });
        const SlotEntry* const entry = disk.slot ? node_.disks().slots().find(*disk.slot) : nullptr;
        if (entry != nullptr && entry->use == SlotUse::kWrittenOff) {
            add(Cause::kDiskWrittenOff,
                which + " was written off: add a new one with fopctl device add, " +
                    "or take it out of the configuration");
        } else if (!is_missing) {
            add(Cause::kDiskGivenUp, which + " is given up" + why);
        }
    } else if (disk.read_only) {
        add(Cause::kDiskReadOnly, which + " is read-only" + why);
    } else if (state == "suspect") {
        add(Cause::kDiskSuspect, which + " is suspect" + why);
    } else if (!disk.reason.empty()) {
        add(Cause::kDiskFull, which + why);
    }
    // A scrub in progress may have found more than is recorded.
    const std::uint64_t damaged = std::max(disk.damaged_blocks, disk.scrub_damaged_blocks);
    if (damaged > 0) {
        add(Cause::kDiskDamaged, which + " has " + number_of(damaged, "damaged block") +
                                     ": replace the objects that the log names, then scrub it");
    }
    look_at_scrub(disk);
    if (disk.check_findings > 0) {
        add(Cause::kCheckFindings,
            which + ": a check found " + number_of(disk.check_findings, "fault"));
    }
    if (const std::uint64_t percent = used_percent(disk); percent >= kNearlyFullPercent) {
        add(Cause::kDiskNearlyFull, which + " is " + std::to_string(percent) + " % full");
    }
    if (std::string_view(disk.scrub) == "failed") {
        add(Cause::kScrubFailed, which + ": the last scrub failed");
    }
}

void Examination::look_at_scrub(const DiskReport& disk) {
    const auto age_max = configuration_.current()->get<store::StoreSettings>().scrub_age_max;
    if (age_max == Duration{} || disk.scrubbed_at_s == 0 || !disk.capacity_bytes) return;
    const Duration age = std::chrono::seconds(now_s_ - disk.scrubbed_at_s);
    if (age <= age_max) return;
    add(Cause::kScrubOld, "disk " + disk.name + " has had no complete scrub for " +
                              number_of(static_cast<std::uint64_t>(age / 24h), "day"));
}

// While the node starts its disks are opened, and when it ends they are closed.
void Examination::look_at_pools(const std::vector<DiskReport>& disks) {
    if (node_.state() != NodeState::kReady) return;
    for (const auto& pool : configuration_.current()->get<std::vector<devices::PoolSettings>>()) {
        const std::string& on_disks_of = pool.staging ? *pool.staging : pool.name;
        const bool has_disk = std::ranges::any_of(disks, [&on_disks_of](const DiskReport& disk) {
            return disk.pool == on_disks_of && disk.capacity_bytes.has_value();
        });
        if (has_disk) continue;
        add(Cause::kNoDisk,
            "pool " + pool.name + " has no open disk: no object in it can be stored or read");
    }
}

void Examination::look_at_localities() {
    for (std::size_t index = 0; index < node_.localities().size(); ++index) {
        if (node_.watch().silent_for(index) <= LocalityWatch::kStuckAfter) continue;
        add(Cause::kLocalityStuck, "locality " + std::to_string(index) + " is stuck");
    }
}

void Examination::look_at_configuration() {
    std::string failures;
    for (const std::string& each : node_.reload_problems()) {
        failures += (failures.empty() ? "the last reload failed: " : "; ") + each;
    }
    if (!failures.empty()) add(Cause::kReloadFailed, std::move(failures));
    const std::vector<std::string>& waiting = configuration_.keys_waiting_for_restart();
    if (waiting.empty()) return;
    add(Cause::kRestartPending, "a restart is pending for " + config::joined(waiting));
}

void Examination::look_at_quotas() {
    const objects::StoreLayoutPtr& layout = node_.layout().current();
    if (layout == nullptr) return;
    for (const objects::LayoutPool& pool : layout->pools) {
        health_.objects += objects_of(pool);
        look_at_quota(pool.quota->whole(), "pool " + pool.name + " has used %");
        for (const objects::PoolQuota::Owner& owner : pool.quota->owners()) {
            look_at_quota(*owner.account, "principal " + std::string(owner.name) +
                                              " has used % in pool " + pool.name);
        }
    }
}

// `words` has "%" in place of the part of the quota.
void Examination::look_at_quota(const objects::QuotaAccount& account, const std::string& words) {
    const objects::Amount used = account.used();
    const objects::Amount limit = account.limit();
    const auto look = [&](std::uint64_t amount, std::uint64_t most, const char* of_what) {
        if (most == objects::QuotaAccount::kUnlimited || most == 0) return;
        const std::uint64_t percent = percent_of(amount, most);
        if (percent < kQuotaPercent) return;
        std::string text = words;
        text.replace(text.find('%'), 1, std::to_string(percent) + " % of its quota of " + of_what);
        add(Cause::kQuotaNearlyUsed, std::move(text));
    };
    look(used.blocks, limit.blocks, "bytes");
    look(used.objects, limit.objects, "objects");
}

void Examination::look_at_tapes() {
    const library::LibraryCondition& library = node_.tapes().library();
    if (!library.not_open.empty()) {
        add(Cause::kLibraryNotOpen,
            "tape library " + library.name + " is not open: " + library.not_open);
    }
    if (const std::uint64_t count = node_.tapes().copies_without_library(); count > 0) {
        add(Cause::kLibraryMissing,
            "objects have " + (count == 1 ? "1 copy" : std::to_string(count) + " copies") +
                " on tape, and no library is configured: what is on tape only cannot be read");
    }
    if (!library.changer_fault.empty()) {
        add(Cause::kChangerFailed, "the changer of tape library " + library.name +
                                       " does not answer: " + library.changer_fault);
    }
    for (const library::DriveRow& each : library.drives_down) {
        add(Cause::kDriveDown, "tape drive " + each.name + " is down: " + each.reason);
    }
    for (const library::Cartridge& each : library.bad_media) look_at_cartridge(each);
    if (const std::uint64_t count = node_.tapes().unreadable_objects(); count > 0) {
        add(Cause::kRecallFailed, number_of(count, "object") +
                                      " could not be read from tape: the log names " +
                                      (count == 1 ? "it" : "them"));
    }
}

void Examination::look_at_cartridge(const library::Cartridge& cartridge) {
    const std::uint64_t copies = node_.tapes().live_copies(cartridge.barcode);
    if (copies == 0) return;
    const bool is_suspect = cartridge.state == library::CartridgeState::kSuspect;
    const std::string why = cartridge.reason.empty() ? "" : ": " + cartridge.reason;
    add(is_suspect ? Cause::kCartridgeSuspect : Cause::kCartridgeUnreadable,
        "cartridge " + cartridge.barcode + " is " +
            std::string(library::to_string(cartridge.state)) + ", and objects have " +
            (copies == 1 ? "1 copy" : std::to_string(copies) + " copies") + " there" + why);
}

}  // namespace

const char* to_string(NodeHealth::Level level) {
    switch (level) {
        case Level::kGood: return "ok";
        case Level::kWarning: return "warning";
        case Level::kCritical: return "critical";
    }
    return "unknown";
}

NodeHealth health_of(const Node& node, const Configuration& configuration,
                     const core::Clock& clock) {
    return Examination(node, configuration, clock).run();
}

void write_problems(JsonWriter& json, const NodeHealth& health) {
    json.begin_array();
    for (const NodeHealth::Problem& each : health.problems) {
        json.begin_object()
            .field("state", to_string(each.level))
            .field("cause", NodeHealth::kCauses[static_cast<std::size_t>(each.cause)].name)
            .field("text", each.text)
            .end_object();
    }
    json.end_array();
}

std::string health_json(const NodeHealth& health) {
    std::string text;
    for (const NodeHealth::Problem& each : health.problems) {
        text += (text.empty() ? "" : "; ") + each.text;
    }
    if (health.problems.empty()) {
        // A pool without disks would be a problem.
        text = health.open_disks == 0 ? "no disk is configured, and no object can be stored"
                                      : number_of(health.open_disks, "disk") + ", " +
                                            number_of(health.objects, "object");
    }
    JsonWriter json;
    json.begin_object()
        .field("state", to_string(health.level()))
        .field("text", text)
        .field("open_disks", health.open_disks)
        .field("objects", health.objects);
    json.key("problems");
    write_problems(json, health);
    json.end_object();
    return json.text();
}

}  // namespace fopd::daemon

#include "sim/object_stage.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/ensure.h"

namespace fopd::sim {

namespace {

constexpr Duration kReadyMax = 60s;
constexpr Duration kWorkMax = 300s;
// Loads and rewinds of tapes take a minute each.
constexpr Duration kTapeWorkMax = 24h;
// Long enough for abandoned uploads to be removed.
constexpr Duration kUpkeepMax = 11min;
constexpr Duration kBetweenChecks = 300ms;
constexpr Duration kBetweenMovesMax = 5ms;
constexpr std::string_view kNode = "node";
constexpr std::uint64_t kStepsBetweenLooks = 16;
// The most that operations admitted at the same time may add to a disk's changes in memory.
constexpr std::uint64_t kReservedBytesMax = 128UL << 10;

std::string event_text(std::string_view name, std::span<const core::Field> fields) {
    std::string text(name);
    for (const core::Field& field : fields) {
        text += " " + std::string(field.key) + "=";
        if (const auto* const words = std::get_if<std::string_view>(&field.value)) text += *words;
        if (const auto* const number = std::get_if<std::int64_t>(&field.value)) {
            text += std::to_string(*number);
        }
        if (const auto* const count = std::get_if<std::uint64_t>(&field.value)) {
            text += std::to_string(*count);
        }
    }
    return text;
}

std::string user_name(std::uint32_t index) {
    return "user-" + std::to_string(index);
}

}  // namespace

const char* to_string(ObjectFault::Kind kind) {
    switch (kind) {
        case ObjectFault::Kind::kCrash: return "crash";
        case ObjectFault::Kind::kPowerCut: return "power cut";
        case ObjectFault::Kind::kRestart: return "restart";
        case ObjectFault::Kind::kCrashUser: return "crash of a user";
        case ObjectFault::Kind::kStopUser: return "stop of a user";
        case ObjectFault::Kind::kLose: return "lost connections";
        case ObjectFault::Kind::kLoseAtNode: return "lost at the node";
        case ObjectFault::Kind::kLoseAtUser: return "lost at the user";
        case ObjectFault::Kind::kPartition: return "partition";
        case ObjectFault::Kind::kStallToNode: return "stall to the node";
        case ObjectFault::Kind::kStallToUser: return "stall to the user";
        case ObjectFault::Kind::kStallLocality: return "stall of a locality";
        case ObjectFault::Kind::kDisks: return "disks";
        case ObjectFault::Kind::kTapes: return "tapes";
        case ObjectFault::Kind::kDriveDies: return "death of a drive";
        case ObjectFault::Kind::kSwapLabels: return "swapped labels";
        case ObjectFault::Kind::kSwapElements: return "swapped cartridges";
        case ObjectFault::Kind::kTakeCartridge: return "a cartridge that is taken";
        case ObjectFault::Kind::kFormat: return "a format";
        case ObjectFault::Kind::kDamage: return "damage of a tape";
        case ObjectFault::Kind::kRepack: return "repack of a cartridge";
        case ObjectFault::Kind::kOlderTape: return "an older tape";
    }
    return "?";
}

ObjectStage::ObjectStage(std::uint64_t seed, ObjectStageOptions options)
    : world_(seed),
      overlay_bytes_(options.overlay_bytes),
      network_(
          world_,
          {.seed = core::mix(seed, 1), .delay = fabric::kSimulatedDelay, .wire = options.wire}),
      book_(world_),
      node_(world_,
            [&] {
                SimulatedNodeOptions node;
                node.name = kNode;
                node.localities = options.localities;
                node.drain_timeout = 10s;
                node.network = &network_.transport();
                node.listen = format_address(network_.address_of(node.name, 1));
                node.protection = network_.protection();
                node.upload_timeout = options.upload_timeout;
                node.sweep = options.sweep;
                node.library = options.library;
                node.tape_pool = options.tape_pool;
                node.tape_io = options.tape_io;
                node.observer = [this](std::string_view name, std::span<const core::Field> fields) {
                    book_.tell(event_text(name, fields));
                    if (name == "library.no_cartridge") note_lack_of_tape();
                };
                for (std::uint32_t i = 0; i < options.disks; ++i) {
                    node.disks.push_back(
                        {.name = "d" + std::to_string(i), .size_bytes = options.disk_bytes});
                }
                return node;
            }()),
      disk_count_(options.disks),
      moves_on_(options.moves),
      work_max_(options.tape_pool ? kTapeWorkMax : kWorkMax),
      tape_pool_(options.tape_pool ? options.tape_pool->name : std::string()),
      tape_copies_(options.tape_pool ? options.tape_pool->copies : 1),
      checks_(options.checks) {
    if (options.moves) book_.excuse_moves();
    if (!options.tape_io.empty()) book_.tell("io_sched.tape: " + options.tape_io);
    for (std::uint32_t i = 0; i < options.users; ++i) {
        ObjectUserOptions user = options.user;
        user.name = user_name(i);
        user.network = &network_;
        user.book = &book_;
        if (options.tape_pool) user.pool = options.tape_pool->name;
        users_.push_back(std::make_unique<ObjectUser>(world_, std::move(user)));
    }
}

ObjectStage::~ObjectStage() {
    for (const auto& user : users_) user->crash();
    node_.crash();
}

bool ObjectStage::start() {
    node_.start();
    if (!run_until_ready()) return false;
    blocks_in_use_at_start_ = blocks_in_use();
    for (const auto& user : users_) user->start();
    return kept();
}

bool ObjectStage::run_until_ready() {
    const Instant limit = after(world_.now(), kReadyMax);
    while (kept() && world_.now() < limit) {
        if (node_.running() && node_.node().state() == daemon::NodeState::kReady) return true;
        step(limit);
    }
    book_.break_promise("the node is not ready");
    return false;
}

std::uint64_t ObjectStage::done() const {
    std::uint64_t done = 0;
    for (const auto& user : users_) done += user->done();
    return done;
}

bool ObjectStage::all_idle() const {
    return std::ranges::all_of(users_, [](const auto& user) { return user->idle(); });
}

// Runs one step of the world, and applies faults that are due.
void ObjectStage::step(Instant limit) {
    for (const Due& due : due_) limit = std::min(limit, due.at);
    world_.step(limit);
    note_bad_cartridges();
    const bool looks = ++steps_ % kStepsBetweenLooks == 0;
    if (looks) look_at_bounds();
    if (std::exchange(cut_, false)) {
        book_.tell("the power is gone");
        ++faults_begun_;
        book_.lose_memory();
        poison_free_space();
        node_.lose_power();
        due_.push_back({after(world_.now(), cut_fault_.span), cut_fault_});
    }
    node_.bury();
    if (node_.start_failed()) book_.break_promise("the node did not start");
    if (checks_ && looks && !look_at_checks() && world_.now() >= checks_due_) begin_checks();
    if (moves_on_) begin_move();
    if (restarting_ && !node_.running()) {
        restarting_ = false;
        begin_node(restart_fault_);
    }
    for (const auto& user : users_) user->bury();
    std::vector<ObjectFault> ripe;
    std::erase_if(due_, [&](const Due& due) {
        if (due.at > world_.now()) return false;
        ripe.push_back(due.fault);
        return true;
    });
    for (const ObjectFault& fault : ripe) end_fault(fault);
}

bool ObjectStage::play(std::vector<ObjectFault> faults) {
    const Instant limit = after(world_.now(), work_max_);
    const std::uint64_t before = done();
    std::vector<std::uint32_t> steps(faults.size());
    while (kept() && (!all_idle() || !due_.empty() || restarting_)) {
        if (world_.now() >= limit) {
            book_.break_promise("what was begun does not end" + describe_tapes());
            break;
        }
        step(limit);
        for (std::size_t i = 0; i < faults.size(); ++i) {
            if (steps[i] == std::numeric_limits<std::uint32_t>::max()) continue;
            if (done() - before < faults[i].after) continue;
            const bool waits = faults[i].kind != ObjectFault::Kind::kPowerCut;
            if (waits && steps[i]++ < faults[i].steps) continue;
            steps[i] = std::numeric_limits<std::uint32_t>::max();
            carry_out(faults[i]);
        }
    }
    if (node_.running()) node_.disks().power().cut_at(0);
    return kept();
}

// -- faults --

void ObjectStage::carry_out(const ObjectFault& fault) {
    using Kind = ObjectFault::Kind;
    book_.tell(to_string(fault.kind));
    // It is not known yet whether the power cut will occur.
    if (fault.kind != Kind::kPowerCut) ++faults_begun_;
    const Instant until = after(world_.now(), fault.span);
    const std::string user = user_name(fault.user);
    const fabric::MemRoute there{.from = user, .to = kNode};
    const fabric::MemRoute back{.from = kNode, .to = user};
    switch (fault.kind) {
        case Kind::kCrash:
        case Kind::kRestart:
            if (node_.running() && !restarting_) end_node(fault);
            break;
        case Kind::kPowerCut: {
            if (!node_.running() || restarting_) break;
            cut_fault_ = fault;
            devices::Power& power = node_.disks().power();
            power.cut_at(power.steps() + 1 + fault.steps, [this] { cut_ = true; });
            break;
        }
        case Kind::kCrashUser:
            if (!users_[fault.user]->running()) break;
            users_[fault.user]->crash();
            due_.push_back({until, fault});
            break;
        case Kind::kStopUser:
            if (users_[fault.user]->running()) users_[fault.user]->stop(until);
            break;
        case Kind::kLose: network().lose_connections(there, fabric::LossNotice::kBoth); break;
        case Kind::kLoseAtNode: network().lose_connections(back, fabric::LossNotice::kFrom); break;
        case Kind::kLoseAtUser: network().lose_connections(there, fabric::LossNotice::kFrom); break;
        case Kind::kPartition:
            network().partition(there);
            due_.push_back({until, fault});
            break;
        case Kind::kStallToNode: network().stall(there, until); break;
        case Kind::kStallToUser: network().stall(back, until); break;
        case Kind::kStallLocality:
            if (node_.running()) world_.stall(node_.locality(fault.locality), until);
            break;
        case Kind::kDisks:
            book_.excuse_disks();
            for (std::uint32_t i = 0; node_.running(); ++i) {
                const std::string name = "d" + std::to_string(i);
                if (!node_.disks().has_image(name)) break;
                if (node_.disks().is_open(name)) node_.disks().set_faults(name, fault.disks);
            }
            break;
        default: carry_out_on_tapes(fault); break;
    }
}

void ObjectStage::end_fault(const ObjectFault& fault) {
    using Kind = ObjectFault::Kind;
    const std::string user = user_name(fault.user);
    switch (fault.kind) {
        case Kind::kCrash:
        case Kind::kPowerCut:
            if (!node_.running()) begin_node(fault);
            break;
        case Kind::kCrashUser:
            if (!users_[fault.user]->running()) users_[fault.user]->start();
            break;
        case Kind::kPartition: network().heal({.from = user, .to = kNode}); break;
        case Kind::kTapes:
        case Kind::kDriveDies:
        case Kind::kSwapLabels:
        case Kind::kSwapElements:
        case Kind::kTakeCartridge: end_fault_of_tapes(fault); break;
        default: break;
    }
}

void ObjectStage::end_node(const ObjectFault& fault) {
    book_.tell(std::string("the node ends: ") + to_string(fault.kind));
    if (fault.kind == ObjectFault::Kind::kRestart) {
        node_.terminate();
        restarting_ = true;
        restart_fault_ = fault;
        return;
    }
    book_.lose_memory();
    poison_free_space();
    if (fault.kind == ObjectFault::Kind::kPowerCut) {
        node_.lose_power();
    } else {
        node_.crash();
    }
    due_.push_back({after(world_.now(), fault.span), fault});
}

void ObjectStage::begin_node(const ObjectFault& fault) {
    book_.begin_server_life();
    if (fault.lose_indexes) node_.disks().lose_indexes();
    if (fault.lose_names) node_.disks().lose_names();
    if (lost_disk_) node_.disks().bring_back(*lost_disk_);
    lost_disk_.reset();
    if (fault.lose_disk) {
        lost_disk_ = "d" + std::to_string(*fault.lose_disk);
        node_.disks().take_away(*lost_disk_);
        book_.excuse_missing(true);
    }
    if (fault.replace_disk) node_.disks().unplug("d" + std::to_string(*fault.replace_disk));
    if (fault.repair_tapes) repair_library();
    const bool is_older = fault.older_media && node_.library().bring_older_media();
    book_.tell(std::string("the node starts") + (fault.lose_indexes ? " without indexes" : "") +
               (fault.lose_names ? " without names" : "") +
               (lost_disk_ ? " without " + *lost_disk_ : "") +
               (is_older ? " with an older table of media" : ""));
    node_.start();
    if (fault.cut_start_at == 0) return;
    cut_fault_ = fault;
    cut_fault_.kind = ObjectFault::Kind::kPowerCut;
    cut_fault_.cut_start_at = 0;
    cut_fault_.lose_disk.reset();
    cut_fault_.older_media = false;
    node_.disks().power().cut_at(fault.cut_start_at, [this] { cut_ = true; });
}

// -- checks from outside --

// Free blocks must not be needed, whatever happens next.
void ObjectStage::poison_free_space() {
    if (!node_.running()) return;
    for (const auto& disk : node_.node().disks().all()) {
        const store::Volume* const volume = disk->volume();
        if (volume == nullptr || !node_.disks().has_image(disk->settings().name)) continue;
        node_.disks().image(disk->settings().name).poison_if([volume](std::uint64_t block) {
            return volume->is_free(block);
        });
    }
}

// The node keeps its limits, whatever clients send.
void ObjectStage::look_at_bounds() {
    if (!node_.running() || node_.node().state() != daemon::NodeState::kReady) return;
    // A client that has reconnected may still have its lost session.
    const std::uint64_t credits = 2 * fabric::HostOptions{}.fop_credits_max * users_.size();
    for (const auto& locality : node_.node().localities()) {
        const std::uint64_t foms = locality->handler()->running_count();
        const std::uint64_t waiting = locality->requests()->figures(lrs::Lane::kData).queued.get();
        most_.foms = std::max(most_.foms, foms);
        most_.waiting = std::max(most_.waiting, waiting);
        must_be_within("foms run", foms, reqh::RequestHandlerLimits{}.max_foms);
        must_be_within("fops wait", waiting, credits);
    }
    for (const auto& disk : node_.node().disks().all()) {
        if (disk->volume() == nullptr) continue;
        const std::uint64_t bytes = disk->volume()->changed_bytes();
        most_.changed_bytes = std::max(most_.changed_bytes, bytes);
        must_be_within("bytes of changes are in memory", bytes, overlay_bytes_ + kReservedBytesMax);
    }
}

void ObjectStage::must_be_within(const char* what, std::uint64_t count, std::uint64_t max) {
    if (count <= max) return;
    book_.break_promise(std::to_string(count) + " " + what + ", and at most " +
                        std::to_string(max) + " may");
}

// -- at rest --

bool ObjectStage::restart(const ObjectFault& how) {
    end_node(how);
    return play() && run_until_ready();
}

bool ObjectStage::restart(ObjectFault::Kind how, bool lose_indexes, bool lose_names) {
    return restart({.kind = how, .lose_indexes = lose_indexes, .lose_names = lose_names});
}

bool ObjectStage::write_off(std::uint32_t disk) {
    const daemon::NodeDisk* const lost = node_.node().disks().find("d" + std::to_string(disk));
    const store::Slot slot = *lost->slot();
    end_node({.kind = ObjectFault::Kind::kCrash, .replace_disk = disk});
    if (!play() || !run_until_ready()) return false;
    bool done = false;
    node_.forget_device({.slot = slot, .is_sure = true},
                        [&done](const daemon::DeviceRequests::Outcome& forgotten) {
                            done = forgotten && forgotten->done();
                        });
    const Instant limit = after(world_.now(), work_max_);
    while (kept() && !done && world_.now() < limit) step(limit);
    if (!done) book_.break_promise("a disk that is lost is not written off");
    book_.lose_slot(slot);
    // Only now a new disk is made instead of it.
    bool added = false;
    node_.add_device("d" + std::to_string(disk),
                     [&added](const daemon::DeviceRequests::Outcome& outcome) {
                         added = outcome && outcome->done();
                     });
    while (kept() && !added && world_.now() < limit) step(limit);
    if (!added) book_.break_promise("a new disk is not added instead of one written off");
    return kept();
}

bool ObjectStage::settle() {
    book_.excuse_missing(lost_disk_.has_value());
    for (const auto& user : users_) {
        if (!user->running()) user->start();
        user->sync();
    }
    if (!play()) return false;
    users_.front()->look_at_all();
    return play() && check();
}

bool ObjectStage::check() {
    const Instant limit = after(world_.now(), work_max_);
    while (kept() && look_at_checks()) step(limit);
    begin_checks();
    while (kept() && look_at_checks()) {
        step(limit);
        if (world_.now() >= limit) book_.break_promise("a check does not end");
    }
    return kept();
}

// Returns whether checks are in progress.
bool ObjectStage::look_at_checks() {
    if (!node_.running() || node_.node().state() != daemon::NodeState::kReady) {
        checks_due_ = world_.now();
        return false;
    }
    bool runs = false;
    for (const auto& disk : node_.node().disks().all()) {
        if (disk->volume() == nullptr) continue;
        daemon::Locality& locality = *node_.node().localities()[disk->locality().index];
        const objects::CheckStatus check = locality.store_check()->status(*disk->slot());
        using State = objects::CheckStatus::State;
        if (check.state == State::kRunning) runs = true;
        if (check.state == State::kFailed) book_.break_promise("a check failed: " + check.problem);
        if (check.report.findings.empty()) continue;
        const store::CheckFinding& finding = check.report.findings.front();
        book_.break_promise("a check found: " + finding.reason + " " + finding.name + " block " +
                            std::to_string(finding.range ? finding.range->block : 0));
    }
    if (!runs && checks_due_ == kNever) {
        ++check_count_;
        checks_due_ = after(world_.now(), kBetweenChecks);
    }
    return runs;
}

void ObjectStage::begin_checks() {
    if (!node_.running() || node_.node().state() != daemon::NodeState::kReady) return;
    checks_due_ = kNever;
    for (const auto& disk : node_.node().disks().all()) {
        if (disk->volume() == nullptr) continue;
        daemon::Locality& locality = *node_.node().localities()[disk->locality().index];
        const auto begun = locality.store_check()->begin(*disk->slot());
        if (!begun && !moving_) book_.break_promise("a check does not begin");
    }
}

// -- removing and adding disks --

bool ObjectStage::is_open(const std::string& disk) {
    return node_.node().disks().find(disk) != nullptr;
}

void ObjectStage::begin_move() {
    if (!node_.running() || node_.life_count() != moving_life_) moving_ = false;
    if (!node_.running() || node_.node().state() != daemon::NodeState::kReady) return;
    if (moving_ || world_.now() < move_due_) return;
    const std::string disk = "d" + std::to_string(world_.random().below(disk_count_));
    // The last disk of the node is not removed.
    if (is_open(disk) && node_.node().disks().all().size() == 1) return;
    begin_move_of(disk);
}

void ObjectStage::begin_move_of(const std::string& disk) {
    moving_ = true;
    moving_life_ = node_.life_count();
    auto ended = [this](const daemon::DeviceRequests::Outcome& moved) { end_move(moved); };
    if (is_open(disk)) {
        node_.remove_device(disk, ended);
    } else {
        node_.add_device(disk, ended);
    }
}

void ObjectStage::end_move(const daemon::DeviceRequests::Outcome& moved) {
    using Kind = daemon::DeviceOutcome::Kind;
    moving_ = false;
    const auto pause = world_.random().below(static_cast<std::uint64_t>(kBetweenMovesMax.count()));
    move_due_ = after(world_.now(), Duration{static_cast<Duration::rep>(pause)});
    if (!moved) return;  // The node is stopping.
    book_.tell(moved->device + " " + daemon::to_string(moved->kind) + " " + moved->words);
    switch (moved->kind) {
        case Kind::kAdded: ++moves_.came; break;
        case Kind::kRemoved: ++moves_.went; break;
        case Kind::kNotRemoved: ++moves_.stayed; break;
        case Kind::kNotAdded:
            book_.break_promise("a disk does not come back: " + moved->words);
            break;
        default: ENSURE(false);
    }
}

bool ObjectStage::bring_back() {
    moves_on_ = false;
    const Instant limit = after(world_.now(), work_max_);
    for (std::uint32_t i = 0; i < disk_count_; ++i) {
        while (kept() && moving_ && world_.now() < limit) step(limit);
        const std::string disk = "d" + std::to_string(i);
        if (kept() && !is_open(disk)) begin_move_of(disk);
    }
    while (kept() && moving_ && world_.now() < limit) step(limit);
    if (moving_) book_.break_promise("a disk that is to come back does not");
    return kept();
}

bool ObjectStage::read_all() {
    users_.front()->read_all();
    return play();
}

bool ObjectStage::empty() {
    users_.front()->remove_all();
    if (!play() || !settle()) return false;
    const Instant limit = after(world_.now(), kUpkeepMax);
    while (kept() && world_.now() < limit) step(limit);
    const std::uint64_t left = blocks_in_use() - blocks_in_use_at_start_;
    if (left != 0) {
        book_.break_promise("there is no object, and " + std::to_string(left) + " blocks are used");
    }
    return kept();
}

// Counts data blocks only: the log's own blocks and reserve vary.
std::uint64_t ObjectStage::blocks_in_use() {
    std::uint64_t blocks = 0;
    for (const auto& disk : node_.node().disks().all()) {
        blocks += disk->volume()->space_use().used_blocks;
    }
    return blocks;
}

bool ObjectStage::end() {
    for (const auto& user : users_) user->leave();
    const Instant limit = after(world_.now(), work_max_);
    const auto is_gone = [](const auto& user) { return !user->running(); };
    while (kept() && !std::ranges::all_of(users_, is_gone) && world_.now() < limit) step(limit);
    if (!std::ranges::all_of(users_, is_gone)) book_.break_promise("a user does not leave");
    node_.terminate();
    while (kept() && node_.running() && world_.now() < limit) step(limit);
    if (node_.running()) book_.break_promise("the node does not stop");
    return kept();
}

}  // namespace fopd::sim

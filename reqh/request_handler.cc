#include "reqh/request_handler.h"

#include <algorithm>
#include <array>

#include "core/stable_sort.h"
#include "fop/spent_names.h"
#include "reqh/request_object.h"

namespace fopd::reqh {

namespace {

AdmissionRule rule_of(const RequestHandlerLimits& limits) {
    return {.max_foms = limits.max_foms, .io_wait_goal = limits.io_wait_goal};
}

Admission::Load load_of(const Fom& fom) {
    return {.size_bytes = fom.attributes.size_bytes, .lane = fom.attributes.lane};
}

// The record of the fop's object, if it was loaded.
const store::Object* known_object(const Fom& fom) {
    return fom.operation() == nullptr ? nullptr : fom.operation()->known_object();
}

bool waits_for_silent_disk(const Fom& fom, Instant now) {
    const auto progress = fom.progress().read();
    return progress && progress->wait.is_for_disk() &&
           after(progress->waits_since, kDiskAnswersWithin) <= now;
}

constexpr fop::Reply kSilentDisk{.status = fop::Status::kTryAgain,
                                 .words = "the disk of the object does not answer"};
constexpr fop::Reply kNoMemory{.status = fop::Status::kTryAgain,
                               .words = fabric::kRequestMemoryUsedUp};
constexpr fop::Reply kStopping{.status = fop::Status::kTryAgain, .words = "the server is stopping"};

}  // namespace

RequestHandler::RequestHandler(const RequestHandlerParts& parts, const RequestHandlerLimits& limits)
    : Timer([](Timer& timer) { static_cast<RequestHandler&>(timer).look_for_hung(); }),
      reactor_(parts.reactor),
      work_(parts.work),
      requests_(parts.requests),
      events_(parts.events),
      locality_(parts.locality),
      slow_fop_(limits.slow_fop),
      tokens_(parts.tokens),
      operations_(parts.reactor),
      services_{.reactor = parts.reactor,
                .buffers = parts.buffers,
                .tokens = tokens_,
                .early_checks = early_checks_,
                .operations = operations_,
                .stores = parts.stores,
                .library = parts.library,
                .owner = *this},
      foms_(parts.reactor),
      admission_(rule_of(limits)),
      buffers_(parts.buffers),
      audit_(parts.reactor, parts.events) {
    audit_.set_changes(limits.audit_changes);
    ask();
}

void RequestHandler::on_incoming(fabric::IncomingFop& fop) {
    const fop::Request& request = fop.request();
    const fop::FopType* const type = fop::find_fop_type(request.type);
    fop::Reply answer{.id = request.id, .status = request.fault, .words = request.fault_words};
    const bool is_known = type != nullptr && type->callers == fop::Callers::kAll;
    if (!is_known) answer.status = fop::Status::kUnknownFop;
    if (answer.status == fop::Status::kDone && draining_) {
        answer.status = kStopping.status;
        answer.words = kStopping.words;
    }
    if (answer.status == fop::Status::kDone && fop.cancel_source().cancelled())
        answer.status = fop::Status::kCancelled;
    if (answer.status != fop::Status::kDone) {
        metrics_.count(type, answer.status);
        fop.reply(answer);
        return;
    }
    Fom& fom = foms_.take(services_);
    fom.begin(fop, *type);
    const Granted<> allowed = fom.check_sender();
    if (allowed) return requests_.incoming(fom);
    fom.leave_queue();
    finish(fom, {.status = allowed.error().status, .words = allowed.error().words});
}

void RequestHandler::ask() {
    start_those_with_share();
    const bool data = has_room() && !is_held_up();
    const bool control = draining_ || admission_.has_control_room();
    if ((!has_room() || !control) && !park_timer_.armed()) {
        reactor_.arm(park_timer_, after(reactor_.now(), kParkAfter));
    }
    if (!data && !control) return Getter::unlink();
    const lrs::Asked of_one_lane = data ? lrs::Asked::kData : lrs::Asked::kControl;
    requests_.next(*this, data && control ? lrs::Asked::kAny : of_one_lane);
}

void RequestHandler::on_request(lrs::Request* request) {
    if (request == nullptr) return;
    Fom& fom = static_cast<Fom&>(*request);
    fom.set_class(requests_.class_of(*request));
    if (!fom.of_class().empty()) fom.load_class = load_.class_row(fom.of_class(), reactor_.now());
    if (has_share(fom)) have_turn(fom);
    ask();
}

// The policy chose a fop for which there is no buffer, and whose client is not slow:
// buffers will be free soon, and no other fop overtakes this one.
bool RequestHandler::is_held_up() const {
    return held_up_ != nullptr && !shares_.is_limited(*held_up_->share(), buffers_.total_count());
}

// Whether the fom can start now. If not, it waits for its client's share, and fops of other clients
// go on.
bool RequestHandler::has_share(Fom& fom) {
    if (draining_ || !fom.needs_buffer()) return true;
    const fabric::Caller& caller = fom.fop().caller();
    Shares::Client& client = shares_.client_of(caller.share, caller.client);
    fom.set_share(&client);
    // Control fops proceed whatever clients hold, so that the node's state can be queried. A fop
    // that does not wait for its client returns its buffer soon. But all of these may wait for
    // other fops, as those do that are parked.
    const bool is_short = fom.attributes.lane != lrs::Lane::kData || !fom.waits_for_client();
    const bool needs_share = !is_short || shares_.has_parked(client);
    if (!needs_share || shares_.may_take(client, buffers_.total_count())) {
        shares_.take(client);
        return true;
    }
    shares_.wait(client, fom);
    fom.wait_for_share();
    held_up_ = &fom;
    return false;
}

void RequestHandler::start_those_with_share() {
    while (shares_.anybody_waits() && has_room()) {
        const std::uint64_t total = buffers_.total_count();
        Shares::Place* const place = draining_ ? shares_.pop_any() : shares_.next(total);
        if (place == nullptr) return;
        Fom& fom = static_cast<Fom&>(*place);
        if (held_up_ == &fom) held_up_ = nullptr;
        shares_.take(*fom.share());
        have_turn(fom);
    }
}

void RequestHandler::have_turn(Fom& fom) {
    fom.leave_queue();
    const fop::Reply* const why_not = why_not_now(fom);
    if (why_not == nullptr) return start(fom);
    requests_.complete(fom);
    finish(fom, *why_not);
}

// Null: the fom can start.
const fop::Reply* RequestHandler::why_not_now(Fom& fom) const {
    if (draining_) return &kStopping;
    if (!has_place_at_disk(fom)) return &kSilentDisk;
    // Foms that wait for others or for tape give up their places, so places do not limit how many
    // are executed.
    return fom.fop().may_take_memory(fom.execution_bytes()) ? nullptr : &kNoMemory;
}

bool RequestHandler::has_place_at_disk(const Fom& fom) const {
    const auto silent = silent_disks_.find(fom.attributes.device);
    if (silent == silent_disks_.end()) return true;
    return silent->second < std::max(admission_.max_foms() / 2, 1U);
}

void RequestHandler::start(Fom& fom) {
    fom.start();
    running_.push_back(fom);
    running_count_.add(1);
    admission_.began(load_of(fom));
    if (has_silent_disk(fom)) {
        ++silent_disks_[fom.attributes.device];
        park(fom);
    }
    if (!Timer::armed()) reactor_.arm(*this, after(reactor_.now(), kHungAfter));
    reactor_.spawn(work_, fom.run());
}

void RequestHandler::on_cancelled(Fom& fom) {
    leave_queues(fom);
    finish(fom, {.status = fop::Status::kCancelled, .words = "given up"});
}

void RequestHandler::on_late(Fom& fom, lrs::Request::Waited waited) {
    fom.leave_queue();
    const bool is_over = waited == lrs::Request::Waited::kForLimit;
    finish(fom, {.status = fop::Status::kTimedOut,
                 .words = is_over ? "over its limit: a rule of the server held the fop back until "
                                    "its deadline"
                                  : "the deadline passed before it could run"});
}

void RequestHandler::on_no_share(Fom& fom, const Error& why) {
    leave_queues(fom);
    finish(fom, {.status = fop::status_of(why.code), .words = why.context});
}

// The fom is queued in the scheduler, or has left it and waits for its share.
void RequestHandler::leave_queues(Fom& fom) {
    fom.leave_queue();
    if (fom.queued()) {
        fom.set_class(requests_.class_of(fom));
        return requests_.remove(fom);
    }
    if (held_up_ == &fom) held_up_ = nullptr;
    shares_.leave(*fom.share(), fom);
    fom.set_share(nullptr);
    requests_.complete(fom);
}

void RequestHandler::park() {
    const Instant now = reactor_.now();
    find_silent_disks(now);
    running_.for_each([&](RunningPlace& place) {
        Fom& fom = static_cast<Fom&>(place);
        // Empty while its locality writes it, which is not waiting.
        const auto progress = fom.progress().read();
        const bool waits_for_others =
            progress && (progress->wait.is_for_other_fop() || progress->wait.is_for_tape()) &&
            after(progress->waits_since, kParkAfter) <= now;
        if (waits_for_others || waits_for_silent_disk(fom, now) || has_silent_disk(fom)) {
            park(fom);
        } else {
            unpark(fom);
        }
    });
    if (parked_count_ > 0) reactor_.arm(park_timer_, after(now, kParkAfter));
    ask();
}

void RequestHandler::find_silent_disks(Instant now) {
    silent_disks_.clear();
    running_.for_each([&](RunningPlace& place) {
        const Fom& fom = static_cast<Fom&>(place);
        const bool has_disk = fom.attributes.device != lrs::kNoDevice;
        if (has_disk && waits_for_silent_disk(fom, now)) {
            silent_disks_.try_emplace(fom.attributes.device);
        }
    });
    if (silent_disks_.empty()) return;
    running_.for_each([this](RunningPlace& place) {
        const auto silent = silent_disks_.find(static_cast<Fom&>(place).attributes.device);
        if (silent != silent_disks_.end()) ++silent->second;
    });
}

void RequestHandler::park(Fom& fom) {
    // One that waits for a slow client does not count already.
    if (fom.parked() || fom.waits_for_slow_client()) return;
    fom.set_parked(true);
    ++parked_count_;
    if (fom.share() != nullptr) shares_.begin_parked(*fom.share());
    admission_.leave(load_of(fom));
}

void RequestHandler::unpark(Fom& fom) {
    if (!fom.parked()) return;
    fom.set_parked(false);
    --parked_count_;
    if (fom.share() != nullptr) shares_.end_parked(*fom.share());
    admission_.come_back(load_of(fom));
}

void RequestHandler::on_client_slow(Fom& fom) {
    unpark(fom);
    if (fom.share() != nullptr) shares_.begin_slow(*fom.share());
    admission_.leave(load_of(fom));
    ask();
}

void RequestHandler::on_client_back(Fom& fom) {
    if (fom.share() != nullptr) shares_.end_slow(*fom.share());
    admission_.come_back(load_of(fom));
    ask();
}

void RequestHandler::on_client_late(Fom& fom) {
    if (fom.share() != nullptr) fom.share()->began_late();
}

void RequestHandler::on_client_in_time(Fom& fom) {
    if (fom.share() != nullptr) fom.share()->ended_late();
}

bool RequestHandler::is_client_late(const Fom& fom) const {
    return fom.share() != nullptr && fom.share()->is_late();
}

bool RequestHandler::is_wanted_by_others(const Fom& fom) const {
    if (fom.share() == nullptr) return false;
    return buffers_.is_waited_for() || shares_.others_wait(*fom.share());
}

void RequestHandler::on_finished(Fom& fom, fop::Reply reply) {
    unpark(fom);
    fom.RunningPlace::unlink();
    running_count_.set(running_count_.get() - 1);
    const auto silent = silent_disks_.find(fom.attributes.device);
    if (silent != silent_disks_.end()) --silent->second;
    admission_.ended(load_of(fom), fom.io_wait());
    if (draining_ && reply.status == fop::Status::kCancelled) {
        const bool may_be_repeated =
            !fom.times().reached(Phase::kExecute) || fom.type().repeat == fop::Repeat::kIdempotent;
        reply.status = may_be_repeated ? fop::Status::kTryAgain : fop::Status::kOutcomeUnknown;
        reply.words = kStopping.words;
    }
    requests_.complete(fom);
    finish(fom, reply);
    ask();
}

// The reply's words may be borrowed from the fop, so everything is recorded before the fop is
// released.
void RequestHandler::finish(Fom& fom, const fop::Reply& reply) {
    fom.end_phases();
    metrics_.count(&fom.type(), reply.status);
    count_load(fom, reply.status);
    audit_.on_end({.id = fom.id(),
                   .type = fom.type(),
                   .caller = fom.fop().caller(),
                   .pool = fom.attributes.pool,
                   .asked_pool = fom.fop().header().pool,
                   .request = fom.fop().request(),
                   .known = known_object(fom),
                   .reply = reply});
    FopRecord& record = history_.add();
    fom.describe(record);
    record.state = FopRecord::State::kFinished;
    record.status = reply.status;
    record.spent = fom.time_spent();
    // The time that drives take does not count.
    const Duration for_tape = fom.progress().waited_for(WaitsFor::kTape);
    if (fom.times().total() - for_tape >= slow_fop_) {
        slow_.add(record, fom.fop().caller().share);
        const bool was_queued_only = fom.times().running() - for_tape < slow_fop_;
        const SlowBy by = was_queued_only ? SlowBy::kQueue : SlowBy::kItself;
        if (!was_queued_only || may_report_queued()) report_slow(fom, record, reply, by);
    }
    if (fom.share() != nullptr) shares_.give_back(*fom.share());
    fom.reply(reply);
    foms_.give_back(fom);
}

void RequestHandler::count_load(const Fom& fom, fop::Status status) {
    const fabric::Caller& caller = fom.fop().caller();
    // Names that were not proved are not counted apart.
    const bool is_proved = caller.kind == fop::AuthKind::kPrincipal;
    const std::uint64_t size_bytes = status == fop::Status::kDone ? fom.attributes.size_bytes : 0;
    metrics_.record(fom.type(), fom.times(), size_bytes);
    load_.ended({.class_row = fom.load_class,
                 .principal = is_proved ? caller.principal : caller.share,
                 .size_bytes = size_bytes,
                 .took = fom.times().total()},
                reactor_.now());
}

void RequestHandler::set_limits(const RequestHandlerLimits& limits) {
    slow_fop_ = limits.slow_fop;
    audit_.set_changes(limits.audit_changes);
    admission_.set(rule_of(limits));
    ask();
}

void RequestHandler::drain() {
    if (draining_) return;
    draining_ = true;
    requests_.shutdown();
    // A fop that waits for tape would delay the stop for long, so it is cancelled if it may be
    // repeated; the client sends it again.
    running_.for_each([](RunningPlace& place) {
        Fom& fom = static_cast<Fom&>(place);
        const auto progress = fom.progress().read();
        const bool waits = progress && progress->wait.is_for_tape();
        const bool may_be_repeated = fom.type().repeat == fop::Repeat::kIdempotent;
        if (waits && may_be_repeated) fom.fop().cancel_source().cancel();
    });
    ask();
}

void RequestHandler::cut_off() {
    ENSURE(draining_);
    cut_off_ = true;
    running_.for_each(
        [](RunningPlace& place) { static_cast<Fom&>(place).fop().cancel_source().cancel(); });
}

FopList RequestHandler::in_flight(std::size_t queued_max) const {
    FopList list;
    running_.for_each([&](RunningPlace& place) {
        list.fops.push_back(describe(static_cast<const Fom&>(place)));
    });
    std::vector<const Fom*> queued;
    for (const auto& fom : foms_.all()) {
        if (fom->state() == Fom::State::kQueued) queued.push_back(fom.get());
    }
    if (queued.size() > queued_max) {
        const auto newer = queued.begin() + static_cast<std::ptrdiff_t>(queued_max);
        std::ranges::nth_element(queued, newer, {}, &Fom::arrived_at);
        list.left_out = queued.size() - queued_max;
        queued.resize(queued_max);
    }
    for (const Fom* const fom : queued) list.fops.push_back(describe(*fom));
    core::stable_sort(list.fops, std::less{}, &FopRecord::arrived_at);
    return list;
}

FopRecord RequestHandler::describe(const Fom& fom) const {
    FopRecord record;
    fom.describe(record);
    if (fom.queued()) {
        record.wait.what = requests_.is_held_back(fom) ? WaitsFor::kLimit : WaitsFor::kTurn;
        const lrs::ClassLabel label = requests_.class_of(fom);
        record.of_class = ShortText(label.name);
        record.of_rule = ShortText(label.rule);
    }
    return record;
}

std::optional<FopRecord> RequestHandler::trace(FopId id) const {
    const auto fom = std::ranges::find_if(foms_.all(), [id](const auto& each) {
        return each->state() != Fom::State::kFree && each->id() == id;
    });
    if (fom != foms_.all().end()) return describe(**fom);
    const FopRecord* finished = history_.find(id);
    if (finished == nullptr) finished = slow_.find(id);
    if (finished == nullptr) return std::nullopt;
    return *finished;
}

FopList RequestHandler::slow() const {
    FopList list;
    list.fops = slow_.all();
    core::stable_sort(list.fops, std::less{}, &FopRecord::arrived_at);
    return list;
}

void RequestHandler::look_for_hung() {
    const Instant now = reactor_.now();
    Instant next = kNever;
    running_.for_each([&](RunningPlace& place) {
        Fom& fom = static_cast<Fom&>(place);
        if (fom.reported_hung()) return;
        if (look_at(fom) <= now) report_hung(fom);
        if (!fom.reported_hung()) next = std::min(next, look_at(fom));
    });
    if (next != kNever) reactor_.arm(*this, next);
}

// When it is late enough to report it, or to look again.
Instant RequestHandler::look_at(const Fom& fom) const {
    const auto progress = fom.progress().read();
    if (progress && progress->wait.is_for_tape()) return after(reactor_.now(), kHungAfter);
    if (!fom.reported_waiting()) return after(fom.started_at(), kHungAfter);
    const bool still_waits = !progress || progress->wait.is_for_client();
    return after(still_waits ? reactor_.now() : progress->waits_since, kHungAfter);
}

bool RequestHandler::may_report_queued() {
    const Instant now = reactor_.now();
    if (now < queued_reported_again_at_) return false;
    queued_reported_again_at_ = after(now, kQueuedReportedEvery);
    return true;
}

void RequestHandler::report_slow(const Fom& fom, const FopRecord& record, const fop::Reply& reply,
                                 SlowBy by) {
    const bool is_info = by == SlowBy::kQueue;
    if (!events_.wants(is_info ? core::Level::kInfo : core::Level::kWarn)) return;
    static constexpr std::array<std::string_view, kPhaseCount> kKeys{
        "queued_s",      "authenticate_s", "local_resources_s", "distributed_resources_s",
        "load_object_s", "authorise_s",    "fetch_s",           "transaction_s",
        "execute_s",     "reply_s"};
    // As fop::kSpentNames; the total is in `seconds`.
    static constexpr std::array<std::string_view, fop::kSpentOnCount> kSpentKeys{
        "",       "policy_s",     "buffer_s", "lock_s", "client_s",
        "room_s", "disk_queue_s", "disk_s",   "log_s",  "locality_s"};
    const std::string id = format_fop_id(record.id);
    const std::string waited_for = to_text(record.waited.wait);
    const fop::Request& request = fom.fop().request();
    const std::string fid = fid_in(fom.type(), request, reply);
    std::array<core::Field, 17 + kPhaseCount + fop::kSpentOnCount> fields;
    std::size_t count = 0;
    const auto say = [&fields, &count](const core::Field& field) { fields[count++] = field; };
    say({"fop", std::string_view(id)});
    say({"op", record.type->name});
    say({"peer", record.peer.view()});
    say({"principal", record.principal.view()});
    say({"job", fom.attributes.job});
    say({"class", std::string_view(fom.of_class())});
    say({"rule", std::string_view(fom.of_rule())});
    say({"locality", locality_});
    say({"pool", fom.attributes.pool});
    say({"device", fom.operation() == nullptr ? std::string_view() : fom.operation()->device()});
    say({"object", name_of(request, known_object(fom))});
    say({"fid", std::string_view(fid)});
    say({"bytes", fom.attributes.size_bytes});
    say({"result", fop::to_string(record.status)});
    say({"seconds", in_seconds(record.times.total())});
    for (std::size_t index = 0; index < kPhaseCount; ++index) {
        const auto phase = static_cast<Phase>(index);
        if (record.times.reached(phase)) say({kKeys[index], in_seconds(record.times.of(phase))});
    }
    for (std::size_t index = 1; index < fop::kSpentOnCount; ++index) {
        const Duration part = record.spent.of(static_cast<fop::SpentOn>(index));
        if (part > Duration::zero()) say({kSpentKeys[index], in_seconds(part)});
    }
    say({"server_s", in_seconds(fop::computed(record.spent))});
    if (!waited_for.empty()) {
        say({"waited_for", std::string_view(waited_for)});
        say({"waited_s", in_seconds(record.waited.span)});
    }
    events_.emit(is_info ? core::Level::kInfo : core::Level::kWarn, "reqh.slow_fop",
                 std::span(fields).first(count));
}

// A fop that waits for its client is not reported as hung.
void RequestHandler::report_hung(Fom& fom) {
    FopRecord record;
    fom.describe(record);
    const bool waits_for_client = record.wait.is_for_client();
    if (waits_for_client && fom.reported_waiting()) return;  // Again, since it was looked at.
    if (waits_for_client) {
        fom.set_reported_waiting();
    } else {
        fom.set_reported_hung();
        hung_count_.add(1);
    }
    const std::string id = format_fop_id(record.id);
    const std::string waits_for = to_text(record.wait);
    core::emit_each(events_, core::Level::kWarn,
                    waits_for_client ? "reqh.waits_for_client" : "reqh.hung_fom",
                    {{"fop", std::string_view(id)},
                     {"op", record.type->name},
                     {"phase", to_string(record.times.phase())},
                     {"waits_for", waits_for.empty() ? std::string_view("nothing")
                                                     : std::string_view(waits_for)},
                     {"age_s", in_seconds(reactor_.now() - fom.started_at())},
                     {"peer", record.peer.view()},
                     {"principal", record.principal.view()}});
}

}  // namespace fopd::reqh

#include "eh/peers/handler.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/byte_order.h"
#include "core/ensure.h"
#include "core/random.h"

namespace fopd::eh::peers {

namespace {

using core::emit;
using core::Level;

// Between two tries to write or read the file of the incarnation.
constexpr Duration kFileAgain = 1s;

// A line of a log does not grow with the cluster.
std::string some_of(const std::vector<std::string>& names) {
    constexpr std::size_t kMost = 8;
    std::string text;
    for (std::size_t i = 0; i < std::min(names.size(), kMost); ++i)
        text += (i == 0 ? "" : ", ") + names[i];
    if (names.size() > kMost) text += " and " + std::to_string(names.size() - kMost) + " more";
    return text;
}

std::string_view name_of(UnlikeRule rule) {
    switch (rule) {
        case UnlikeRule::kTimeout: return "eh.timeout";
        case UnlikeRule::kGrace: return "eh.grace";
        case UnlikeRule::kRootSilent: return "eh.root_silent";
        case UnlikeRule::kFanout: return "eh.fanout";
        case UnlikeRule::kPolicies: return "the version";
        case UnlikeRule::kRoot: return "eh.store.root";
        case UnlikeRule::kNone: break;
    }
    return "not known";
}

std::string_view words_of(EvictedFor reason) {
    switch (reason) {
        case EvictedFor::kSilence: return "silent";
        case EvictedFor::kBusyness: return "its scheduler was not ready in time";
        case EvictedFor::kNoStart: return "did not acknowledge the epoch";
        case EvictedFor::kNothing: break;
    }
    return "not known";
}

// The others may not have been heard, or the root may have evicted this node for its silence.
bool is_of_silence(const Error& error) {
    return error.os_errno == ETIMEDOUT || error.os_errno == ESTALE;
}

// Whether these bytes of a file are an incarnation that a daemon can have.
bool has_incarnation(const std::vector<std::byte>& bytes) {
    return bytes.size() == sizeof(Incarnation) &&
           load_little<Incarnation>(bytes.data()) <= kIncarnationMax;
}

MemberOptions observed(MemberOptions options, const EpochObserver* observer) {
    if (observer != nullptr) options.rules = observer->rules(options.rules);
    return options;
}

constexpr Error kLeft{.code = Errc::kCancelled, .os_errno = ECANCELED, .context = "left"};

}  // namespace

PeersHandler::PeersHandler(const Parts& parts, const MemberOptions& options, Peer self)
    : Timer(&on_time),
      parts_(parts),
      rules_(options.rules),
      options_(observed(options, parts.observer)),
      self_(std::move(self)),
      left_(parts.reactor) {}

void PeersHandler::begin() {
    ENSURE(!began_);
    began_ = true;
    file_busy_ = true;
    parts_.incarnation.read(*this);
}

void PeersHandler::stop() {
    stopped_ = true;
    disarm();
    left_.wake_all();
    early_.reset();
    if (participant_ == nullptr) return;
    const Error closed{.code = Errc::kCancelled, .os_errno = ECANCELED, .context = "stopping"};
    answer({.epoch = std::unexpected(closed)});
}

Task<bool> PeersHandler::left(Instant deadline) {
    while (is_running() && member_->standing() != Standing::kDetached) {
        const auto woken = co_await left_.wait({.deadline = deadline});
        if (!woken) co_return false;
    }
    co_return true;
}

// -- the participant --

Result<void> PeersHandler::next_epoch(EpochNumber current, std::span<const std::byte> data,
                                      Participant& participant) {
    std::vector<std::byte> marked;
    if (parts_.observer != nullptr) {
        marked.assign(data.begin(), data.end());
        parts_.observer->mark(self_.name, marked);
        data = marked;
    }
    if (data.size() > kEpochBytesMax) return std::unexpected(kTooMuchData);
    if (participant_ != nullptr) return std::unexpected(kAlreadyWaiting);
    if (stopped_)
        return std::unexpected(Error{.code = Errc::kClosed, .context = "the node is stopping"});
    if (is_running()) {
        auto accepted = member_->next_epoch(current, data, parts_.reactor.now());
        if (!accepted) return accepted;
    } else {
        early_ = {.current = current, .data = {data.begin(), data.end()}};
    }
    participant_ = &participant;
    called_at_ = parts_.reactor.now();
    if (parts_.observer != nullptr) parts_.observer->on_call(self_.name, options_.watchdog());
    if (!member_) arm_early();
    settle();
    return {};
}

void PeersHandler::last_epoch(EpochNumber /*current*/) {
    if (early_) {
        early_.reset();
        return answer({.epoch = std::unexpected(kLeft)});
    }
    if (!is_running()) return;
    if (parts_.observer != nullptr) parts_.observer->on_leave(self_.name, member_->incarnation());
    member_->last_epoch(parts_.reactor.now());
    settle();
}

void PeersHandler::answer(Answer answered) {
    if (parts_.observer != nullptr) {
        const Incarnation incarnation = member_ ? member_->incarnation() : 0;
        parts_.observer->on_answer(self_.name, incarnation, answered);
    }
    note_answer(answered.epoch);
    hold_back_if_unreachable(answered.epoch);
    std::exchange(participant_, nullptr)->on_epoch(answered.epoch, answered.data);
}

void PeersHandler::note_answer(const Result<EpochNumber>& epoch) {
    if (epoch) {
        is_lost_ = false;
        awaited_.clear();
        const Duration waited = parts_.reactor.now() - called_at_;
        figures_.seconds.record(waited);
        emit(parts_.events, Level::kDebug, "eh.epoch",
             {{"epoch", static_cast<std::int64_t>(*epoch)}, {"waited_us", waited / 1us}});
        if (figures_.failing.get() != 0) {
            figures_.failing.set(0);
            emit(parts_.events, Level::kInfo, "eh.epochs_again",
                 {{"epoch", static_cast<std::int64_t>(*epoch)}, {"view", member_->view_number()}});
        }
        return;
    }
    if (epoch.error().code == Errc::kCancelled) return figures_.failing.set(0);
    figures_.failed.add(1);
    note_error(reason_of(epoch.error()));
    if (figures_.failing.get() != 0) return;
    figures_.failing.set(1);
    emit(parts_.events, Level::kWarn, "eh.no_epochs", {{"reason", std::string_view(last_error_)}});
}

void PeersHandler::note_error(std::string reason) {
    last_error_ = std::move(reason);
    last_error_at_ = parts_.reactor.now();
}

// While the first epoch waits for daemons, nobody is silent.
std::string PeersHandler::reason_of(const Error& error) const {
    const bool is_waiting = error.os_errno == ENOLINK && member_->is_seated() &&
                            member_->newest_epoch() == kFirstEpoch &&
                            member_->view()->participants() < options_.expect;
    if (is_of_silence(error) && member_) return describe(error) + reason_of_silence();
    if (!is_waiting) return describe(error);
    return "waiting for " + std::to_string(options_.expect) + " daemons (eh.expect), " +
           std::to_string(member_->view()->participants()) + " have joined";
}

// What an administrator can do something about, if that is why no epoch came; empty: not known.
std::string PeersHandler::reason_of_silence() const {
    if (is_unreachable()) {
        return "; other daemons take the messages of this one, and none of theirs arrives at " +
               self_.address + ", its address in eh.members or eh.address";
    }
    const std::string& root = member_->root_name();
    if (root == self_.name) return {};
    const std::string problem = parts_.links.problem_with(root);
    if (!problem.empty()) return "; the root " + root + " " + problem;
    if (root.empty() || root != viewless_) return {};
    return "; the root " + root + " has not joined the epochs itself yet";
}

// Requests of this node arrive, and no answer ever came.
bool PeersHandler::is_unreachable() const {
    return parts_.links.requests_taken() > 0 && !has_heard_;
}

// A member that nobody reaches asks to join less and less often. The pause grows once for each
// request that was delivered: otherwise each call that fails would put off the next request.
void PeersHandler::hold_back_if_unreachable(const Result<EpochNumber>& epoch) {
    const bool is_silent = !epoch && is_of_silence(epoch.error());
    const std::uint64_t taken = parts_.links.requests_taken();
    if (!is_silent || !member_ || !is_unreachable() || taken == taken_before_) return;
    taken_before_ = taken;
    member_->hold_back(parts_.reactor.now());
}

// -- what comes in --

bool PeersHandler::on_message(const Peer& from, std::span<const std::byte> message) {
    has_heard_ = true;
    if (!is_running()) return false;
    auto decoded = decode(message);
    if (!decoded) {
        report({.kind = EventKind::kDropped, .name = from.name});
        return true;
    }
    // A redirect that comes late says nothing about the root of the view that this node is in.
    const auto* const redirect = std::get_if<Redirect>(&decoded->body);
    if (redirect != nullptr && !member_->is_seated())
        viewless_ = redirect->root.empty() ? from.name : std::string();
    member_->on_message(from, *std::move(decoded), parts_.reactor.now());
    settle();
    return true;
}

void PeersHandler::on_view_read(Result<ViewHandle> view) {
    if (!is_running()) return;
    const std::string reason = view ? std::string() : describe(view.error());
    if (!view) figures_.store_failed.add(1);
    if (!view) note_error("the view store: " + reason);
    if (std::exchange(read_error_, reason) != reason && !view) {
        emit(parts_.events, Level::kWarn, "eh.view_not_read",
             {{"reason", std::string_view(reason)}});
    }
    member_->on_view_read(view, parts_.reactor.now());
    settle();
}

void PeersHandler::on_view_swapped(Swapped outcome) {
    if (!is_running()) return;
    if (outcome != Swapped::kYes) {
        figures_.store_failed.add(1);
        emit(parts_.events, Level::kWarn, "eh.view_not_written",
             {{"outcome", outcome == Swapped::kNo ? "refused" : "unknown"}});
    }
    member_->on_view_swapped(outcome, parts_.reactor.now());
    settle();
}

void PeersHandler::on_time(core::Timer& timer) {
    auto& self = static_cast<PeersHandler&>(timer);
    if (self.stopped_) return;
    if (!self.member_) return self.on_early_time();
    if (!self.file_busy_ && self.persisting_) self.persist(*self.persisting_);
    self.member_->on_time(self.parts_.reactor.now());
    self.settle();
}

// -- before there is a member --

void PeersHandler::on_early_time() {
    const Instant now = parts_.reactor.now();
    if (began_ && !file_busy_ && now >= read_again_at_) {
        file_busy_ = true;
        parts_.incarnation.read(*this);
    }
    if (early_ && now >= after(called_at_, options_.watchdog())) {
        early_.reset();
        constexpr Error kNotYet{.code = Errc::kTimedOut,
                                .os_errno = ETIMEDOUT,
                                .context = "this node takes part in no epochs yet"};
        answer({.epoch = std::unexpected(kNotYet)});
    }
    arm_early();
}

void PeersHandler::arm_early() {
    Instant due = file_busy_ ? kNever : read_again_at_;
    if (early_) due = std::min(due, after(called_at_, options_.watchdog()));
    if (stopped_ || due == kNever) return disarm();
    parts_.reactor.arm(*this, due);
}

std::expected<Duration, std::string> PeersHandler::waive_majority() {
    if (!is_running()) return std::unexpected("this daemon takes part in no epochs yet");
    if (!options_.root.name.empty() && options_.root.name != self_.name)
        return std::unexpected("only the root can: " + options_.root.name);
    const Duration lasts = options_.watchdog();
    emit(parts_.events, Level::kWarn, "eh.majority_waived",
         {{"for_s", std::chrono::duration<double>(lasts).count()}});
    member_->waive_majority(parts_.reactor.now());
    settle();
    return lasts;
}

// -- the file of the incarnation --

void PeersHandler::on_file_read(Result<std::vector<std::byte>> bytes) {
    file_busy_ = false;
    if (stopped_) return;
    // A damaged file is like a lost one: the roster of the others has a number to go on from.
    if (bytes && !has_incarnation(*bytes)) {
        report_file({.code = Errc::kCorrupt, .context = "the file has no incarnation"});
        bytes = std::unexpected(Error{.code = Errc::kNotFound, .context = "no incarnation"});
    }
    if (!bytes && bytes.error().code != Errc::kNotFound) {
        report_file(bytes.error());
        read_again_at_ = after(parts_.reactor.now(), kFileAgain);
        return arm_early();
    }
    file_failed_ = false;
    use_incarnation(bytes ? load_little<Incarnation>(bytes->data()) : first_incarnation());
}

// Two daemons that have the same name by mistake, and no file yet, do not begin with one number.
Incarnation PeersHandler::first_incarnation() const {
    constexpr Incarnation kSpread = 1 << 24;
    const auto now = static_cast<std::uint64_t>(parts_.reactor.now().time_since_epoch().count());
    return core::mix(1, now) % kSpread;
}

void PeersHandler::use_incarnation(Incarnation durable) {
    const Instant now = parts_.reactor.now();
    member_.emplace(options_, self_, durable, now);
    if (early_) {
        const Early call = *std::exchange(early_, std::nullopt);
        const auto accepted = member_->next_epoch(call.current, call.data, called_at_);
        // It was checked when it was made, but for its epoch.
        if (!accepted) answer({.epoch = std::unexpected(accepted.error())});
    }
    settle();
}

void PeersHandler::persist(Incarnation incarnation) {
    persisting_ = incarnation;
    if (file_busy_) return;
    file_busy_ = true;
    std::vector<std::byte> bytes(sizeof incarnation);
    store_little(bytes.data(), incarnation);
    parts_.incarnation.replace(std::move(bytes), *this);
}

void PeersHandler::on_file_replaced(Replaced replaced) {
    file_busy_ = false;
    if (!is_running()) return;
    if (!replaced) {
        report_file(replaced.error().error);
        const Instant again = after(parts_.reactor.now(), kFileAgain);
        parts_.reactor.arm(*this, std::min(again, member_->next_deadline()));
        return;
    }
    file_failed_ = false;
    member_->on_persisted(*std::exchange(persisting_, std::nullopt), parts_.reactor.now());
    settle();
}

void PeersHandler::report_file(const Error& error) {
    note_error("the incarnation of this node: " + describe(error));
    if (std::exchange(file_failed_, true)) return;
    emit(parts_.events, Level::kError, "eh.incarnation_failed",
         {{"reason", std::string_view(describe(error))}});
}

// -- what goes out --

// What a participant or an answer adds meanwhile is executed by the outermost call.
void PeersHandler::settle() {
    if (settling_ || !is_running()) return;
    settling_ = true;
    for (auto effects = member_->take_effects(); !effects.empty() && !stopped_;
         effects = member_->take_effects()) {
        for (Effect& each : effects) execute(each);
    }
    settling_ = false;
    if (stopped_) return;
    if (parts_.observer != nullptr) parts_.observer->on_settled(self_.name, *member_);
    note_view();
    figures_.view.set(member_->view_number());
    figures_.members.set(member_->is_seated() ? member_->view()->size() : 0);
    Instant due = member_->next_deadline();
    if (persisting_ && !file_busy_) due = std::min(due, after(parts_.reactor.now(), kFileAgain));
    if (due == kNever) {
        disarm();
    } else {
        parts_.reactor.arm(*this, due);
    }
    if (member_->standing() == Standing::kDetached) left_.wake_all();
}

// A line of the log for each view that this node is in, and one more if it has another root.
void PeersHandler::note_view() {
    const ViewHandle& view = member_->view();
    if (!member_->is_seated() || view == noted_view_) return;
    noted_view_ = view;
    viewless_.clear();
    const std::string before = std::exchange(root_, view->root().name);
    emit(parts_.events, Level::kInfo, "eh.view",
         {{"view", view->number()},
          {"members", static_cast<std::uint64_t>(view->size())},
          {"root", std::string_view(root_)}});
    if (before.empty() || root_ == before || root_ == self_.name) return;
    emit(parts_.events, Level::kInfo, "eh.root",
         {{"root", std::string_view(root_)}, {"view", view->number()}});
}

void PeersHandler::execute(Effect& effect) {
    if (parts_.observer != nullptr && !parts_.observer->on_effect(self_.name, effect)) return;
    if (const auto* const send = std::get_if<Send>(&effect)) {
        parts_.links.send(send->to, send->message);
    } else if (const auto* const wanted = std::get_if<Persist>(&effect)) {
        persist(wanted->incarnation);
    } else if (std::holds_alternative<ReadStore>(effect)) {
        parts_.views.read(*this);
    } else if (auto* const swap = std::get_if<SwapStore>(&effect)) {
        parts_.views.swap(swap->expected, std::move(swap->next), *this);
    } else if (auto* const answered = std::get_if<Answer>(&effect)) {
        answer(std::move(*answered));
    } else {
        report(std::get<Event>(effect));
    }
}

void PeersHandler::report(const Event& event) {
    core::EventSink& events = parts_.events;
    const std::string_view name = event.name;
    const std::uint64_t view = event.view;
    switch (event.kind) {
        case EventKind::kJoined:
            emit(events, Level::kInfo, "eh.joined",
                 {{"view", member_->view_number()}, {"incarnation", member_->incarnation()}});
            break;
        case EventKind::kLeft: emit(events, Level::kInfo, "eh.left", {{"view", view}}); break;
        case EventKind::kEvicted:
            emit(events, Level::kWarn, "eh.evicted", {{"view", view}, {"by", name}});
            break;
        case EventKind::kLost:
            if (!std::exchange(is_lost_, true))
                emit(events, Level::kWarn, "eh.lost", {{"view", view}});
            break;
        case EventKind::kView: note_view(); break;
        case EventKind::kEvicts:
            figures_.evictions.add(1);
            emit(events, Level::kWarn, "eh.evicts",
                 {{"member", name}, {"view", view}, {"reason", words_of(event.reason)}});
            break;
        case EventKind::kTakesOver: report_takeover(event); break;
        case EventKind::kAwaits: report_awaited(event); break;
        case EventKind::kAbdicates:
            emit(events, Level::kWarn, "eh.abdicates", {{"view", view}});
            break;
        case EventKind::kViewLost:
            note_error("the view store has an older list of members, or none");
            emit(events, Level::kError, "eh.view_lost", {{"view", view}, {"found", event.found}});
            break;
        case EventKind::kNumbersUsedUp:
            note_error("the numbers of epochs are used up");
            emit(events, Level::kError, "eh.numbers_used_up", {{"view", view}});
            break;
        case EventKind::kOtherBytes:
            emit(events, Level::kWarn, "eh.other_bytes", {{"member", name}, {"view", view}});
            break;
        case EventKind::kSecondOfName:
            emit(events, Level::kError, "eh.second_of_name",
                 {{"member", name}, {"address", std::string_view(event.address)}});
            break;
        case EventKind::kRefused:
            if (!is_new_difference(event)) break;
            emit(events, Level::kError, "eh.other_rules",
                 {{"member", name}, {"differs", name_of(event.rule)}});
            break;
        case EventKind::kDropped:
            figures_.dropped.add(1);
            emit(events, Level::kWarn, "eh.message_dropped", {{"from", name}});
            break;
    }
}

// A daemon that is refused asks again every second or two.
bool PeersHandler::is_new_difference(const Event& event) {
    constexpr Duration kAgainAfter = 1min;
    constexpr std::size_t kMost = 64;  // Names are free where no list of members is configured.
    const Instant now = parts_.reactor.now();
    const auto found = differences_.find(event.name);
    const bool is_known = found != differences_.end() && found->second.rule == event.rule;
    if (is_known && now < after(found->second.told_at, kAgainAfter)) return false;
    if (found == differences_.end() && differences_.size() >= kMost) differences_.clear();
    differences_[event.name] = {.rule = event.rule, .told_at = now};
    return true;
}

// A root that was started again takes its own place up; that is nothing to look into.
void PeersHandler::report_takeover(const Event& event) {
    figures_.evictions.add(event.left_out.size());
    const std::uint64_t members = member_->view()->size();
    const std::string left_out = some_of(event.left_out);
    if (event.name == self_.name) {
        emit(
            parts_.events, Level::kInfo, "eh.returns",
            {{"view", event.view}, {"members", members}, {"left_out", std::string_view(left_out)}});
        return;
    }
    emit(parts_.events, Level::kWarn, "eh.takes_over",
         {{"from", std::string_view(event.name)},
          {"view", event.view},
          {"members", members},
          {"left_out", std::string_view(left_out)}});
}

void PeersHandler::report_awaited(const Event& event) {
    std::string names = some_of(event.left_out);
    note_error("not enough of the last members have answered; missing: " + names);
    if (awaited_ == names) return;
    awaited_ = std::move(names);
    emit(parts_.events, Level::kWarn, "eh.awaits_members",
         {{"view", event.view}, {"missing", std::string_view(awaited_)}});
}

// -- what is seen --

EpochStatus PeersHandler::status() const {
    const auto within = [this](double share) {
        return Duration(static_cast<std::int64_t>(figures_.seconds.percentile(share)));
    };
    EpochStatus status{.last_error = last_error_, .median = within(0.5), .p99 = within(0.99)};
    const auto is_there = [&status](const std::string& name) {
        return std::ranges::find(status.members, name, &EpochStatus::Seen::name) !=
               status.members.end();
    };
    if (!last_error_.empty()) status.last_error_age = parts_.reactor.now() - last_error_at_;
    if (member_) {
        status.state = member_->state();
        status.epoch = member_->newest_epoch();
        status.view = member_->view_number();
        const ViewHandle& view = member_->view();
        const bool is_seated = member_->is_seated();
        if (view != nullptr && !view->empty()) status.root = view->root().name;
        for (std::size_t i = 0; is_seated && i < view->size(); ++i) {
            using State = EpochStatus::Seen::State;
            status.members.push_back(
                {.name = view->at(i).name,
                 .state = member_->is_ready(i) ? State::kReady : State::kMember});
        }
    }
    const bool is_member = member_ && member_->is_seated();
    for (const Peer& other : options_.others) {
        if (is_there(other.name)) continue;
        using State = EpochStatus::Seen::State;
        status.members.push_back({.name = other.name,
                                  .state = is_member                  ? State::kLost
                                           : other.name == self_.name ? State::kDetached
                                                                      : State::kUnknown});
    }
    return status;
}

}  // namespace fopd::eh::peers

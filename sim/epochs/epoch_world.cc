#include "sim/epochs/epoch_world.h"

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <variant>

#include "core/ensure.h"

namespace fopd::sim {

using eh::peers::Effect;
using eh::peers::Member;
using eh::peers::Message;
using eh::peers::Peer;

namespace {

Peer peer_of(std::size_t index) {
    return {.name = EpochLaws::name_of(index), .address = "a" + std::to_string(index)};
}

std::size_t index_of(const std::string& address) {
    return address.size() < 2 ? SIZE_MAX : std::strtoull(address.c_str() + 1, nullptr, 10);
}

// A member that hears no beat in time asks for one.
bool keeps_alive(const eh::peers::Body& body) {
    return std::holds_alternative<eh::peers::Beat>(body) ||
           std::holds_alternative<eh::peers::Ask>(body);
}

}  // namespace

EpochWorld::EpochWorld(const EpochWorldOptions& options)
    : options_(options),
      random_(options.seed),
      member_options_(options.member),
      processes_(options.members),
      laws_(options.members, options.member.fanout, options.member.watchdog()) {
    member_options_.pool = this;
    if (!options_.is_shared) member_options_.root = peer_of(0);
    for (std::size_t i = 0; i < options.members; ++i) start(i);
}

void EpochWorld::start(std::size_t index) {
    Process& process = processes_[index];
    if (process.member) return;
    ++process.life;
    expect_messages(now_);
    process.member.emplace(member_options_, peer_of(index), process.durable, now_);
    process.current = 0;
    process.armed_at = kNever;
    process.paused_until = {};
    process.busy_until = {};
    if (process.wants) on_process(index, now_, [this, index] { (void)call(index, 0); });
}

// -- events --

void EpochWorld::at(Instant when, std::function<void()> what) {
    queue_.emplace(std::pair(std::max(when, now_), ++last_event_), std::move(what));
}

void EpochWorld::on_process(std::size_t index, Instant when, std::function<void()> what) {
    at(when, [this, index, life = processes_[index].life, what = std::move(what)]() mutable {
        Process& process = processes_[index];
        if (!process.member || process.life != life) return;
        if (process.paused_until > now_)
            return on_process(index, process.paused_until, std::move(what));
        what();
        after_step(index);
    });
}

bool EpochWorld::step() {
    if (queue_.empty()) return false;
    auto next = queue_.extract(queue_.begin());
    now_ = next.key().first;
    next.mapped()();
    return true;
}

void EpochWorld::run_until(Instant end) {
    while (!queue_.empty() && queue_.begin()->first.first <= end && laws_.broken().empty()) step();
    now_ = std::max(now_, end);
}

bool EpochWorld::run_until_true(Instant end, const std::function<bool()>& condition) {
    while (!condition()) {
        if (queue_.empty() || queue_.begin()->first.first > end || !laws_.broken().empty())
            return false;
        step();
    }
    return true;
}

void EpochWorld::after_step(std::size_t index) {
    Process& process = processes_[index];
    if (process.member) {
        const std::pair place(process.member->standing(), process.member->view_number());
        if (std::exchange(process.place, place) != place) expect_messages(now_);
    }
    while (process.member) {
        auto effects = process.member->take_effects();
        if (effects.empty()) break;
        for (Effect& effect : effects) execute(index, std::move(effect));
    }
    if (!process.member) return;
    if (options_.checks_laws) laws_.on_step(index, *process.member);
    const Instant deadline = process.member->next_deadline();
    const Instant due = std::max(deadline, after(now_, 1us));
    if (deadline == kNever || due >= process.armed_at) return;
    process.armed_at = due;
    on_process(index, due, [this, index, due] {
        Process& woken = processes_[index];
        if (woken.armed_at != due) return;
        woken.armed_at = kNever;
        woken.member->on_time(now_);
        woken.idle_turns = woken.member->next_deadline() <= now_ ? woken.idle_turns + 1 : 0;
        if (woken.idle_turns > 20)
            laws_.fail("world", EpochLaws::name_of(index) + " turns without end");
    });
}

void EpochWorld::execute(std::size_t index, Effect effect) {
    if (const auto* const sent = std::get_if<eh::peers::Send>(&effect)) {
        send(index, *sent);
    } else if (const auto* const persist = std::get_if<eh::peers::Persist>(&effect)) {
        on_process(index, now_ + 1ms, [this, index, incarnation = persist->incarnation] {
            Process& written = processes_[index];
            written.durable = std::max(written.durable, incarnation);
            written.member->on_persisted(incarnation, now_);
        });
    } else if (std::holds_alternative<eh::peers::ReadStore>(effect)) {
        read_store(index);
    } else if (const auto* const swap = std::get_if<eh::peers::SwapStore>(&effect)) {
        swap_store(index, *swap);
    } else if (const auto* const answer = std::get_if<eh::peers::Answer>(&effect)) {
        answered(index, *answer);
    } else if (const auto* const event = std::get_if<eh::peers::Event>(&effect)) {
        trace_ = core::mix(trace_, static_cast<std::uint64_t>(event->kind) * 64 + index);
        if (options_.members <= 64)
            events_.push_back({.at = now_, .member = index, .event = *event});
    }
}

// Law I10. Messages that are lost are sent again, and members that hear too few beats talk about
// it.
void EpochWorld::check_silence(std::size_t index, const char* does) {
    if (!options_.checks_laws || options_.lost_ppm > 0) return;
    // The root waits for the timeout for those that are not ready, and may have heard of a call
    // that has ended.
    const Duration afterwards = member_options_.rules.timeout + member_options_.root_silent +
                                2 * member_options_.grace + 4 * (options_.hop + options_.jitter);
    if (now_ <= eventful_until_ + afterwards) return;
    for (std::size_t i = 0; i < processes_.size(); ++i) {
        if (!runs(i) || laws_.is_pending(i)) return;
    }
    laws_.fail("I10", EpochLaws::name_of(index) + " " + does + " while nobody calls");
}

std::size_t EpochWorld::count(eh::peers::EventKind kind) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(events_, [&](const Seen& seen) { return seen.event.kind == kind; }));
}

eh::ViewHandle EpochWorld::share(eh::View view) {
    for (const eh::ViewHandle& known : shared_[view.number]) {
        if (known->view() == view) return known;
    }
    const eh::ViewNumber number = view.number;
    return shared_[number].emplace_back(std::make_shared<const eh::CommittedView>(std::move(view)));
}

// -- messages --

void EpochWorld::send(std::size_t index, const eh::peers::Send& sent) {
    const std::size_t to = index_of(sent.to.address);
    if (to >= processes_.size()) return;
    ++messages_;
    const char* const kind = eh::peers::name_of(sent.message.body);
    ++kinds_[kind];
    if (!keeps_alive(sent.message.body)) check_silence(index, kind);
    Process& process = processes_[index];
    process.busy_until = std::max(process.busy_until, now_) + options_.handling;
    if (random_.chance_ppm(options_.lost_ppm)) return;
    const int copies = random_.chance_ppm(options_.twice_ppm) ? 2 : 1;
    Message message = sent.message;
    if (options_.in_bytes) {
        auto read = eh::peers::decode(eh::peers::encode(sent.message));
        ENSURE(read.has_value());
        ENSURE(*read == sent.message);
        message = *std::move(read);
    }
    for (int i = 0; i < copies; ++i) {
        Instant when = process.busy_until + options_.hop;
        if (options_.jitter > 0ns) when += Duration(random_.between(0, options_.jitter.count()));
        deliver(index, to, when, message);
    }
}

void EpochWorld::deliver(std::size_t from, std::size_t to, Instant when, Message message) {
    at(when, [this, from, to, message = std::move(message)]() mutable {
        const auto blocked = blocked_.find({from, to});
        if (blocked != blocked_.end() && now_ < blocked->second) return;
        Process& process = processes_[to];
        if (!process.member) return;
        const Instant free = process.busy_until;
        process.busy_until = std::max(free, now_) + options_.handling;
        const auto handle = [this, from, to, message = std::move(message)]() mutable {
            trace_ = core::mix(trace_, message.body.index() * 64 + to);
            processes_[to].member->on_message(peer_of(from), std::move(message), now_);
        };
        on_process(to, process.busy_until, handle);
    });
}

void EpochWorld::inject(std::size_t to, const Peer& from, Message message) {
    expect_messages(now_);
    on_process(to, now_, [this, to, from, message = std::move(message)] {
        processes_[to].member->on_message(from, message, now_);
    });
}

std::uint64_t EpochWorld::messages(const std::string& kind) const {
    const auto found = kinds_.find(kind);
    return found == kinds_.end() ? 0 : found->second;
}

// -- the view store --

void EpochWorld::read_store(std::size_t index) {
    ++reads_;
    check_silence(index, "reads the store");
    if (now_ < store_broken_until_) {
        on_process(index, now_ + 10 * options_.store_time, [this, index] {
            processes_[index].member->on_view_read(
                std::unexpected(Error{.code = Errc::kTimedOut, .context = "no store"}), now_);
        });
        return;
    }
    at(now_ + options_.store_time / 2, [this, index] {
        const eh::ViewHandle newest = history_.empty() ? nullptr : history_.back();
        on_process(index, now_ + options_.store_time / 2,
                   [this, index, newest] { processes_[index].member->on_view_read(newest, now_); });
    });
}

eh::Swapped EpochWorld::write(const eh::peers::SwapStore& swap) {
    if (history_.size() != swap.expected || now_ < store_full_until_) return eh::Swapped::kNo;
    history_.push_back(swap.next);
    laws_.on_commit(swap.next);
    expect_messages(now_);
    return eh::Swapped::kYes;
}

void EpochWorld::swap_store(std::size_t index, const eh::peers::SwapStore& swap) {
    ++swaps_;
    check_silence(index, "writes to the store");
    const auto answer_at = [this, index](Instant when, eh::Swapped outcome) {
        on_process(index, when, [this, index, outcome] {
            processes_[index].member->on_view_swapped(outcome, now_);
        });
    };
    std::optional<Duration> happens = std::exchange(lost_swap_, std::nullopt);
    bool never = false;
    if (!happens &&
        (now_ < store_broken_until_ || random_.chance_ppm(options_.store_unknown_ppm))) {
        never = random_.below(3) == 0;
        happens = random_.below(2) == 0 ? 0ns : random_.between(0, 1000) * Duration(1ms);
    }
    if (happens) {
        if (!never) at(now_ + *happens, [this, swap] { (void)write(swap); });
        return answer_at(now_ + 2 * options_.store_time, eh::Swapped::kUnknown);
    }
    at(now_ + options_.store_time / 2,
       [this, answer_at, swap] { answer_at(now_ + options_.store_time / 2, write(swap)); });
}

// -- participants --

Result<void> EpochWorld::call(std::size_t index, eh::EpochNumber current) {
    Process& process = processes_[index];
    ENSURE(process.member.has_value());
    if (process.member->is_pending()) {
        return process.member->next_epoch(current, {}, now_);
    }
    const auto data = laws_.contribution(index, options_.bytes_max);
    const auto accepted = process.member->next_epoch(current, data, now_);
    expect_messages(now_);
    if (accepted) {
        laws_.on_call(index, data.size(), now_);
        process.frozen = 0ns;
    }
    after_step(index);
    return accepted;
}

void EpochWorld::run_participant(std::size_t index, Duration think) {
    Process& process = processes_[index];
    process.wants = true;
    process.think = think;
    if (process.member)
        on_process(index, now_, [this, index] { (void)call(index, processes_[index].current); });
}

void EpochWorld::be_irregular(std::uint32_t slow_ppm, std::uint32_t leave_ppm) {
    slow_ppm_ = slow_ppm;
    leave_ppm_ = leave_ppm;
}

void EpochWorld::leave(std::size_t index) {
    Process& process = processes_[index];
    process.wants = false;
    if (!process.member) return;
    expect_messages(now_);
    laws_.on_leave(index, *process.member);
    process.current = 0;
    process.member->last_epoch(now_);
    after_step(index);
}

void EpochWorld::waive_majority(std::size_t index) {
    processes_[index].member->waive_majority(now_);
    after_step(index);
}

void EpochWorld::answered(std::size_t index, const eh::peers::Answer& answer) {
    Process& process = processes_[index];
    expect_messages(now_);
    if (options_.checks_laws) laws_.on_answer(index, *process.member, answer, process.frozen, now_);
    trace_ = core::mix(trace_, static_cast<std::uint64_t>(answer.epoch.value_or(-1)));
    process.answers.push_back(answer.epoch);
    process.answered_at.push_back(now_);
    process.current = answer.epoch.value_or(0);
    if (!process.wants || calls_stop_) return;
    Duration pause = answer.epoch ? process.think : member_options_.rules.timeout / 10;
    if (slow_ppm_ > 0 && random_.chance_ppm(slow_ppm_))
        pause = Duration(random_.between(0, 2 * member_options_.rules.timeout.count()));
    if (leave_ppm_ > 0 && random_.chance_ppm(leave_ppm_)) {
        on_process(index, now_ + pause, [this, index] {
            if (!processes_[index].wants) return;
            leave(index);
            const Duration away(random_.between(0, member_options_.rules.timeout.count()));
            at(now_ + away, [this, index] { run_participant(index, processes_[index].think); });
        });
        return;
    }
    on_process(index, now_ + pause, [this, index] {
        const Process& ready = processes_[index];
        if (ready.wants && !ready.member->is_pending()) (void)call(index, ready.current);
    });
}

// -- faults --

void EpochWorld::crash(std::size_t index) {
    Process& process = processes_[index];
    if (!process.member) return;
    process.member.reset();
    ++process.life;
    expect_messages(now_);
    laws_.on_crash(index);
}

void EpochWorld::pause(std::size_t index, Instant until) {
    Process& process = processes_[index];
    if (until <= process.paused_until) return;
    process.frozen += until - std::max(now_, process.paused_until);
    process.paused_until = until;
    expect_messages(until);
}

void EpochWorld::block(std::size_t from, std::size_t to, Instant until) {
    Instant& end = blocked_[{from, to}];
    end = std::max(end, until);
    expect_messages(until);
}

void EpochWorld::draw_faults(Instant until) {
    draw_fault(until);
    at(until, [this] {
        options_.lost_ppm = 0;
        options_.twice_ppm = 0;
        options_.store_unknown_ppm = 0;
        be_irregular(0, 0);
        for (std::size_t i = 0; i < processes_.size(); ++i) {
            start(i);
            if (!processes_[i].wants) run_participant(i, processes_[i].think);
        }
    });
}

void EpochWorld::draw_fault(Instant until) {
    const auto some = [this, until](Duration longest) {
        return std::min(until, now_ + Duration(random_.between(0, longest.count())));
    };
    const Duration timeout = member_options_.rules.timeout;
    at(now_ + Duration(random_.between(0, timeout.count())), [this, until, some, timeout] {
        if (now_ >= until) return;
        const std::size_t one = random_.below(processes_.size());
        switch (random_.below(8)) {
            case 0: {  // A partition.
                const std::uint64_t side = random_.next();
                const Instant end = some(4 * timeout);
                for (std::size_t a = 0; a < processes_.size(); ++a) {
                    for (std::size_t b = 0; b < processes_.size(); ++b) {
                        if ((side >> (a % 64) & 1) != (side >> (b % 64) & 1)) block(a, b, end);
                    }
                }
                break;
            }
            case 1: block(one, random_.below(processes_.size()), some(4 * timeout)); break;
            case 2: pause(one, some(3 * timeout)); break;
            case 3:
            case 4: {
                crash(one);
                at(some(2 * timeout), [this, one] { start(one); });
                break;
            }
            case 5: break_store(some(3 * timeout)); break;
            case 6: {  // One that others hear, and that hears nobody, or the other way round.
                const Instant end = some(3 * timeout);
                const bool hears = random_.below(2) == 0;
                for (std::size_t i = 0; i < processes_.size(); ++i)
                    hears ? block(one, i, end) : block(i, one, end);
                break;
            }
            case 7:
                if (runs(one)) waive_majority(one);
                break;
            default: break;
        }
        draw_fault(until);
    });
}

void EpochWorld::begin_joined() {
    eh::View view{.number = 1, .epoch_low = 1, .epoch_high = member_options_.block};
    view.rules_hash = member_options_.rules_hash;
    for (std::size_t i = 0; i < processes_.size(); ++i) {
        const Peer peer = peer_of(i);
        view.roster.push_back(
            {.name = peer.name, .incarnation = 1, .address = peer.address, .joined = 1});
    }
    const eh::ViewHandle handle = share(std::move(view));
    history_.push_back(handle);
    laws_.on_commit(handle);
    for (std::size_t i = 0; i < processes_.size(); ++i) {
        processes_[i].durable = 1;
        processes_[i].member->seat(handle, now_);
        processes_[i].member->take_effects();
        after_step(i);
    }
}

bool EpochWorld::all_joined() const {
    const eh::ViewHandle newest = history_.empty() ? nullptr : history_.back();
    for (const Process& process : processes_) {
        if (!process.member || !process.wants) continue;
        if (process.member->standing() != eh::peers::Standing::kMember) return false;
        if (newest == nullptr || process.member->view_number() != newest->number()) return false;
    }
    return true;
}

std::string EpochWorld::describe() const {
    std::string text = "at " + std::to_string((now_ - Instant{1s}).count() / 1'000'000) + " ms";
    text += ", store has view " + std::to_string(history_.size());
    if (!history_.empty() && !history_.back()->empty())
        text += " of " + history_.back()->root().name;
    for (std::size_t i = 0; i < std::min<std::size_t>(processes_.size(), 16); ++i) {
        const Process& process = processes_[i];
        text += "\n  m" + std::to_string(i) + ": ";
        if (!process.member) {
            text += "down";
            continue;
        }
        const Member& of = *process.member;
        text += "standing " + std::to_string(static_cast<int>(of.standing()));
        text += of.is_seated() ? ", seated in " : ", was in ";
        text += std::to_string(of.view_number());
        if (of.is_root()) text += ", root";
        if (of.is_pending()) text += ", pending";
        text += ", epoch " + std::to_string(of.newest_epoch());
        text += ", incarnation " + std::to_string(of.incarnation());
        if (process.paused_until > now_) text += ", paused";
    }
    return text;
}

}  // namespace fopd::sim

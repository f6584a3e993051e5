#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/random.h"
#include "eh/peers/member.h"
#include "sim/epochs/epoch_laws.h"

namespace fopd::sim {

struct EpochWorldOptions {
    std::uint64_t seed = 1;
    std::size_t members = 3;
    eh::peers::MemberOptions member{};
    bool is_shared = true;  // All reach the view store; otherwise only member 0.
    Duration hop = 50us;    // At least, of each message.
    Duration jitter = 0us;  // At most, on top: messages overtake each other.
    std::uint32_t lost_ppm = 0;
    std::uint32_t twice_ppm = 0;
    Duration handling = 0us;  // Time to handle a message; messages are handled one by one.
    Duration store_time = 2ms;
    std::uint32_t store_unknown_ppm = 0;  // Answers of the store that get lost.
    bool in_bytes = true;                 // Messages are encoded, and read again.
    std::size_t bytes_max = 8 * 64;       // The largest contribution.
    bool checks_laws = true;
};

// Many members in virtual time, without reactors or sessions: their messages, their view store, the
// participants that call them, and what fails of all this. The same seed gives the same run.
class EpochWorld final : eh::peers::ViewPool {
public:
    explicit EpochWorld(const EpochWorldOptions& options);

    // -- what participants do --

    // Ready again `think` after each epoch, or a tenth of the timeout after an error.
    void run_participant(std::size_t member, Duration think);
    void leave(std::size_t member);
    // Calls Member::waive_majority(). REQUIRES: the member runs.
    void waive_majority(std::size_t member);
    // Participants are slow now and then, and leave and return.
    void be_irregular(std::uint32_t slow_ppm, std::uint32_t leave_ppm);
    // Everybody stops calling when its present call has ended. A law says that only beats travel
    // soon afterwards.
    void stop_participants() { calls_stop_ = true; }
    // One call, whatever it returns.
    Result<void> call(std::size_t member, eh::EpochNumber current);

    // -- what fails --

    void start(std::size_t member);
    void crash(std::size_t member);
    // The member loses the file with its incarnation. REQUIRES: the member does not run.
    void forget_incarnation(std::size_t member) { processes_[member].durable = 0; }
    void pause(std::size_t member, Instant until);
    void block(std::size_t from, std::size_t to, Instant until);
    void break_store(Instant until) {
        store_broken_until_ = until;
        expect_messages(until);
    }
    // Until then the store can be read, and writes nothing: it is full.
    void fill_store(Instant until) {
        store_full_until_ = until;
        expect_messages(until);
    }
    // The store has the first views only, as if somebody had put an old one back; 0: none.
    void lose_views(std::size_t keeps) { history_.resize(keeps); }
    // The store has no view, and nobody takes part in one any more. REQUIRES: the root is down.
    void begin_views_again() {
        history_.clear();
        laws_.on_views_lost();
    }
    // The next swap is answered kUnknown, and happens after this time; zero: at once.
    void lose_next_swap_answer(Duration happens_after) { lost_swap_ = happens_after; }
    // Draws faults until then from the seed; afterwards everything works and all members run.
    void draw_faults(Instant until);
    // All are members of one view from the beginning, as if they had joined one by one.
    void begin_joined();

    // -- time --

    Instant now() const { return now_; }
    void run_until(Instant end);
    // False if it does not come true in time.
    bool run_until_true(Instant end, const std::function<bool()>& condition);
    bool step();

    // -- what is seen --

    const EpochLaws& laws() const { return laws_; }
    const eh::peers::Member& member(std::size_t index) const { return *processes_[index].member; }
    bool runs(std::size_t index) const { return processes_[index].member.has_value(); }
    // All that run and want to are members of one view.
    bool all_joined() const;
    const std::vector<Result<eh::EpochNumber>>& answers(std::size_t index) const {
        return processes_[index].answers;
    }
    const std::vector<Instant>& answered_at(std::size_t index) const {
        return processes_[index].answered_at;
    }
    std::uint64_t messages() const { return messages_; }
    std::uint64_t messages(const std::string& kind) const;
    // Swaps that members asked the store for.
    std::uint64_t swaps() const { return swaps_; }
    std::uint64_t reads() const { return reads_; }
    std::uint64_t trace() const { return trace_; }
    // Events of members, such as evictions; empty with more than 64 members.
    struct Seen {
        Instant at{};
        std::size_t member = 0;
        eh::peers::Event event{};
    };
    const std::vector<Seen>& events() const { return events_; }
    std::size_t count(eh::peers::EventKind kind) const;
    // Delivers a message that nobody sent.
    void inject(std::size_t to, const eh::peers::Peer& from, eh::peers::Message message);
    std::string describe() const;

private:
    struct Process {
        std::optional<eh::peers::Member> member;
        std::uint64_t life = 0;
        eh::Incarnation durable = 0;
        Instant paused_until{};
        Duration frozen{};  // Since the call.
        Instant busy_until{};
        Instant armed_at = kNever;
        std::uint32_t idle_turns = 0;  // In a row, after which a deadline had passed already.
        bool wants = false;            // Its participant calls.
        std::pair<eh::peers::Standing, eh::ViewNumber> place{};
        Duration think{};
        eh::EpochNumber current = 0;
        std::vector<Result<eh::EpochNumber>> answers;
        std::vector<Instant> answered_at;
    };

    eh::ViewHandle share(eh::View view) override;
    void at(Instant when, std::function<void()> what);
    // Runs `what` on a process that lives, when it is not paused.
    void on_process(std::size_t index, Instant when, std::function<void()> what);
    void after_step(std::size_t index);
    void execute(std::size_t index, eh::peers::Effect effect);
    // Members may talk about what happens until then.
    void expect_messages(Instant until) { eventful_until_ = std::max(eventful_until_, until); }
    void check_silence(std::size_t index, const char* does);
    void send(std::size_t index, const eh::peers::Send& send);
    void deliver(std::size_t from, std::size_t to, Instant when, eh::peers::Message message);
    void read_store(std::size_t index);
    void swap_store(std::size_t index, const eh::peers::SwapStore& swap);
    eh::Swapped write(const eh::peers::SwapStore& swap);
    void answered(std::size_t index, const eh::peers::Answer& answer);
    void draw_fault(Instant until);

    EpochWorldOptions options_;
    core::Random random_;
    eh::peers::MemberOptions member_options_;
    std::vector<Process> processes_;
    EpochLaws laws_;
    Instant now_{1s};
    std::uint64_t last_event_ = 0;
    std::map<std::pair<Instant, std::uint64_t>, std::function<void()>> queue_;
    std::map<std::pair<std::size_t, std::size_t>, Instant> blocked_;
    std::vector<eh::ViewHandle> history_;
    std::map<eh::ViewNumber, std::vector<eh::ViewHandle>> shared_;
    Instant eventful_until_{};
    Instant store_broken_until_{};
    Instant store_full_until_{};
    std::uint64_t swaps_ = 0;
    std::uint64_t reads_ = 0;
    std::optional<Duration> lost_swap_;
    std::uint32_t slow_ppm_ = 0;
    std::uint32_t leave_ppm_ = 0;
    bool calls_stop_ = false;
    std::uint64_t messages_ = 0;
    std::map<std::string, std::uint64_t> kinds_;
    std::vector<Seen> events_;
    std::uint64_t trace_ = 0;
};

}  // namespace fopd::sim

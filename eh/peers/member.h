#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/time.h"
#include "eh/handler.h"
#include "eh/peers/joiners.h"
#include "eh/peers/message.h"
#include "eh/view.h"
#include "eh/view_store.h"

namespace fopd::eh::peers {

// The newest epoch of a daemon moves the block of a view to this number at most, so that a liar
// leaves enough numbers.
inline constexpr EpochNumber kNewestHeeded = kEpochMax / 2;

struct Peer {
    std::string name{};
    std::string address{};
};

// Which evictions a root may decide.
enum class Quorum : std::uint8_t {
    // Evictions after which a majority of the participants remains: keeps_majority().
    kParticipants,
    kStore,  // All evictions; the view store decides between two roots.
};

// Lets the members of one process share one object for equal views, to save memory.
class ViewPool {
public:
    virtual ViewHandle share(View view) = 0;

protected:
    ~ViewPool() = default;
};

// The options of a member. `rules_hash` stands for those that all members need to have in common:
// the rules, `fanout`, `grace`, `root_silent` and whatever else the caller has put into it. Nobody
// compares the others. Of `join_batch`, `expect`, `bootstrap_timeout`, `block` and `quorum` those
// of the member count that is root, or is about to become it.
struct MemberOptions {
    EpochRules rules{};
    std::uint64_t rules_hash = 0;  // A member with another hash is refused.
    std::size_t fanout = 16;
    Duration grace = 500ms;     // A living member answers within this time.
    Duration root_silent = 2s;  // After that the root counts as dead.
    Duration resend = 125ms;    // First interval between repetitions of a message.
    // Requests to join are collected for this time, and admitted with one view.
    Duration join_batch = 50ms;
    Duration back_off_max = 30s;       // The longest pause between two attempts to join again.
    std::size_t expect = 1;            // The first epoch waits until there are so many members.
    Duration bootstrap_timeout = 30s;  // The longest wait for `expect` members.
    // How many epoch numbers a root reserves at a time. A quarter of them or more is left while the
    // store is away.
    std::int64_t block = 1 << 30;
    Quorum quorum = Quorum::kParticipants;
    // Daemons that should be members, as far as they are known; this one may be among them. In a
    // shared store that has no view, they are asked before one is made.
    std::vector<Peer> others{};
    // The only member that reaches the view store. Without a name: all members reach it.
    Peer root{};
    ViewPool* pool = nullptr;

    // A pending call ends after this time at the latest.
    Duration watchdog() const { return rules.timeout + 2 * grace + root_silent + 1s; }
    Duration beat() const { return root_silent / 3; }
    // A member asks the root itself if it has heard nothing from it for this time.
    Duration ask_after() const { return root_silent * 2 / 3; }
    // How long a member waits before it sends First. An epoch that is complete by then needs three
    // messages per member.
    Duration first_delay() const { return grace / 2; }
};

enum class EventKind : std::uint8_t {
    kJoined,   // This member is in a view.
    kLeft,     // It has left.
    kEvicted,  // It learned that it was evicted.
    // The call of this member was not answered in time: it is no member any more, as far as it
    // knows.
    kLost,
    kView,       // This root has committed a view, or has become root by a view of another root.
    kEvicts,     // This root evicted `name`.
    kTakesOver,  // This member has become root in place of `name`. Its view lacks `left_out`.
    kAwaits,     // This member cannot become root before one of `left_out` answers.
    // This member is root no more: another root has committed a view, or most members are silent.
    kAbdicates,
    // The store has an older view than this member, with the number `found`; 0: it has none.
    kViewLost,
    // This member can write no view any more: the next block would be beyond kEpochMax.
    kNumbersUsedUp,
    kOtherBytes,    // `name` sent two contributions for one round. The first one counts.
    kSecondOfName,  // Two daemons have the name `name`.
    kRefused,       // `name` has other rules.
    kDropped,       // A message of `name` was invalid.
};

// The actions that a member requests, such as Send. The caller executes them in order, after the
// method that requested them has returned.
struct Send {
    Peer to{};
    Message message{};
};
struct Persist {
    Incarnation incarnation = 0;  // Makes the incarnation durable. on_persisted() follows.
};
struct ReadStore {};
struct SwapStore {
    ViewNumber expected = 0;
    ViewHandle next{};
};
struct Answer {
    Result<EpochNumber> epoch;
    std::vector<std::byte> data{};
    ViewNumber view = 0;  // The view whose members contributed.
};
// Why a root evicts a member.
enum class EvictedFor : std::uint8_t {
    kNothing,
    kSilence,   // It did not answer within the grace, after the timeout was over.
    kBusyness,  // Its participant was not ready when the timeout was over.
    kNoStart,   // It did not acknowledge the start of an epoch.
};
struct Event {
    EventKind kind = EventKind::kJoined;
    std::string name{};
    ViewNumber view = 0;
    EvictedFor reason = EvictedFor::kNothing;
    // kTakesOver: the members of the old view that are not in the new one. kAwaits: the members
    // that have not answered this candidate.
    std::vector<std::string> left_out{};
    UnlikeRule rule = UnlikeRule::kNone;
    std::string address{};  // The address of the other daemon, with kSecondOfName.
    ViewNumber found = 0;
};
using Effect = std::variant<Send, Persist, ReadStore, SwapStore, Answer, Event>;

// The newest epoch in which a member took part during a view, noted when the member moves on to the
// next view.
struct LeftView {
    ViewNumber view = 0;
    EpochNumber newest = 0;
    bool operator==(const LeftView&) const = default;
};

// Whether this daemon is a member.
enum class Standing : std::uint8_t {
    kDetached,  // It is no member, and does not try to become one.
    kJoining,
    kMember,
    kLost,  // A call was not answered in time; the daemon joins again with the next call.
    kLeaving,
};
// The progress towards the next epoch, as far as this daemon knows it.
enum class EpochState : std::uint8_t {
    kDetached,  // It is in no view.
    kIdle,      // Its view has no participants.
    kWaiting,   // It knows of no participant that is ready.
    kClosing,   // A participant is ready, and waits for the others.
};

// A node as a member of the epochs of all nodes (docs/reference/epochs.md): a state machine without
// I/O. The inputs are messages, answers of the view store and the time; the outputs are effects. A
// value: a copy continues independently. Each call that was accepted is answered by exactly one
// Answer.
class Member {
public:
    // `durable`: the last incarnation that was made durable. `options` outlives the member.
    Member(const MemberOptions& options, Peer self, Incarnation durable, Instant now);

    // Like the functions of EpochHandler. A refusal is returned at once, and no Answer follows.
    Result<void> next_epoch(EpochNumber current, std::span<const std::byte> data, Instant now);
    void last_epoch(Instant now);
    // Called when an administrator knows that the members that do not answer are gone. Until the
    // next view, but not longer than watchdog(), this member may evict members and take over as
    // root without a majority.
    void waive_majority(Instant now);

    // Called when no other member reaches this one. It then waits before it asks to join again,
    // longer each time: if it were admitted, all members would wait for it in each epoch.
    void hold_back(Instant now);

    // `from` is the sender as the transport knows it, with the address for answers.
    void on_message(const Peer& from, Message message, Instant now);
    void on_persisted(Incarnation incarnation, Instant now);
    void on_view_read(const Result<ViewHandle>& stored, Instant now);
    void on_view_swapped(Swapped outcome, Instant now);
    void on_time(Instant now);
    // When on_time() is due.
    Instant next_deadline() const;

    std::vector<Effect> take_effects() { return std::exchange(effects_, {}); }

    // -- for status and tests --

    Standing standing() const { return standing_; }
    EpochState state() const;
    // Whether a call of next_epoch() waits for its Answer.
    bool is_pending() const { return call_.has_value(); }
    // Whether it has a position in the roster of view().
    bool is_seated() const { return seated_; }
    bool is_root() const { return duty_.has_value(); }
    ViewNumber view_number() const { return view_ == nullptr ? 0 : view_->number(); }
    const ViewHandle& view() const { return view_; }
    EpochNumber newest_epoch() const { return newest_; }
    Incarnation incarnation() const { return incarnation_; }
    // The root of its view. Without a view: the daemon that it asks for admission; empty: it knows
    // none.
    const std::string& root_name() const { return seated_ ? view_->root().name : root_hint_.name; }
    CommonRules rules() const;
    const LeftView& left_view() const { return left_view_; }
    // Whether the member at this position is known to be ready. Known are this member, and its
    // children, each together with all members below it. REQUIRES: seated.
    bool is_ready(std::size_t position) const;
    // The number of contributions that the member holds: its own, and one for each child that has
    // reported. The one of a child combines those of all members below it.
    std::size_t contributions() const;
    std::uint64_t dropped() const { return dropped_; }
    // Equal members with equal remaining times give equal hashes.
    std::uint64_t fingerprint(Instant now) const;
    // Makes this a member of a committed view, without joining. For measurements of many members.
    void seat(ViewHandle view, Instant now);

private:
    struct Call {
        std::vector<std::byte> data{};
        Instant began{};
        Instant ready_since{};   // When the call was made or the member joined, whichever is later.
        bool is_folded = false;  // The contribution of the call is in report_.
    };
    struct Child {
        bool is_ready = false;
        Ready report{};
        bool has_view = false;
        bool has_start = true;  // The child and all members below it have received the last start.
    };
    // The phase of a change of the view. kProbing: checks that the store answers, and still has
    // this view. kSettling: a swap's outcome is unknown. kRefused: another view was written first.
    enum class Phase : std::uint8_t { kNone, kProbing, kSwapping, kSettling, kRefused };
    using Evictions = std::map<std::string, EvictedFor>;
    // The state that only a root has, besides its state as a member.
    struct Duty {
        EpochNumber next = 0;  // The number of the next epoch.
        Instant view_since{};
        Instant started_at = kNever;     // When this root has begun the last epoch.
        Instant held_until = Instant{};  // Until then the first epoch waits for members.
        Instant polled_at = kNever;      // When the members that are not ready were polled.
        Instant poll_not_before = Instant{};
        std::map<std::uint32_t, PollAck> answers{};  // To the poll, by position.
        std::set<std::uint32_t> polled{};            // Positions.
        Instant start_due = kNever;  // When the last start must have been acknowledged.
        bool start_retried = false;
        // Members that have received the last start, while a member below them has not.
        std::set<std::uint32_t> has_start{};
        Joiners joiners{};
        std::set<std::string> leavers{};
        Evictions evict{};
        Evictions evicting{};                 // The evictions in the view that is being written.
        std::vector<std::string> to_front{};  // Members to place next to the root.
        bool wants_bump = false;              // The root wants a new view with the same roster.
        bool wants_out = false;               // In the next view the root does not contribute.
        bool wants_in = false;                // In the next view the root contributes again.
        bool admitted_in_closing = false;     // A view was committed while participants waited.
        Instant admit_at = kNever;            // When the joiners are admitted.
        Instant change_at = kNever;           // The next try to change the view.
        Instant doubt_since = kNever;  // Since when most members are silent; then it abdicates.
        Instant beat_at{};             // When the next Beat is sent.
    };
    struct Candidacy {
        ViewHandle target{};
        Instant began{};
        bool has_told = false;  // kAwaits was emitted.
        std::map<std::string, PromiseAck> granted{};
        std::map<std::string, Incarnation> incarnations{};  // Of those in `granted`.
        Instant majority_at = kNever;  // When enough had promised. Late ones may follow.
        Instant resend_at = kNever;
    };
    // A view that has this member as root, as another member has told of it. Only the store makes
    // this member root.
    struct Handover {
        ViewNumber number = 0;
        ViewHandle view{};  // Null: only the number was told.
        std::optional<ViewDifference> news{};
        Instant read_at{};  // When to read the store; again after `pause` if it does not have it.
        Duration pause{};
        Instant until{};  // After that this member waits for the root's silence.
    };
    // Why a view is written. kDuty: by its root, which changes it. kCreate: there are no members.
    enum class SwapKind : std::uint8_t { kNone, kDuty, kTakeOver, kCreate };
    enum class ReadFor : std::uint8_t { kJoin, kNews, kCandidacy, kProbe, kSettle };
    // A view that another member sends in parts.
    struct Assembly {
        ViewNumber number = 0;           // 0: none.
        std::vector<std::byte> bytes{};  // Of the parts that have arrived.
        Peer from{};
        Instant again_at = kNever;  // When to ask for the next part again.
        Instant since{};            // When the view was first asked for, or its last part came.
    };

    // member.cc
    void send(const Peer& to, Body body);
    void send_round(const Peer& to, std::uint32_t round, Body body);
    void send_as(const Peer& to, ViewNumber view, std::uint32_t round, Body body);
    void tell(EventKind kind, std::string name);
    void tell_eviction(const std::string& name);
    void tell_gone(std::string root);
    void tell_takeover(const View& before);
    void tell_second(const std::string& name, const std::string& address);
    void tell_unlike(const std::string& name, UnlikeRule rule);
    void answer(Result<EpochNumber> epoch, std::vector<std::byte> data);
    void fail_call(Errc code, std::int32_t os_errno, const char* context);
    void drop(const Peer& from);
    void swap_bytes(std::vector<std::byte>& data) const;
    void normalise(StartRecord& record) const;
    void normalise(Message& message) const;
    Result<ViewHandle> normalised(const Result<ViewHandle>& read) const;
    Peer peer_at(std::size_t position) const;
    Peer root_peer() const { return peer_at(0); }
    ViewHandle share(View view) const;
    bool is_root_position() const { return position_ == 0; }
    bool takes_part() const { return view_->at(position_).takes_part; }
    // The incarnation in the messages of this member.
    Incarnation sent_incarnation() const {
        return seated_ ? view_->at(position_).incarnation : incarnation_;
    }
    bool has_promised() const { return promised_ >= view_number(); }
    bool is_shared() const { return options_->root.name.empty(); }
    bool waives_majority(Instant now) const { return now < majority_waived_until_; }
    bool reaches_store() const { return is_shared() || options_->root.name == self_.name; }
    void on_tree_message(const Peer& from, const Message& message, Instant now);
    void on_watchdog(Instant now);
    void go_on_leaving(Instant now);
    bool reads_while_leaving() const;
    bool may_be_admitted() const;

    // member_tree.cc
    std::size_t first_child() const { return position_ * options_->fanout + 1; }
    Child* child_at(std::size_t position);
    bool is_from_above(std::size_t position) const;
    void begin_round(std::uint32_t round);
    void note_closing(Instant since, Instant now);
    Instant waiting_since(std::uint64_t waited_us, Instant now) const;
    void try_fold(Instant now);
    void add_to(Ready& sum, const Ready& part) const;
    void answer_old_round(const Peer& to, std::uint32_t round);
    void on_ready(const Peer& from, std::size_t position, const Message& message,
                  const Ready& ready, Instant now);
    void on_first(const Peer& from, std::size_t position, const Message& message,
                  const First& first, Instant now);
    void on_start(const Peer& from, std::size_t position, const Message& message,
                  const Start& start);
    void take_start(StartRecord record);
    void on_start_ack(std::size_t position, const Message& message, const StartAck& ack);
    void acknowledge_start();
    void on_abort(const Message& message, const Abort& abort);
    void take_abort(std::uint32_t next_round);
    void send_down(const Body& body, std::uint32_t round);
    void on_tree_time(Instant now);

    // member_views.cc
    void adopt(const ViewHandle& next, std::optional<ViewDifference> news, Instant now);
    void take_seat(const ViewHandle& next, std::size_t position, Instant now);
    void take_carry(const View& next);
    void refuse_view(const CommittedView& next, Instant now);
    void lose_seat(Instant now);
    void unseat();
    bool is_new() const;
    ViewNumber promised() const { return is_new() ? promised_anew_ : promised_; }
    ViewNumber over() const;
    void note_promise(ViewNumber number);
    void back_off(Instant now);
    void tell_children();
    void send_view(const Peer& to, bool has_base);
    void tell_successor(const CommittedView& next, const std::optional<ViewDifference>& news);
    void release_leavers(const CommittedView& next);
    void send_nack(const Peer& to, Incarnation incarnation);
    void want_view(const Peer& from, ViewNumber number, Instant now);
    void on_view_news(const Peer& from, const ViewNews& news, Instant now);
    void on_view_part(const Peer& from, const ViewPart& part, Instant now);
    void hear_view(const Peer& from, const ViewHandle& next, std::optional<ViewDifference> news,
                   Instant now);
    void note_handover(Handover heard, Instant now);
    void read_handover(Instant now);
    bool reads_handover() const;
    std::optional<ViewDifference> news_of(const ViewHandle& base, const CommittedView& next) const;
    std::optional<ViewDifference> news_heard_of(const CommittedView& next) const;
    void on_view_want(const Peer& from, const ViewWant& want);
    void check_exclusion(ViewNumber number, Instant now);
    // Whether it believes that it has no seat any more, whoever says so: it gives it up anyway.
    bool leaves_anyway() const { return standing_ == Standing::kLeaving && !duty_; }
    void on_nack(const Peer& from, const Nack& nack, Instant now);

    // member_join.cc
    Join request_to_join() const;
    void take_block(View& next, EpochNumber had) const;
    UnlikeRule unlike(const CommonRules& other) const;
    void end_join(Errc code, std::int32_t os_errno, const char* context, Instant now);
    void begin_join(Instant now);
    void go_on_joining(Instant now);
    void use_record(const ViewHandle& record, Instant now);
    bool looks_for_members(Instant now);
    bool lost_view(const ViewHandle& record) const;
    void note_lost_view(const ViewHandle& record);
    void note_found_view();
    void on_probed(const Result<ViewHandle>& read, Instant now);
    void create_view(const ViewHandle& record, Instant now);
    void on_join(const Peer& from, const Message& message, const Join& join, Instant now);
    void refuse_second(const Peer& to, Incarnation incarnation);
    void on_joiner_leaves(const Peer& from, Incarnation incarnation);
    void on_redirect(const Peer& from, const Redirect& redirect, Instant now);
    void on_refuse(const Peer& from, const Refuse& refuse, Instant now);
    bool begin_swap(SwapKind kind, const ViewHandle& next);
    void write_swap();
    void on_settled(const Result<ViewHandle>& read, Instant now);
    void end_swap(Instant now);
    void lose_swap(const ViewHandle& record, Instant now);
    void forget_swap();
    bool ask_store(ReadFor reason);
    void learn(const ViewHandle& record, Instant now);
    static bool is_plausible(Incarnation incarnation, Incarnation known);
    void pass_incarnation(Incarnation known);
    void begin_behind(Incarnation known);
    void claim(Instant now);

    // member_root.cc
    void begin_duty(bool was_root, Instant now);
    bool is_frozen() const { return phase_ != Phase::kNone && phase_ != Phase::kProbing; }
    bool is_held(Instant now) const;
    bool hands_over() const;
    bool is_leaving_root() const;
    void decide(Instant now);
    void start_epoch(Instant now);
    void abort_epoch();
    void poll(Instant now);
    void on_poll(std::size_t position, const Message& message);
    void on_poll_ack(const Peer& from, std::size_t position, const Message& message,
                     const PollAck& ack, Instant now);
    void decide_eviction(Instant now);
    bool may_evict(const Evictions& out, bool root_is_out, Instant now) const;
    bool keeps_majority(const Evictions& out, bool root_is_out) const;
    void retry_start(Instant now);
    bool wants_change(Instant now) const;
    bool may_admit() const;
    void note_admission(Instant now);
    void maybe_change(Instant now);
    void change_view(Instant now);
    View next_view(Instant now) const;
    bool needs_block() const;
    void note_change_committed(const View& old, Instant now);
    void add_below(std::size_t position, std::set<std::uint32_t>& to) const;
    Instant poll_due() const;
    Instant give_up_due() const;
    void on_root_time(Instant now);
    Instant next_root_deadline() const;

    // member_takeover.cc
    Instant candidate_at() const;
    Duration stagger(std::size_t position) const;
    void begin_candidacy(const ViewHandle& target, Instant now);
    void on_promise(const Peer& from, const Message& message, const Promise& promise, Instant now);
    void on_promise_ack(const Peer& from, const Message& message, const PromiseAck& ack,
                        Instant now);
    bool is_root_back(Instant now) const;
    Duration wait_for_late() const;
    void count_promises(Instant now);
    void tell_awaited(Instant now);
    View taken_over() const;
    RosterEntry root_of(ViewNumber number) const;
    std::optional<Incarnation> incarnation_in(ViewNumber number, const std::string& name) const;
    void refuse_number(const Peer& to, const Message& message, Incarnation known);
    bool is_restarted_root(const Peer& from, const Message& message, const Promise& promise) const;
    void on_takeover_time(Instant now);

    const MemberOptions* options_;
    Peer self_;
    Incarnation durable_;  // The highest incarnation that may have been used.
    // The incarnation of the present or last attempt to join; 0: there was none.
    Incarnation incarnation_ = 0;
    // With this incarnation or an older one, it does not take a seat in a view any more.
    Incarnation given_up_ = 0;
    bool is_persisting_ = false;

    Standing standing_ = Standing::kDetached;
    std::optional<Call> call_;
    EpochNumber epoch_ = kFirstEpoch;  // The epoch that the participant knows.
    EpochNumber newest_ = kFirstEpoch;
    StartRecord last_start_;  // The last start this process has seen.

    ViewHandle view_;  // Null: never a member.
    LeftView left_view_;
    bool seated_ = false;
    std::size_t position_ = 0;
    std::uint32_t round_ = 1;
    ViewNumber promised_ = 0;       // It takes part in no view up to this number.
    ViewNumber promised_anew_ = 0;  // Like promised_, but only of the present incarnation.
    std::set<std::string> unlike_;  // Candidates for the next view that have other rules.
    std::vector<Child> children_;
    std::optional<ViewDifference> news_;  // How view_ follows from the one before.
    // When view_ is sent again to children that have not acknowledged it, and after which time once
    // more. kNever: no more, a child that learns of it by a beat asks for it.
    Instant news_at_ = kNever;
    Duration news_step_{};
    // This member and all members below it are ready, and report_ is set.
    bool is_reported_ = false;
    Ready report_;  // Their combined contributions.
    Instant resend_at_ = kNever;
    Duration resend_step_{};
    // Since when this member knows that a member waits for others.
    Instant closing_since_ = kNever;
    Instant first_at_ = kNever;  // When to send First.
    Instant root_heard_;
    Instant majority_waived_until_{};
    Instant ask_at_ = kNever;  // When to ask the root whether it is alive.
    Assembly assembly_;
    std::optional<Handover> handover_;

    Instant join_at_ = kNever;
    Instant join_not_before_ = Instant{};
    std::uint32_t failures_ = 0;     // How often the membership was lost.
    std::uint32_t good_epochs_ = 0;  // Epochs since the membership was last lost.
    Peer root_hint_;                 // The daemon to ask for admission.
    ViewHandle record_;              // While joining: the view that the store had.
    // When the store may be read next while joining, or because somebody says that this member was
    // evicted.
    Instant read_at_ = Instant{};
    // When to create the first view, if no member has answered by then.
    Instant create_at_ = kNever;
    Instant found_until_{};  // A member has answered, and counts as alive until then.
    // When to replace an earlier incarnation of this member that is root.
    Instant claim_at_ = kNever;
    Instant leave_until_ = kNever;  // When to leave without the root's consent.
    Instant leave_at_ = kNever;     // When to send Leave again.
    // While leaving: when to read the store, whose view may show that this member, or the root, has
    // left.
    Instant leave_read_at_ = kNever;

    bool store_busy_ = false;
    bool is_view_lost_ = false;  // The store has lost the view of this member.
    Duration lost_pause_{};      // The pause before the store is read again.
    // The next answer of the store belongs to an operation that was given up.
    bool store_ignored_ = false;
    Phase phase_ = Phase::kNone;
    SwapKind swap_ = SwapKind::kNone;
    ViewHandle swap_next_;
    ReadFor read_for_ = ReadFor::kJoin;
    Instant settle_at_ = kNever;
    Instant candidate_not_before_ = Instant{};
    std::uint64_t attempts_ = 0;
    SwapKind adopting_ = SwapKind::kNone;  // The kind of swap that made the view being adopted.

    std::optional<Duty> duty_;
    std::optional<Candidacy> candidacy_;
    std::uint64_t dropped_ = 0;
    std::vector<Effect> effects_;
};

}  // namespace fopd::eh::peers

#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/time.h"
#include "eh/view.h"

namespace fopd::eh::peers {

// The messages between members (docs/formats/epoch.md). Pure bytes: the session that delivers one
// names and authenticates its sender.

// A fop carries it in one message of at most 16 KiB.
inline constexpr std::size_t kMessageBytesMax = 15 * 1024;
// Of a view's bytes in one message.
inline constexpr std::size_t kViewPartMax = 12 * 1024;

// -- a reduction, up and down the tree --

// To the parent: the sender and all below it are ready. Sent again until the round ends.
struct Ready {
    std::uint32_t count = 0;    // Contributions in the data.
    std::uint32_t leavers = 0;  // Members below, or the sender, that leave and contribute nothing.
    std::uint64_t waited_us = 0;  // Since the first of them was ready.
    std::vector<std::byte> data{};
    bool operator==(const Ready&) const = default;
};
// To the parent: somebody below has been ready for a while, and not all are.
struct First {
    std::uint64_t waited_us = 0;
    bool operator==(const First&) const = default;
};
// To the children: the same, of the whole tree.
struct Closing {
    std::uint64_t waited_us = 0;
    bool operator==(const Closing&) const = default;
};
// To the children: the epoch has begun.
struct Start {
    EpochNumber epoch = 0;
    std::uint32_t count = 0;
    std::vector<std::byte> data{};
    bool operator==(const Start&) const = default;
};
// To the parent: the sender and all below it have the start of the round before.
struct StartAck {
    bool is_alone = false;  // Sent to the root itself, which had asked: only the sender has it.
    bool operator==(const StartAck&) const = default;
};
// To the children: no epoch begins in this round. The next one is `next_round`.
struct Abort {
    std::uint32_t next_round = 0;
    bool operator==(const Abort&) const = default;
};

// -- between the root and a member --

// Is the member ready? Asked when the timeout is over.
struct Poll {
    bool operator==(const Poll&) const = default;
};
enum class PollState : std::uint8_t { kBusy, kReady, kComplete, kLeaving };
struct PollAck {
    PollState state = PollState::kBusy;
    std::vector<std::uint32_t> missing{};  // Positions of the children that have not reported.
    bool operator==(const PollAck&) const = default;
};
struct Leave {
    bool operator==(const Leave&) const = default;
};
// The root is alive, `age_us` ago. Goes down the tree.
struct Beat {
    std::uint64_t age_us = 0;
    bool operator==(const Beat&) const = default;
};
// Is the sender still a member? Answered with a Beat or a Nack.
struct Ask {
    bool operator==(const Ask&) const = default;
};

// -- views --

struct ViewNews {
    ViewDifference difference{};
    bool operator==(const ViewNews&) const = default;
};
struct ViewAck {
    bool operator==(const ViewAck&) const = default;
};
// Asks for the receiver's view as a whole, from this byte on.
struct ViewWant {
    ViewNumber number = 0;
    std::uint32_t offset = 0;
    bool operator==(const ViewWant&) const = default;
};
// A part of the bytes of a view, in answer to ViewWant.
struct ViewPart {
    ViewNumber number = 0;
    std::uint32_t offset = 0;
    std::uint32_t total = 0;
    std::vector<std::byte> bytes{};
    bool operator==(const ViewPart&) const = default;
};
// The receiver's view is old. Or, with `is_promised`, the sender has promised not to take part in
// the view any more.
struct Nack {
    ViewNumber number = 0;
    bool is_excluded = false;  // The receiver's incarnation is not in that view.
    bool is_promised = false;
    std::string root{};
    std::string root_address{};
    bool operator==(const Nack&) const = default;
};

// -- joining --

// What all members have in common.
struct CommonRules {
    // Of all rules. The rules below are sent too, so that the receiver can name the one that
    // differs.
    std::uint64_t hash = 0;
    std::uint64_t timeout_ns = 0;
    std::uint64_t grace_ns = 0;
    std::uint64_t root_silent_ns = 0;
    std::uint32_t fanout = 0;
    bool operator==(const CommonRules&) const = default;
};
// A rule that differs. kNone: it is not known which. kPolicies: how data are combined. kRoot: which
// daemon the root is; not in messages.
enum class UnlikeRule : std::uint8_t {
    kNone,
    kTimeout,
    kGrace,
    kRootSilent,
    kFanout,
    kPolicies,
    kRoot
};

struct Join {
    std::string address{};
    CommonRules rules{};
    // The newest epoch that the sender has had. Its next ones must be higher.
    EpochNumber newest = 0;
    bool operator==(const Join&) const = default;
};
// Whom to ask for admission instead. No name: the sender is in no view, and knows nobody to ask.
struct Redirect {
    std::string root{};
    std::string root_address{};
    bool operator==(const Redirect&) const = default;
};
enum class RefuseReason : std::uint8_t { kRules, kIncarnation, kSecondOfName };
struct Refuse {
    RefuseReason reason = RefuseReason::kRules;
    Incarnation incarnation = 0;  // The one in the roster.
    UnlikeRule rule = UnlikeRule::kNone;
    std::string address{};  // Of the daemon that has the name; with kSecondOfName.
    bool operator==(const Refuse&) const = default;
};

// -- take-over --

// The sender wants to be the root after this view. A receiver that has not heard from the root for
// long promises to take part in this view no more.
struct Promise {
    std::string address{};  // The sender's.
    CommonRules rules{};
    bool operator==(const Promise&) const = default;
};
struct PromiseAck {
    bool is_member = false;   // The sender's incarnation is the one in the roster, and moves on.
    bool wants_join = false;  // It has another incarnation, and wants to be a member.
    std::string address{};
    std::uint64_t waited_us = 0;  // Of the pending call; 0: none.
    StartRecord record{};         // The last start of this view that the sender has seen, if any.
    bool operator==(const PromiseAck&) const = default;
};

// The number on the wire is the position.
using Body = std::variant<Ready, First, Closing, Start, StartAck, Abort, Poll, PollAck, Leave, Beat,
                          Ask, ViewNews, ViewAck, ViewWant, ViewPart, Nack, Join, Redirect, Refuse,
                          Promise, PromiseAck>;

struct Message {
    ViewNumber view = 0;  // The sender's; of a Promise and its answer, the one that is to end.
    std::uint32_t round = 0;
    Incarnation incarnation = 0;  // The sender's.
    bool is_foreign = false;      // The sender has the other byte order. Data are as it sent them.
    Body body{};

    bool operator==(const Message&) const = default;
};

// ENSUREs that the message has at most kMessageBytesMax bytes.
std::vector<std::byte> encode(const Message& message);
// kCorrupt if the bytes are not exactly one message.
Result<Message> decode(std::span<const std::byte> bytes);
const char* name_of(const Body& body);

// The time from `since` to now, as messages have it. 0 if that is kNever, or not over.
std::uint64_t waited_us(Instant since, Instant now);
// Whatever a peer says, an hour at most.
Duration span_of(std::uint64_t us);

}  // namespace fopd::eh::peers

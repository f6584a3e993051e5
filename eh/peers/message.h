#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/time.h"
#include "eh/view.h"

namespace fopd::eh::peers {

// The messages between members (docs/formats/epoch.md), without their transport: the session that
// delivers a message authenticates and names its sender.

// The longest message. It is the body of a fop, which has to fit into 16 KiB.
inline constexpr std::size_t kMessageBytesMax = 15 * 1024;
// The most bytes of a view in one message.
inline constexpr std::size_t kViewPartMax = 12 * 1024;

// -- a reduction, up and down the tree --

// To the parent: the sender and all members below it are ready. Repeated until the round ends.
struct Ready {
    std::uint32_t count = 0;      // The number of contributions in `data`.
    std::uint32_t leavers = 0;    // How many of these members leave, and contribute nothing.
    std::uint64_t waited_us = 0;  // The time since the first of them was ready.
    std::vector<std::byte> data{};
    bool operator==(const Ready&) const = default;
};
// To the parent: a member below has been ready for a while, and others are not.
struct First {
    std::uint64_t waited_us = 0;
    bool operator==(const First&) const = default;
};
// To the children: a member of the tree has been ready for a while, and others are not.
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
// To the parent: the sender and all members below it have the Start of the previous round.
struct StartAck {
    // Sent directly to the root, which has asked for it: only the sender has the Start.
    bool is_alone = false;
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
    // The positions of the children that have not sent Ready.
    std::vector<std::uint32_t> missing{};
    bool operator==(const PollAck&) const = default;
};
struct Leave {
    bool operator==(const Leave&) const = default;
};
// The root was alive `age_us` ago. Passed on down the tree.
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
// Asks for the bytes of the receiver's view from `offset` on.
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

// The rules that must be the same at all members.
struct CommonRules {
    // The hash of all rules. Some rules are sent as well, so that the receiver can name the rule
    // that differs.
    std::uint64_t hash = 0;
    std::uint64_t timeout_ns = 0;
    std::uint64_t grace_ns = 0;
    std::uint64_t root_silent_ns = 0;
    std::uint32_t fanout = 0;
    bool operator==(const CommonRules&) const = default;
};
// The rule that differs. kNone: not known. kPolicies: the rules by which data are combined. kRoot:
// the daemon that is root; never in messages.
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
    // The newest epoch in which the sender took part. Its later epochs must have higher numbers.
    EpochNumber newest = 0;
    bool operator==(const Join&) const = default;
};
// Whom to ask for admission instead. No name: the sender is in no view.
struct Redirect {
    std::string root{};
    std::string root_address{};
    bool operator==(const Redirect&) const = default;
};
enum class RefuseReason : std::uint8_t { kRules, kIncarnation, kSecondOfName };
struct Refuse {
    RefuseReason reason = RefuseReason::kRules;
    Incarnation incarnation = 0;  // The incarnation in the roster.
    UnlikeRule rule = UnlikeRule::kNone;
    std::string address{};  // The address of the other daemon with this name, with kSecondOfName.
    bool operator==(const Refuse&) const = default;
};

// -- take-over --

// The sender wants to become root in the next view. A receiver that has not heard from the root for
// a long time promises not to take part in the present view any more.
struct Promise {
    std::string address{};  // The address of the sender.
    CommonRules rules{};
    bool operator==(const Promise&) const = default;
};
struct PromiseAck {
    // The sender's incarnation is in the roster, and it will take part in the next view.
    bool is_member = false;
    bool wants_join = false;  // The sender has another incarnation, and wants to become a member.
    std::string address{};
    std::uint64_t waited_us = 0;  // How long the sender's call has been pending; 0: it has none.
    StartRecord record{};  // The last Start of this view that the sender has received, if any.
    bool operator==(const PromiseAck&) const = default;
};

// The number of a type on the wire is its index here.
using Body = std::variant<Ready, First, Closing, Start, StartAck, Abort, Poll, PollAck, Leave, Beat,
                          Ask, ViewNews, ViewAck, ViewWant, ViewPart, Nack, Join, Redirect, Refuse,
                          Promise, PromiseAck>;

struct Message {
    // The sender's view; in a Promise and its answer, the view that is to end.
    ViewNumber view = 0;
    std::uint32_t round = 0;
    Incarnation incarnation = 0;  // The incarnation of the sender.
    // The sender has the other byte order, and the data were not converted.
    bool is_foreign = false;
    Body body{};

    bool operator==(const Message&) const = default;
};

// ENSUREs that the message has at most kMessageBytesMax bytes.
std::vector<std::byte> encode(const Message& message);
// kCorrupt if the bytes are not exactly one message.
Result<Message> decode(std::span<const std::byte> bytes);
const char* name_of(const Body& body);

// The time from `since` to `now` in the unit of messages; 0 if `since` is kNever or later than
// `now`.
std::uint64_t waited_us(Instant since, Instant now);
// A time from a message, limited to an hour, because a peer may send anything.
Duration span_of(std::uint64_t us);

}  // namespace fopd::eh::peers

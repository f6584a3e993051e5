#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "eh/peers/member.h"
#include "tests/catch.h"

namespace fopd::eh::peers::testing {

inline constexpr Instant kNow{100s};
inline const Peer kRoot{.name = "a", .address = "a"};
inline const Peer kOther{.name = "b", .address = "b"};
inline const Peer kThird{.name = "c", .address = "c"};

// Of the members a, b and c, with the incarnation 5 each.
inline View view_of_three(ViewNumber number) {
    View view{.number = number, .epoch_low = 1, .epoch_high = 1'000'000'000};
    for (const Peer& peer : {kRoot, kOther, kThird}) {
        view.roster.push_back(
            {.name = peer.name, .incarnation = 5, .address = peer.address, .joined = 1});
    }
    return view;
}

// Of the members a and c: b was evicted.
inline View view_without_other(ViewNumber number) {
    View view = view_of_three(number);
    view.roster.erase(view.roster.begin() + 1);
    return view;
}

inline ViewHandle committed(View view) {
    return std::make_shared<const CommittedView>(std::move(view));
}

inline Member seated(const MemberOptions& options, const Peer& self, View view) {
    Member member(options, self, 5, kNow);
    member.seat(committed(std::move(view)), kNow);
    (void)member.take_effects();
    return member;
}

// What a member has requested since.
struct Seen {
    explicit Seen(Member& member) : effects(member.take_effects()) {}

    template <typename Kind>
    const Kind* find() const {
        for (const Effect& effect : effects) {
            if (const auto* const found = std::get_if<Kind>(&effect)) return found;
        }
        return nullptr;
    }
    template <typename Kind>
    const Send* sent(const std::string& to) const {
        for (const Effect& effect : effects) {
            const auto* const send = std::get_if<Send>(&effect);
            if (send != nullptr && send->to.name == to &&
                std::holds_alternative<Kind>(send->message.body)) {
                return send;
            }
        }
        return nullptr;
    }
    const Event* event(EventKind kind) const {
        for (const Effect& effect : effects) {
            const auto* const event = std::get_if<Event>(&effect);
            if (event != nullptr && event->kind == kind) return event;
        }
        return nullptr;
    }

    std::vector<Effect> effects;
};

inline Message as_member(ViewNumber view, Incarnation incarnation, Body body) {
    return {.view = view, .round = 1, .incarnation = incarnation, .body = std::move(body)};
}

// A member that has asked to join, with the incarnation 6.
inline Member joining(const MemberOptions& options, const Peer& self) {
    Member member(options, self, 5, kNow);
    REQUIRE(member.next_epoch(kFirstEpoch, {}, kNow));
    member.on_persisted(6, kNow);
    return member;
}

inline MemberOptions with_static_root() {
    MemberOptions options;
    options.root = kRoot;
    return options;
}

// A short view in one message.
inline ViewPart whole(const View& view) {
    const std::vector<std::byte> bytes = encode_view(view);
    return {
        .number = view.number, .total = static_cast<std::uint32_t>(bytes.size()), .bytes = bytes};
}

// That the member with the incarnation 5 is not in that view.
inline Message of_exclusion(ViewNumber number) {
    return {.view = number,
            .round = 5,
            .incarnation = 5,
            .body = Nack{.number = number, .is_excluded = true, .root = kRoot.name}};
}

}  // namespace fopd::eh::peers::testing

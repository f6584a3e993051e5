#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "eh/handler.h"

namespace fopd::eh {

// Views are numbered from 1; 0 means none.
using ViewNumber = std::uint64_t;
// Counts the times a member joined; durable before it is used, so none is used twice.
using Incarnation = std::uint64_t;

// The largest numbers that a view may have. No honest daemon gets near them.
inline constexpr EpochNumber kEpochMax = EpochNumber{1} << 62;
inline constexpr Incarnation kIncarnationMax = Incarnation{1} << 62;

inline constexpr std::size_t kMemberNameMax = 64;
inline constexpr std::size_t kMemberAddressMax = 255;
inline constexpr std::size_t kRosterMax = 16'384;

struct RosterEntry {
    std::string name{};
    Incarnation incarnation = 0;
    std::string address{};
    ViewNumber joined = 0;   // The view that admitted this incarnation.
    bool takes_part = true;  // False only for a root that relays without contributing.

    bool operator==(const RosterEntry&) const = default;
};

// An epoch that began: its number, its combined data, and the view and round in which these were
// combined.
struct StartRecord {
    ViewNumber view = 0;  // 0: no epoch.
    std::uint32_t round = 0;
    EpochNumber epoch = 0;
    std::uint32_t count = 0;  // Contributions in the data.
    std::vector<std::byte> data{};
    // The data are in the byte order of the other kind of host. Never true in a member's state.
    bool is_foreign = false;

    bool operator==(const StartRecord&) const = default;
};

// Tells two attempts to write a view apart.
struct ViewWriter {
    std::string name{};
    Incarnation incarnation = 0;
    std::uint64_t attempt = 0;

    bool operator==(const ViewWriter&) const = default;
};

// A member that was in an earlier roster, and is not in the present one.
struct GoneMember {
    std::string name{};
    Incarnation incarnation = 0;  // Neither this nor a lower one is admitted again.

    bool operator==(const GoneMember&) const = default;
};
inline constexpr std::size_t kGoneMax = 64;

// The members, and the epoch numbers that the root may issue. A view never changes: a
// compare-and-swap of the view store replaces it by the view with the next number.
struct View {
    ViewNumber number = 0;
    std::vector<RosterEntry> roster{};  // The root first; the order makes the tree.
    EpochNumber epoch_low = 0;          // The block of numbers that this view's root may issue.
    EpochNumber epoch_high = 0;
    StartRecord carry{};  // The newest epoch that members of earlier views may have begun.
    std::uint64_t rules_hash = 0;
    ViewWriter writer{};
    // The members that left last. A delayed request to join may be from one of them.
    std::vector<GoneMember> gone{};

    bool operator==(const View&) const = default;
};

// The bytes of a view in a store and in messages (docs/formats/epoch.md).
std::vector<std::byte> encode_view(const View& view);
// kCorrupt if the bytes are not exactly one view with a lawful roster.
Result<View> decode_view(std::span<const std::byte> bytes);

// Sets next.gone: the members in old.gone and in the roster of `old` that are not in the roster of
// `next`. Keeps the newest kGoneMax.
void note_gone(const View& old, View& next);

// A view that a store has committed. Immutable and shared.
class CommittedView {
public:
    explicit CommittedView(View view);

    const View& view() const { return view_; }
    ViewNumber number() const { return view_.number; }
    std::size_t size() const { return view_.roster.size(); }
    bool empty() const { return view_.roster.empty(); }
    // REQUIRES: !empty().
    const RosterEntry& root() const { return view_.roster.front(); }
    const RosterEntry& at(std::size_t position) const { return view_.roster[position]; }
    std::optional<std::size_t> find(std::string_view name) const;
    std::optional<std::size_t> find(std::string_view name, Incarnation incarnation) const;
    // The highest incarnation of the member with this name that has left; 0: none is known.
    Incarnation gone(std::string_view name) const;
    // How many members contribute to epochs.
    std::size_t participants() const { return size() - (empty() || root().takes_part ? 0U : 1U); }
    // The bytes of encode_view(), which are made only once.
    const std::vector<std::byte>& bytes() const { return bytes_; }

private:
    View view_;
    std::vector<std::uint32_t> by_name_;  // Positions, sorted by name.
    std::vector<std::byte> bytes_;
};
using ViewHandle = std::shared_ptr<const CommittedView>;

// The changes by which a view follows from an earlier one, its base. Small when the rosters are
// nearly the same.
struct ViewDifference {
    ViewNumber base = 0;
    std::vector<std::uint32_t> first{};    // Positions in the base, of the members that come first.
    std::vector<std::uint32_t> removed{};  // Ascending.
    std::vector<RosterEntry> added{};      // The new members. They follow the members that stay.
    // Of the roster that results. From a wrong view with the number of the base another one would.
    std::uint64_t roster_hash = 0;
    View rest{};  // Everything but the roster.

    bool operator==(const ViewDifference&) const = default;
};

// Nothing if the order of the members in `next` cannot be described as a difference.
std::optional<ViewDifference> difference(const View& base, const View& next);
// kCorrupt if the difference is not from this base.
Result<View> apply(const View& base, const ViewDifference& difference);

// Whether the view's root may have issued this number.
bool is_in_block(EpochNumber epoch, const View& view);

// The tree of a roster: the children of position i are i·fanout+1 … i·fanout+fanout.
std::size_t parent_of(std::size_t position, std::size_t fanout);
std::size_t child_count(std::size_t position, std::size_t size, std::size_t fanout);
// The members at and below a position.
std::size_t subtree_size(std::size_t position, std::size_t size, std::size_t fanout);

}  // namespace fopd::eh

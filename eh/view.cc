#include "eh/view.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "core/byte_order.h"
#include "eh/peers/view_wire.h"
#include "fop/siphash.h"

namespace fopd::eh {

namespace {

constexpr std::uint8_t kViewVersion = 1;

template <typename Wire, typename Roster>
void roster_fields(Wire& wire, Roster& roster) {
    wire.list(roster, kRosterMax, [&](auto& entry) { peers::entry_fields(wire, entry); });
}

template <typename Wire, typename V>
void view_fields(Wire& wire, V& view) {
    peers::rest_fields(wire, view);
    roster_fields(wire, view.roster);
}

// Nobody can construct a roster with the hash of another one.
std::uint64_t hash_of(const std::vector<RosterEntry>& roster) {
    peers::WireWriter writer;
    roster_fields(writer, roster);
    fop::SipHash hash(fop::SecretBytes<16>{});
    hash.add(writer.take());
    return load_little<std::uint64_t>(hash.finish().data());
}

Error corrupt(const char* context) {
    return {.code = Errc::kCorrupt, .context = context};
}

std::vector<std::uint32_t> sorted_by_name(const View& view) {
    std::vector<std::uint32_t> order(view.roster.size());
    std::iota(order.begin(), order.end(), std::uint32_t{0});
    std::ranges::sort(order, {},
                      [&](std::uint32_t at) -> const std::string& { return view.roster[at].name; });
    return order;
}

bool is_lawful(const View& view) {
    if (view.number == 0 || view.epoch_low < 1 || view.epoch_high < view.epoch_low) return false;
    if (view.epoch_high > kEpochMax || view.carry.epoch < 0 || view.carry.epoch > view.epoch_high)
        return false;
    for (std::size_t i = 0; i < view.roster.size(); ++i) {
        const RosterEntry& entry = view.roster[i];
        if (entry.name.empty() || entry.incarnation == 0) return false;
        if (entry.incarnation > kIncarnationMax) return false;
        if (entry.joined == 0 || entry.joined > view.number) return false;
        if (i > 0 && !entry.takes_part) return false;
    }
    for (const GoneMember& gone : view.gone) {
        if (gone.incarnation > kIncarnationMax) return false;
    }
    const auto order = sorted_by_name(view);
    const auto same = [&](std::uint32_t one, std::uint32_t other) {
        return view.roster[one].name == view.roster[other].name;
    };
    return std::ranges::adjacent_find(order, same) == order.end();
}

}  // namespace

std::vector<std::byte> encode_view(const View& view) {
    peers::WireWriter writer;
    writer.number(kViewVersion);
    view_fields(writer, view);
    return writer.take();
}

Result<View> decode_view(std::span<const std::byte> bytes) {
    peers::WireReader reader(bytes);
    std::uint8_t version = 0;
    reader.number(version);
    View view;
    view_fields(reader, view);
    if (!reader.ok() || !reader.at_end() || version != kViewVersion)
        return std::unexpected(corrupt("not a view"));
    if (!is_lawful(view)) return std::unexpected(corrupt("an unlawful view"));
    return view;
}

void note_gone(const View& old, View& next) {
    std::set<std::string_view> here;
    for (const RosterEntry& entry : next.roster) here.insert(entry.name);
    std::vector<GoneMember> gone;
    for (const GoneMember& before : old.gone) {
        if (!here.contains(before.name)) gone.push_back(before);
    }
    for (const RosterEntry& entry : old.roster) {
        if (!here.contains(entry.name))
            gone.push_back({.name = entry.name, .incarnation = entry.incarnation});
    }
    const std::size_t excess = gone.size() - std::min(gone.size(), kGoneMax);
    gone.erase(gone.begin(), gone.begin() + static_cast<std::ptrdiff_t>(excess));
    next.gone = std::move(gone);
}

Incarnation CommittedView::gone(std::string_view name) const {
    const auto found = std::ranges::find(view_.gone, name, &GoneMember::name);
    return found == view_.gone.end() ? 0 : found->incarnation;
}

CommittedView::CommittedView(View view)
    : view_(std::move(view)), by_name_(sorted_by_name(view_)), bytes_(encode_view(view_)) {}

std::optional<std::size_t> CommittedView::find(std::string_view name) const {
    const auto name_at = [&](std::uint32_t at) -> std::string_view {
        return view_.roster[at].name;
    };
    const auto found = std::ranges::lower_bound(by_name_, name, {}, name_at);
    if (found == by_name_.end() || name_at(*found) != name) return std::nullopt;
    return *found;
}

std::optional<std::size_t> CommittedView::find(std::string_view name,
                                               Incarnation incarnation) const {
    const auto found = find(name);
    if (!found || view_.roster[*found].incarnation != incarnation) return std::nullopt;
    return found;
}

// Members that stay keep their order, but for some that were moved to the front.
std::optional<ViewDifference> difference(const View& base, const View& next) {
    ViewDifference made{.base = base.number, .roster_hash = hash_of(next.roster), .rest = next};
    made.rest.roster.clear();
    const CommittedView old(base);
    const auto index_in_base = [&](const RosterEntry& entry) -> std::optional<std::size_t> {
        const auto index = old.find(entry.name, entry.incarnation);
        return index && old.at(*index) == entry ? index : std::nullopt;
    };
    std::vector<std::size_t> kept;  // Indices in the roster of the base, in the order of `next`.
    for (const RosterEntry& entry : next.roster) {
        const auto index = index_in_base(entry);
        if (index && !made.added.empty()) return std::nullopt;
        if (index) {
            kept.push_back(*index);
        } else {
            made.added.push_back(entry);
        }
    }
    // The longest ascending end of `kept` needs no moving.
    std::size_t moved = kept.empty() ? 0 : kept.size() - 1;
    while (moved > 0 && kept[moved - 1] < kept[moved]) --moved;
    for (std::size_t i = 0; i < moved; ++i)
        made.first.push_back(static_cast<std::uint32_t>(kept[i]));
    std::ranges::sort(kept);
    for (std::size_t i = 0, at = 0; i < base.roster.size(); ++i) {
        if (at < kept.size() && kept[at] == i) {
            ++at;
        } else {
            made.removed.push_back(static_cast<std::uint32_t>(i));
        }
    }
    return made;
}

Result<View> apply(const View& base, const ViewDifference& difference) {
    if (base.number != difference.base || difference.rest.number <= base.number)
        return std::unexpected(corrupt("a difference of another view"));
    View next = difference.rest;
    std::vector<bool> is_used(base.roster.size());
    const auto use = [&](std::uint32_t index) {
        if (index >= is_used.size() || is_used[index]) return false;
        is_used[index] = true;
        return true;
    };
    for (const std::uint32_t index : difference.removed) {
        if (!use(index)) return std::unexpected(corrupt("a difference removes twice"));
    }
    for (const std::uint32_t index : difference.first) {
        if (!use(index)) return std::unexpected(corrupt("a difference moves twice"));
        next.roster.push_back(base.roster[index]);
    }
    for (std::size_t i = 0; i < is_used.size(); ++i) {
        if (!is_used[i]) next.roster.push_back(base.roster[i]);
    }
    next.roster.insert(next.roster.end(), difference.added.begin(), difference.added.end());
    if (next.roster.size() > kRosterMax || !is_lawful(next))
        return std::unexpected(corrupt("a difference makes an unlawful view"));
    if (hash_of(next.roster) != difference.roster_hash)
        return std::unexpected(corrupt("a difference of another roster"));
    return next;
}

bool is_in_block(EpochNumber epoch, const View& view) {
    return epoch >= view.epoch_low && epoch <= view.epoch_high;
}

std::size_t parent_of(std::size_t position, std::size_t fanout) {
    return (position - 1) / fanout;
}

std::size_t child_count(std::size_t position, std::size_t size, std::size_t fanout) {
    const std::size_t first = position * fanout + 1;
    return first >= size ? 0 : std::min(fanout, size - first);
}

std::size_t subtree_size(std::size_t position, std::size_t size, std::size_t fanout) {
    std::size_t total = 0;
    std::size_t first = position;
    std::size_t width = 1;
    while (first < size) {
        total += std::min(width, size - first);
        first = first * fanout + 1;
        width *= fanout;
    }
    return total;
}

}  // namespace fopd::eh

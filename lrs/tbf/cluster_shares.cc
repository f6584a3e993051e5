#include "lrs/tbf/cluster_shares.h"

#include <algorithm>
#include <utility>

#include "core/ensure.h"

namespace fopd::lrs {

namespace {

__extension__ using Wide = unsigned __int128;

// A node that is cut off has at least this part of the share for that case, so that nothing waits
// there for ever.
constexpr Share kLeastParts = 8;
// A smaller part of a rate may be lost for an interval.
constexpr std::uint32_t kMoved = kWholeDemand / 64;

// More nodes than a cluster has.
constexpr std::uint64_t kNodesMax = 16'384;

// More epochs than pass between two localities of a node. The number of an epoch that is further
// behind the newest one shows that the newest one was a lie of a peer.
constexpr eh::EpochNumber kFarBehind = eh::EpochNumber{1} << 40;

Share part_of_whole(std::uint64_t amount, std::uint64_t of) {
    return static_cast<Share>(static_cast<Wide>(kWholeShare) * amount / of);
}

// An eighth of the rate that no node demands is divided equally among all nodes, so that a node
// whose demand has just begun has some. In units of the whole demand.
std::uint64_t kept_of(std::uint64_t demand) {
    constexpr std::uint64_t kKeptParts = 8;
    return demand >= kWholeDemand ? 0 : (kWholeDemand - demand) / kKeptParts;
}

Share base_by(std::uint64_t demand, std::uint64_t nodes) {
    return part_of_whole(kept_of(demand), kWholeDemand * nodes);
}

Share gain_by(std::uint64_t own, std::uint64_t demand) {
    const Share divided = part_of_whole(kWholeDemand - kept_of(demand), kWholeDemand);
    return static_cast<Share>(static_cast<Wide>(divided) * std::min(own, demand) /
                              std::max<std::uint64_t>(demand, 1));
}

std::uint32_t check_of(const HashKey& key) {
    return static_cast<std::uint32_t>(KeyedHash(key).result().low);
}

}  // namespace

ClusterShares::ClusterShares(std::shared_ptr<ClusterNode> node) : node_(std::move(node)) {
    ENSURE(node_ != nullptr);
    nodes_ = nodes_before_ = std::max<std::uint32_t>(node_->members, 1);
}

// -- what it contributes --

std::uint64_t ClusterShares::part_of_rate(std::uint64_t id, std::uint64_t change) const {
    const auto known = known_.find(id);
    const std::uint64_t all = known == known_.end() ? 0 : known->second.demand;
    return static_cast<std::uint64_t>(static_cast<Wide>(change) * kWholeDemand /
                                      std::max(all, kWholeDemand));
}

void ClusterShares::write(std::span<std::byte> room, std::vector<ClusterDemand>& demands,
                          std::uint64_t moved) {
    ClusterPart part{.basis = epoch_, .first_id = next_first_id_};
    part.nodes = ClusterPart::kOneNode / std::max(node_->localities, 1U);
    part.key_low = part.key_high = check_of(node_->key);
    part.moved = static_cast<std::uint32_t>(std::min(moved, kWholeDemand));
    const auto index = [&part](const ClusterDemand& each) { return part.index_of(each.id); };
    part.count = static_cast<std::uint32_t>(std::min(demands.size(), ClusterPart::kDemandsMax));
    std::ranges::partial_sort(demands, demands.begin() + part.count, {}, index);
    std::copy_n(demands.begin(), part.count, part.demands.begin());
    part.write(room);

    has_written_ = true;
    written_basis_ = epoch_;
    written_.clear();
    for (const ClusterDemand& each : part.all())
        written_.push_back({.id = each.id, .demand = each.demand});
    std::ranges::sort(written_, {}, &Written::id);
}

// -- epochs --

void ClusterShares::note_newest(eh::EpochNumber epoch) {
    eh::EpochNumber seen = node_->newest.load(std::memory_order_relaxed);
    while (seen < epoch || seen - epoch > kFarBehind) {
        if (!node_->newest.compare_exchange_weak(seen, epoch, std::memory_order_relaxed)) continue;
        node_->previous.store(seen, std::memory_order_relaxed);
        return;
    }
}

void ClusterShares::begin(eh::EpochNumber epoch, const EpochPartData& data, Ticks now) {
    was_cut_off_ = !is_in(now);
    goes_on_ = has_share_ && has_written_ && written_basis_ == epoch_;
    has_share_ = has_written_ && data.filled > 0;
    has_written_ = false;
    before_ = std::exchange(epoch_, epoch);
    ++count_;
    note_newest(epoch);
    expires_ = ticks_at(data.expires_at);
    if (!goes_on_) {
        known_.clear();
        unheard_ = kAllIds;
        known_since_ = now;
    }

    ClusterPart part = ClusterPart::read(data.bytes);
    nodes_before_ = nodes_;
    const std::uint64_t nodes =
        part.nodes / ClusterPart::kOneNode + (part.nodes % ClusterPart::kOneNode == 0 ? 0 : 1);
    // A peer may say anything.
    if (data.filled > 0) nodes_ = std::clamp<std::uint64_t>(nodes, 1, kNodesMax);
    // Limits that have other ids elsewhere are divided equally.
    keys_differ_ = data.filled > 0 && part.key_low != part.key_high;
    has_demand_ = !part.all().empty();
    is_moving_ = part.moved >= kMoved;
    // Nobody can know the result of a later epoch than the last one.
    const bool is_forged = goes_on_ && part.basis > before_;
    if (keys_differ_ || is_forged) part.count = 0;
    note_covered(part);
    note_gains(part);
    learn(part, now);
}

void ClusterShares::note_covered(const ClusterPart& part) {
    had_unheard_ = unheard_ > 0;
    if (had_unheard_ && part.first_id != next_first_id_) unheard_ = kAllIds;
    first_id_ = part.first_id;
    is_full_ = part.is_full();
    last_index_ = is_full_ ? part.index_of(part.demands.back().id) : kAllIds;
    next_first_id_ = is_full_ ? part.demands.back().id + 1 : 0;
    // Each epoch covers the ids that follow the ids of the epoch before.
    unheard_ -= std::min(unheard_, last_index_);
}

void ClusterShares::note_gains(const ClusterPart& part) {
    const bool is_counted = has_share_ && written_basis_ == part.basis;
    for (Written& each : written_) {
        const ClusterDemand* const all = is_counted ? part.find(each.id) : nullptr;
        each.gain = all == nullptr ? 0 : gain_by(each.demand, all->demand);
    }
}

void ClusterShares::learn(const ClusterPart& part, Ticks now) {
    const auto equal_before = static_cast<Share>(kWholeShare / nodes_before_);
    for (const ClusterDemand& each : part.all()) {
        const auto [at, is_new] = known_.try_emplace(each.id);
        Known& known = at->second;
        known.base_before = is_new && had_unheard_      ? 0
                            : is_new || known.is_absent ? equal_before
                                                        : known.base;
        known.base = base_by(each.demand, nodes_);
        known.demand = each.demand;
        known.changed_in = count_;
        known.is_absent = false;
        known.differs = each.terms_low != each.terms_high;
        known.changed_at = now;
    }
    for (auto& [id, known] : known_) {
        if (known.changed_in == count_) continue;
        // What grew in the epoch before grows now.
        if (known.changed_in + 1 == count_) known.changed_at = now;
        if (known.is_absent || !is_covered(id)) continue;
        known.base_before = known.base;
        known.changed_in = count_;
        known.is_absent = true;
        known.demand = 0;
        known.changed_at = now;
    }
    if (known_.size() > kKnownMax) forget();
}

// Forgets the limits that have been unused for longest.
void ClusterShares::forget() {
    std::vector<Ticks> changed;
    for (const auto& [id, known] : known_) {
        if (known.is_absent && known.changed_in + 1 < count_) changed.push_back(known.changed_at);
    }
    if (changed.size() < known_.size() / 4) {
        // Too many are in use. What is not known counts as used up until an epoch tells about all.
        unheard_ = kAllIds;
        known_.clear();
        return;
    }
    const auto middle = changed.begin() + std::ssize(changed) / 2;
    std::ranges::nth_element(changed, middle);
    known_since_ = std::max(known_since_, *middle);
    std::erase_if(known_, [&](const auto& each) {
        const Known& known = each.second;
        return known.is_absent && known.changed_in + 1 < count_ && known.changed_at <= *middle;
    });
}

void ClusterShares::lose() {
    has_share_ = false;
    has_written_ = false;
    epoch_ = eh::kFirstEpoch;
    next_first_id_ = 0;
    has_demand_ = false;
}

// -- shares --

Share ClusterShares::cut_off() const {
    // Members that have not been heard of yet may be cut off, too.
    const std::uint64_t members = std::max<std::uint64_t>(nodes_, node_->members);
    return cut_off_.value_or(static_cast<Share>(kWholeShare / members));
}

// The share of a node that is cut off, which had `last` before.
Share ClusterShares::limited(Share last) const {
    const Share most = cut_off();
    return std::clamp(last, most / kLeastParts, most);
}

bool ClusterShares::is_in(Ticks now) const {
    if (!has_share_ || now >= expires_) return false;
    // A locality that is two epochs behind the others of its node is not counted by anybody.
    return node_->newest.load(std::memory_order_relaxed) == epoch_ ||
           node_->previous.load(std::memory_order_relaxed) == epoch_;
}

Share ClusterShares::usable(const ShareCell& share, Ticks now) const {
    const EpochShares seen = share.get();
    if (seen.tag == 0) return cut_off();
    return is_in(now) ? seen.usable() : limited(seen.usable());
}

Share ClusterShares::share_of(std::uint64_t id, const ShareCell& share, Ticks now) const {
    const bool is_settled = share.get().tag == epoch_tag(epoch_) || !is_covered(id);
    if (!is_in(now) || !goes_on_ || is_settled) return usable(share, now);
    return std::min(base_before(id), base_now(id));
}

Share ClusterShares::base_now(std::uint64_t id) const {
    const auto known = known_.find(id);
    if (known == known_.end() && unheard_ > 0) return 0;
    if (known == known_.end() || known->second.is_absent)
        return static_cast<Share>(kWholeShare / nodes_);
    return known->second.base;
}

Share ClusterShares::base_before(std::uint64_t id) const {
    const auto known = known_.find(id);
    if (known != known_.end() && known->second.changed_in == count_)
        return known->second.base_before;
    if (known == known_.end() && had_unheard_) return 0;
    if (known == known_.end() || known->second.is_absent)
        return static_cast<Share>(kWholeShare / nodes_before_);
    return known->second.base;
}

// Each gain is taken once.
Share ClusterShares::take_gain(std::uint64_t id) {
    const auto written = std::ranges::lower_bound(written_, id, {}, &Written::id);
    if (written == written_.end() || written->id != id) return 0;
    return std::exchange(written->gain, 0);
}

bool ClusterShares::differs(std::uint64_t id) const {
    const auto known = known_.find(id);
    return known != known_.end() && known->second.differs;
}

void ClusterShares::settle(const ClusterMeter& of, Ticks now) {
    if (!has_share_) return;
    const std::uint32_t tag = epoch_tag(epoch_);
    const Share gain = take_gain(of.id);
    EpochShares seen = of.share.get();
    for (;;) {
        EpochShares next{.tag = tag, .before = seen.before, .now = seen.now};
        const bool is_begun = seen.tag == tag;
        // Another locality may be ahead; this one will hear of that epoch, too.
        if (!is_begun && node_->newest.load(std::memory_order_relaxed) != epoch_) return;
        const bool follows = goes_on_ && seen.tag == epoch_tag(before_);
        const bool is_gap = goes_on_ && !follows && !is_begun;
        if (!is_begun) {
            next.before = follows  ? seen.now
                          : is_gap ? base_before(of.id)
                                   : limited(seen.tag == 0 ? cut_off() : seen.usable());
            next.now = is_covered(of.id) ? base_now(of.id) : next.before;
        }
        next.now = std::min(next.now + gain, kWholeShare);
        Share from = seen.usable();
        if (!is_begun && seen.tag == 0) from = cut_off();
        if (!is_begun && seen.tag != 0 && was_cut_off_) from = limited(from);
        // No request here used the limit while its shares changed on other nodes.
        if (is_gap) {
            const auto known = known_.find(of.id);
            of.meter.empty_at(known == known_.end() ? known_since_ : known->second.changed_at,
                              of.depth);
        }
        if (!of.share.replace(seen, next)) continue;
        // A request that another locality takes between these two steps is charged by the new
        // share for tokens of the old one.
        if (!is_gap) of.meter.change_share(from, next.usable(), now, of.depth);
        return;
    }
}

}  // namespace fopd::lrs

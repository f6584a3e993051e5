#include "tests/eh/epoch_exploration.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "core/random.h"

namespace fopd::eh::testing {

using peers::Effect;
using peers::Member;
using peers::MemberOptions;
using peers::Message;
using peers::Peer;

namespace {

constexpr std::size_t kMembers = 3;

const Peer& peer_number(std::size_t index) {
    static const std::array<Peer, kMembers> peers = [] {
        std::array<Peer, kMembers> all;
        for (std::size_t i = 0; i < kMembers; ++i) {
            const std::string name = sim::EpochLaws::name_of(i);
            all[i] = {.name = name, .address = name};
        }
        return all;
    }();
    return peers[index];
}

MemberOptions small_options(std::size_t fanout) {
    MemberOptions options;
    options.rules = sim::EpochLaws::rules(1s);
    options.fanout = fanout;
    options.grace = 1s;
    options.root_silent = 1s;
    options.resend = 1s;
    options.join_batch = 0s;
    options.back_off_max = 1s;
    return options;
}

std::size_t link_of(std::size_t from, std::size_t to) {
    return from * kMembers + to;
}

struct Flying {
    std::size_t link() const { return link_of(from, to); }

    std::size_t from = 0;
    std::size_t to = 0;
    std::shared_ptr<const Message> message;
    std::uint64_t hash = 0;
};

// What a member waits for besides messages: its disk and the view store.
struct Waiting {
    std::optional<Incarnation> persist;
    bool reads = false;
    std::optional<peers::SwapStore> swap;
    std::optional<Swapped> swapped;  // It has happened; the answer is on its way.
};

struct World {
    explicit World(const ExplorationBudget& budget) : left(budget) {}

    // Shared with the worlds that this one was copied from, and copied before it acts. Null: it has
    // crashed.
    std::array<std::shared_ptr<Member>, kMembers> members;
    // Of members and what they wait for, as they are now.
    std::array<std::uint64_t, kMembers> fingerprints{};
    std::array<Incarnation, kMembers> durable{};
    std::array<Instant, kMembers> clocks{};
    std::array<Waiting, kMembers> waiting;
    std::array<EpochNumber, kMembers> current{};
    std::array<int, kMembers> calls{};
    std::array<bool, kMembers> away{};
    std::vector<Flying> flying;
    ExplorationBudget left;
    // Shared, too, and copied before they note something.
    std::shared_ptr<sim::EpochLaws> laws =
        std::make_shared<sim::EpochLaws>(kMembers, left.fanout, 1h);

    sim::EpochLaws& own_laws() {
        if (laws.use_count() > 1) laws = std::make_shared<sim::EpochLaws>(*laws);
        return *laws;
    }
};

// Hashes of 64 bits in one array, at most half of which is in use. That two of n states have one
// hash, so that one is not gone on from, has a chance of n² / 2^65.
class HashSet {
public:
    // REQUIRES: it does not contain the hash.
    void insert(std::uint64_t hash) {
        if (2 * count_ >= slots_.size()) grow();
        put(hash);
        ++count_;
    }
    bool contains(std::uint64_t hash) const {
        return !slots_.empty() && slots_[slot_of(hash)] != kEmpty;
    }

private:
    static constexpr std::uint64_t kEmpty = 0;

    // Of the hash, or a free one.
    std::size_t slot_of(std::uint64_t hash) const {
        std::size_t at = hash & (slots_.size() - 1);
        while (slots_[at] != kEmpty && slots_[at] != stored(hash))
            at = (at + 1) & (slots_.size() - 1);
        return at;
    }
    static std::uint64_t stored(std::uint64_t hash) { return hash == kEmpty ? 1 : hash; }
    void put(std::uint64_t hash) { slots_[slot_of(hash)] = stored(hash); }
    void grow() {
        const std::vector<std::uint64_t> old = std::exchange(
            slots_, std::vector<std::uint64_t>(std::max<std::size_t>(1024, 2 * slots_.size())));
        for (const std::uint64_t hash : old) {
            if (hash != kEmpty) put(hash);
        }
    }

    std::vector<std::uint64_t> slots_;
    std::size_t count_ = 0;
};

class Explorer {
public:
    Explorer(const ExplorationBudget& budget, std::uint64_t states_max)
        : options_(small_options(budget.fanout)), budget_(budget), states_max_(states_max) {}

    Explored run() {
        World world(budget_);
        View view{.number = 1, .epoch_low = 1, .epoch_high = options_.block};
        for (std::size_t i = 0; i < kMembers; ++i) {
            const Peer peer = peer_number(i);
            view.roster.push_back(
                {.name = peer.name, .incarnation = 1, .address = peer.address, .joined = 1});
        }
        const auto handle = std::make_shared<const CommittedView>(std::move(view));
        world.own_laws().on_commit(handle);
        for (std::size_t i = 0; i < kMembers; ++i) {
            world.clocks[i] = Instant{100s};
            world.durable[i] = 1;
            world.members[i] =
                std::make_shared<Member>(options_, peer_number(i), 1, world.clocks[i]);
            world.members[i]->seat(handle, world.clocks[i]);
            (void)world.members[i]->take_effects();
        }
        for (std::size_t i = 0; i < kMembers; ++i) call(world, i);
        for (std::size_t i = 0; i < kMembers; ++i) note_fingerprint(world, i);
        result_.is_whole = true;
        visit(world, 0);
        return result_;
    }

private:
    bool is_over() const {
        return !result_.wrong.empty() || (!result_.is_whole && result_.states >= states_max_);
    }

    void visit(const World& world, std::size_t depth) {
        if (!world.laws->broken().empty()) {
            if (result_.wrong.empty()) result_.wrong = world.laws->broken();
            return;
        }
        if (result_.states >= states_max_) {
            result_.is_whole = false;
            return;
        }
        if (!is_new(world)) return;
        ++result_.states;
        result_.depth = std::max(result_.depth, depth);

        // Member i does something, or something happens to a message for it.
        const auto branch = [&](std::size_t i, const auto& act) {
            if (is_over()) return;
            ++result_.steps;
            World next = world;
            if (next.members[i]) next.members[i] = std::make_shared<Member>(*next.members[i]);
            act(next);
            note_fingerprint(next, i);
            if (is_without_effect(next, world)) return;
            visit(next, depth + 1);
        };
        for (std::size_t f = 0; f < world.flying.size(); ++f) visit_message(world, f, branch);
        for (std::size_t i = 0; i < kMembers; ++i) visit_member(world, i, branch);
    }

    template <typename Branch>
    void visit_message(const World& world, std::size_t f, const Branch& branch) {
        const std::size_t to = world.flying[f].to;
        // A message that is lost is one that never arrives: there is nothing more to explore.
        branch(to, [&](World& next) { deliver(next, drop_before(next, f), true); });
        if (world.left.doubles > 0) {
            branch(to, [&](World& next) {
                --next.left.doubles;
                deliver(next, drop_before(next, f), false);
            });
        }
        const bool is_behind = f > 0 && world.flying[f - 1].link() == world.flying[f].link();
        if (world.left.overtakes > 0 && is_behind) {
            branch(to, [&](World& next) {
                --next.left.overtakes;
                deliver(next, f, true);
            });
        }
    }

    template <typename Branch>
    void visit_member(const World& world, std::size_t i, const Branch& branch) {
        const Waiting& waiting = world.waiting[i];
        if (!world.members[i]) {
            branch(i, [&](World& next) {
                next.members[i] = std::make_shared<Member>(options_, peer_number(i),
                                                           next.durable[i], next.clocks[i]);
                next.current[i] = 0;
                call(next, i);
            });
            return;
        }
        if (waiting.persist) {
            branch(i, [&](World& next) {
                const Incarnation incarnation = *std::exchange(next.waiting[i].persist, {});
                next.durable[i] = incarnation;
                next.members[i]->on_persisted(incarnation, next.clocks[i]);
                settle(next, i);
            });
        }
        if (waiting.reads) {
            branch(i, [&](World& next) {
                next.waiting[i].reads = false;
                next.members[i]->on_view_read(next.laws->history().back(), next.clocks[i]);
                settle(next, i);
            });
        }
        if (waiting.swap) {
            branch(i, [&](World& next) { write(next, i, false); });
            if (world.left.unknown > 0) branch(i, [&](World& next) { write(next, i, true); });
        }
        if (waiting.swapped) {
            branch(i, [&](World& next) {
                const Swapped outcome = *std::exchange(next.waiting[i].swapped, {});
                next.members[i]->on_view_swapped(outcome, next.clocks[i]);
                settle(next, i);
            });
        }
        if (world.left.jumps > 0 && world.members[i]->next_deadline() != kNever) {
            branch(i, [&](World& next) {
                --next.left.jumps;
                next.clocks[i] = std::max(next.members[i]->next_deadline(),
                                          next.clocks[i] + options_.root_silent);
                next.members[i]->on_time(next.clocks[i]);
                settle(next, i);
            });
        }
        if (world.left.crashes > 0) {
            branch(i, [&](World& next) {
                --next.left.crashes;
                next.members[i].reset();
                // A swap that the store has not seen yet may still happen.
                if (next.waiting[i].swap) write(next, i, false);
                next.waiting[i] = {};
                next.own_laws().on_crash(i);
            });
        }
        if (world.left.leaves > 0 && !world.away[i]) {
            branch(i, [&](World& next) {
                --next.left.leaves;
                next.away[i] = true;
                next.own_laws().on_leave(i, *next.members[i]);
                next.current[i] = 0;
                next.members[i]->last_epoch(next.clocks[i]);
                settle(next, i);
            });
        }
        if (world.away[i] && !world.members[i]->is_pending() && world.calls[i] < budget_.calls) {
            branch(i, [&](World& next) {
                next.away[i] = false;
                call(next, i);
            });
        }
    }

    // If messages arrive in order, those that were sent before this one are lost. Returns its index
    // then.
    std::size_t drop_before(World& world, std::size_t flying) const {
        if (!budget_.is_in_order) return flying;
        const auto end = world.flying.begin() + static_cast<std::ptrdiff_t>(flying);
        auto first = end;
        while (first != world.flying.begin() && std::prev(first)->link() == end->link()) --first;
        const auto index = static_cast<std::size_t>(first - world.flying.begin());
        world.flying.erase(first, end);
        return index;
    }

    void deliver(World& world, std::size_t flying, bool takes_it) {
        const Flying arrived = world.flying[flying];
        if (takes_it)
            world.flying.erase(world.flying.begin() + static_cast<std::ptrdiff_t>(flying));
        if (!world.members[arrived.to]) return;
        world.members[arrived.to]->on_message(peer_number(arrived.from), *arrived.message,
                                              world.clocks[arrived.to]);
        settle(world, arrived.to);
    }

    void write(World& world, std::size_t i, bool is_unknown) {
        const peers::SwapStore swap = *std::exchange(world.waiting[i].swap, {});
        const bool fits = world.laws->history().size() == swap.expected;
        if (fits) world.own_laws().on_commit(swap.next);
        world.waiting[i].swapped = fits ? Swapped::kYes : Swapped::kNo;
        if (is_unknown) {
            --world.left.unknown;
            world.waiting[i].swapped = Swapped::kUnknown;
        }
    }

    void call(World& world, std::size_t i) {
        if (world.calls[i] >= budget_.calls || world.members[i]->is_pending()) return;
        const auto data = world.laws->contribution(i, 8 * kMembers);
        if (!world.members[i]->next_epoch(world.current[i], data, world.clocks[i])) return;
        ++world.calls[i];
        world.own_laws().on_call(i, data.size(), world.clocks[i]);
        settle(world, i);
    }

    void settle(World& world, std::size_t i) {
        for (bool answered = true; answered;) {
            answered = false;
            for (Effect& effect : world.members[i]->take_effects()) {
                if (auto* const sent = std::get_if<peers::Send>(&effect)) {
                    send(world, i, std::move(*sent));
                } else if (const auto* const persist = std::get_if<peers::Persist>(&effect)) {
                    world.waiting[i].persist = persist->incarnation;
                } else if (std::holds_alternative<peers::ReadStore>(effect)) {
                    world.waiting[i].reads = true;
                } else if (const auto* const swap = std::get_if<peers::SwapStore>(&effect)) {
                    world.waiting[i].swap = *swap;
                } else if (const auto* const answer = std::get_if<peers::Answer>(&effect)) {
                    world.own_laws().on_answer(i, *world.members[i], *answer, 0s, world.clocks[i]);
                    world.current[i] = answer->epoch.value_or(0);
                    answered = true;
                }
            }
            if (answered && !world.away[i]) call(world, i);
        }
        if (!world.laws->has_seen(i, *world.members[i]))
            world.own_laws().on_step(i, *world.members[i]);
    }

    void send(World& world, std::size_t from, peers::Send sent) const {
        std::size_t to = 0;
        while (to < kMembers && peer_number(to).name != sent.to.name) ++to;
        if (to == kMembers) return;
        // The beats of a living root change nothing but when others doubt it: the jumps do that.
        if (std::holds_alternative<peers::Beat>(sent.message.body)) return;
        std::uint64_t hash = from * kMembers + to + 1;
        const std::vector<std::byte> bytes = encode(sent.message);
        for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint64_t)) {
            std::uint64_t word = 0;
            std::memcpy(&word, bytes.data() + at, std::min(sizeof word, bytes.size() - at));
            hash = core::mix(hash, word);
        }
        hash = core::mix(hash, bytes.size());
        // A link holds one message of a kind that says the same.
        auto [at, end] =
            std::ranges::equal_range(world.flying, link_of(from, to), {}, &Flying::link);
        if (budget_.is_in_order) {
            if (at != end && std::prev(end)->hash == hash) return;
            at = end;
        } else {
            at = std::ranges::lower_bound(at, end, hash, {}, &Flying::hash);
            if (at != end && at->hash == hash) return;
        }
        world.flying.insert(at,
                            {.from = from,
                             .to = to,
                             .message = std::make_shared<const Message>(std::move(sent.message)),
                             .hash = hash});
    }

    static void note_fingerprint(World& world, std::size_t i) {
        const Member* const member = world.members[i].get();
        std::uint64_t hash = member != nullptr ? member->fingerprint(world.clocks[i]) : 0;
        const auto add = [&](std::uint64_t value) { hash = core::mix(hash, value); };
        add(world.durable[i]);
        add(static_cast<std::uint64_t>(world.calls[i]) * 2 + (world.away[i] ? 1 : 0));
        add(static_cast<std::uint64_t>(world.current[i]));
        const Waiting& waiting = world.waiting[i];
        add(waiting.persist.value_or(0));
        add((waiting.reads ? 1U : 0U) + (waiting.swap ? 2U : 0U));
        add(waiting.swapped ? static_cast<std::uint64_t>(*waiting.swapped) + 1 : 0);
        world.fingerprints[i] = hash;
    }

    // A message has arrived and changed nothing. All that follows would follow, too, had it not
    // arrived yet.
    static bool is_without_effect(const World& next, const World& world) {
        return next.flying.size() < world.flying.size() && next.laws == world.laws &&
               next.fingerprints == world.fingerprints &&
               counts_of(next.left) == counts_of(world.left) && has_all(world.flying, next.flying);
    }
    // In the same order.
    static bool has_all(const std::vector<Flying>& all, const std::vector<Flying>& some) {
        std::size_t found = 0;
        for (const Flying& each : all) {
            if (found < some.size() && some[found].hash == each.hash) ++found;
        }
        return found == some.size();
    }

    // False: this state was seen, perhaps with more left of what may happen. So was all that
    // follows.
    bool is_new(const World& world) {
        const std::uint64_t state = fingerprint(world);
        const auto least = counts_of(world.left);
        const auto most = counts_of(budget_);
        for (auto left = least;;) {
            if (seen_.contains(hash_of(state, left))) return false;
            std::size_t i = 0;
            for (; i < left.size() && left[i] == most[i]; ++i) left[i] = least[i];
            if (i == left.size()) break;
            ++left[i];
        }
        seen_.insert(hash_of(state, least));
        return true;
    }

    using Counts = std::array<int, 6>;
    static Counts counts_of(const ExplorationBudget& left) {
        return {left.jumps, left.crashes, left.doubles, left.leaves, left.unknown, left.overtakes};
    }
    static std::uint64_t hash_of(std::uint64_t state, const Counts& left) {
        std::uint64_t packed = 0;
        for (const int each : left) packed = 16 * packed + static_cast<std::uint64_t>(each);
        return core::mix(state, packed);
    }

    static std::uint64_t fingerprint(const World& world) {
        std::uint64_t hash = world.laws->fingerprint();
        for (const std::uint64_t each : world.fingerprints) hash = core::mix(hash, each);
        for (const Flying& flying : world.flying) hash = core::mix(hash, flying.hash);
        return hash;
    }

    const MemberOptions options_;
    const ExplorationBudget budget_;
    const std::uint64_t states_max_;
    HashSet seen_;
    Explored result_;
};

}  // namespace

Explored explore(const ExplorationBudget& budget, std::uint64_t states_max) {
    return Explorer(budget, states_max).run();
}

}  // namespace fopd::eh::testing

#include "tests/eh/epoch_exploration.h"

#include <algorithm>
#include <array>
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

Peer peer_number(std::size_t index) {
    return {.name = sim::EpochLaws::name_of(index), .address = sim::EpochLaws::name_of(index)};
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

struct Flying {
    std::size_t from = 0;
    std::size_t to = 0;
    Message message;
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

    std::vector<std::optional<Member>> members;
    std::array<Incarnation, kMembers> durable{};
    std::array<Instant, kMembers> clocks{};
    std::array<Waiting, kMembers> waiting;
    std::array<EpochNumber, kMembers> current{};
    std::array<int, kMembers> calls{};
    std::array<bool, kMembers> away{};
    std::vector<Flying> flying;
    std::vector<ViewHandle> history;
    ExplorationBudget left;
    sim::EpochLaws laws{kMembers, left.fanout, 1h};
};

// Hashes of 64 bits in one array: 8 bytes a state, at most half of them in use. That two of n
// states have one hash, so that one is not gone on from, has a chance of n² / 2^65.
class HashSet {
public:
    // False: it was there.
    bool insert(std::uint64_t hash) {
        if (2 * count_ >= slots_.size()) grow();
        if (hash == kEmpty) hash = 1;
        if (!put(hash)) return false;
        ++count_;
        return true;
    }

private:
    static constexpr std::uint64_t kEmpty = 0;

    bool put(std::uint64_t hash) {
        std::size_t at = hash & (slots_.size() - 1);
        while (slots_[at] != kEmpty) {
            if (slots_[at] == hash) return false;
            at = (at + 1) & (slots_.size() - 1);
        }
        slots_[at] = hash;
        return true;
    }
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
        world.history.push_back(handle);
        world.laws.on_commit(handle);
        for (std::size_t i = 0; i < kMembers; ++i) {
            world.clocks[i] = Instant{100s};
            world.durable[i] = 1;
            world.members.emplace_back(std::in_place, options_, peer_number(i), 1, world.clocks[i]);
            world.members[i]->seat(handle, world.clocks[i]);
            (void)world.members[i]->take_effects();
        }
        for (std::size_t i = 0; i < kMembers; ++i) call(world, i);
        result_.is_whole = true;
        visit(world, 0);
        return result_;
    }

private:
    bool is_over() const {
        return !result_.wrong.empty() || (!result_.is_whole && result_.states >= states_max_);
    }

    void visit(const World& world, std::size_t depth) {
        if (!world.laws.broken().empty()) {
            if (result_.wrong.empty()) result_.wrong = world.laws.broken();
            return;
        }
        if (result_.states >= states_max_) {
            result_.is_whole = false;
            return;
        }
        if (!seen_.insert(fingerprint(world))) return;
        ++result_.states;
        result_.depth = std::max(result_.depth, depth);

        const auto branch = [&](const auto& act) {
            if (is_over()) return;
            ++result_.steps;
            World next = world;
            act(next);
            visit(next, depth + 1);
        };
        std::uint64_t last = 0;
        for (std::size_t f = 0; f < world.flying.size(); ++f) {
            // Equal messages are one.
            if (f > 0 && world.flying[f].hash == last) continue;
            last = world.flying[f].hash;
            branch([&](World& next) { deliver(next, f, true); });
            if (world.left.losses > 0)
                branch([&](World& next) { drop(next, f, next.left.losses); });
            if (world.left.doubles > 0) {
                branch([&](World& next) {
                    --next.left.doubles;
                    deliver(next, f, false);
                });
            }
        }
        for (std::size_t i = 0; i < kMembers; ++i) visit_member(world, i, branch);
    }

    template <typename Branch>
    void visit_member(const World& world, std::size_t i, const Branch& branch) {
        const Waiting& waiting = world.waiting[i];
        if (!world.members[i]) {
            branch([&](World& next) {
                next.members[i].emplace(options_, peer_number(i), next.durable[i], next.clocks[i]);
                next.current[i] = 0;
                call(next, i);
            });
            return;
        }
        if (waiting.persist) {
            branch([&](World& next) {
                const Incarnation incarnation = *std::exchange(next.waiting[i].persist, {});
                next.durable[i] = incarnation;
                next.members[i]->on_persisted(incarnation, next.clocks[i]);
                settle(next, i);
            });
        }
        if (waiting.reads) {
            branch([&](World& next) {
                next.waiting[i].reads = false;
                next.members[i]->on_view_read(next.history.back(), next.clocks[i]);
                settle(next, i);
            });
        }
        if (waiting.swap) {
            branch([&](World& next) { write(next, i, false); });
            if (world.left.unknown > 0) branch([&](World& next) { write(next, i, true); });
        }
        if (waiting.swapped) {
            branch([&](World& next) {
                const Swapped outcome = *std::exchange(next.waiting[i].swapped, {});
                next.members[i]->on_view_swapped(outcome, next.clocks[i]);
                settle(next, i);
            });
        }
        if (world.left.jumps > 0 && world.members[i]->next_deadline() != kNever) {
            branch([&](World& next) {
                --next.left.jumps;
                next.clocks[i] = std::max(next.members[i]->next_deadline(),
                                          next.clocks[i] + options_.root_silent);
                next.members[i]->on_time(next.clocks[i]);
                settle(next, i);
            });
        }
        if (world.left.crashes > 0) {
            branch([&](World& next) {
                --next.left.crashes;
                next.members[i].reset();
                // A swap that the store has not seen yet may still happen.
                if (next.waiting[i].swap) write(next, i, false);
                next.waiting[i] = {};
                next.laws.on_crash(i);
            });
        }
        if (world.left.leaves > 0 && !world.away[i]) {
            branch([&](World& next) {
                --next.left.leaves;
                next.away[i] = true;
                next.laws.on_leave(i, *next.members[i]);
                next.current[i] = 0;
                next.members[i]->last_epoch(next.clocks[i]);
                settle(next, i);
            });
        }
        if (world.away[i] && !world.members[i]->is_pending()) {
            branch([&](World& next) {
                next.away[i] = false;
                call(next, i);
            });
        }
    }

    void deliver(World& world, std::size_t flying, bool takes_it) {
        const Flying arrived = world.flying[flying];
        if (takes_it)
            world.flying.erase(world.flying.begin() + static_cast<std::ptrdiff_t>(flying));
        if (!world.members[arrived.to]) return;
        world.members[arrived.to]->on_message(peer_number(arrived.from), arrived.message,
                                              world.clocks[arrived.to]);
        settle(world, arrived.to);
    }

    static void drop(World& world, std::size_t flying, int& budget) {
        --budget;
        world.flying.erase(world.flying.begin() + static_cast<std::ptrdiff_t>(flying));
    }

    void write(World& world, std::size_t i, bool is_unknown) {
        const peers::SwapStore swap = *std::exchange(world.waiting[i].swap, {});
        const bool fits = world.history.size() == swap.expected;
        if (fits) {
            world.history.push_back(swap.next);
            world.laws.on_commit(swap.next);
        }
        world.waiting[i].swapped = fits ? Swapped::kYes : Swapped::kNo;
        if (is_unknown) {
            --world.left.unknown;
            world.waiting[i].swapped = Swapped::kUnknown;
        }
    }

    void call(World& world, std::size_t i) {
        if (world.calls[i] >= budget_.calls || world.members[i]->is_pending()) return;
        const auto data = world.laws.contribution(i, 8 * kMembers);
        if (!world.members[i]->next_epoch(world.current[i], data, world.clocks[i])) return;
        ++world.calls[i];
        world.laws.on_call(i, data.size(), world.clocks[i]);
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
                    world.laws.on_answer(i, *world.members[i], *answer, 0s, world.clocks[i]);
                    world.current[i] = answer->epoch.value_or(0);
                    answered = true;
                }
            }
            if (answered && !world.away[i]) call(world, i);
        }
        world.laws.on_step(i, *world.members[i]);
    }

    static void send(World& world, std::size_t from, peers::Send sent) {
        std::size_t to = 0;
        while (to < kMembers && peer_number(to).name != sent.to.name) ++to;
        if (to == kMembers) return;
        // The beats of a living root change nothing but when others doubt it: the jumps do that.
        if (std::holds_alternative<peers::Beat>(sent.message.body)) return;
        std::uint64_t hash = from * kMembers + to + 1;
        for (const std::byte byte : encode(sent.message))
            hash = core::mix(hash, static_cast<std::uint64_t>(byte));
        // A link holds one message of a kind that says the same.
        const auto other = std::ranges::lower_bound(world.flying, hash, {}, &Flying::hash);
        if (other != world.flying.end() && other->hash == hash) return;
        world.flying.insert(
            other, {.from = from, .to = to, .message = std::move(sent.message), .hash = hash});
    }

    std::uint64_t fingerprint(const World& world) const {
        std::uint64_t hash = world.laws.fingerprint();
        const auto add = [&](std::uint64_t value) { hash = core::mix(hash, value); };
        for (std::size_t i = 0; i < kMembers; ++i) {
            add(world.members[i] ? world.members[i]->fingerprint(world.clocks[i]) : 0);
            add(world.durable[i]);
            add(static_cast<std::uint64_t>(world.calls[i]) * 2 + (world.away[i] ? 1 : 0));
            add(static_cast<std::uint64_t>(world.current[i]));
            const Waiting& waiting = world.waiting[i];
            add(waiting.persist.value_or(0));
            add((waiting.reads ? 1U : 0U) + (waiting.swap ? 2U : 0U));
            add(waiting.swapped ? static_cast<std::uint64_t>(*waiting.swapped) + 1 : 0);
        }
        for (const Flying& flying : world.flying) add(flying.hash);
        const ExplorationBudget& left = world.left;
        for (const int each :
             {left.jumps, left.crashes, left.losses, left.doubles, left.leaves, left.unknown}) {
            add(static_cast<std::uint64_t>(each));
        }
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

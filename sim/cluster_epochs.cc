// The epochs of the nodes of a cluster, and the laws that they keep.

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <variant>

#include "core/ensure.h"
#include "eh/view.h"
#include "lrs/epoch_frame.h"
#include "sim/cluster.h"

namespace fopd::sim {

namespace {

// Short enough for many epochs and evictions in a run.
constexpr std::string_view kEpochTimes = "timeout: 1s, grace: 100ms, root_silent: 500ms";
constexpr Duration kEpochGrace = 100ms;

std::size_t frame_bytes() {
    return lrs::EpochFrame(lrs::epoch_parts()).size_bytes();
}

// Contributions with numbers of calls behind them.
void combine_numbered(std::span<std::byte> into, std::span<const std::byte> one,
                      std::span<const std::byte> other) {
    const std::size_t frame = frame_bytes();
    if (into.size() < frame) return;
    lrs::EpochFrame(lrs::epoch_parts())
        .combine(into.first(frame), one.first(frame), other.first(frame));
    NumberedCalls::combine(into.subspan(frame), one.subspan(frame), other.subspan(frame));
}

template <typename Body>
bool is_send_of(const eh::peers::Effect& effect) {
    const auto* const send = std::get_if<eh::peers::Send>(&effect);
    return send != nullptr && std::holds_alternative<Body>(send->message.body);
}

bool is_moment(const eh::peers::Effect& effect, Fault::Moment moment) {
    switch (moment) {
        case Fault::Moment::kIncarnation: return std::holds_alternative<eh::peers::Persist>(effect);
        case Fault::Moment::kJoin: return is_send_of<eh::peers::Join>(effect);
        case Fault::Moment::kPromise: return is_send_of<eh::peers::Promise>(effect);
        case Fault::Moment::kPromiseAck: return is_send_of<eh::peers::PromiseAck>(effect);
        case Fault::Moment::kSwap: return std::holds_alternative<eh::peers::SwapStore>(effect);
        case Fault::Moment::kViewNews:
            return is_send_of<eh::peers::ViewNews>(effect) ||
                   is_send_of<eh::peers::ViewPart>(effect);
        case Fault::Moment::kStart: return is_send_of<eh::peers::Start>(effect);
    }
    return false;
}

eh::ViewHandle view_in(const std::vector<std::byte>& file) {
    auto view = eh::decode_view(file);
    ENSURE(view.has_value());
    return std::make_shared<const eh::CommittedView>(*std::move(view));
}

}  // namespace

std::string Cluster::epoch_configuration() {
    std::string members;
    for (std::uint32_t i = 0; i < options_.nodes; ++i) {
        const std::string name = node_name(i);
        members += "{ name: " + name + ", address: \"" +
                   format_address(network_.address_of(name, 1)) + "\" }, ";
    }
    // Nobody connects to this etcd: the nodes are given another store.
    const std::string_view store = options_.shared_views
                                       ? "{ kind: etcd, endpoints: [ \"http://etcd\" ] }"
                                       : "{ root: node-0 }";
    return "kind: peers, store: " + std::string(store) + ", " + std::string(kEpochTimes) +
           ", fanout: " + std::to_string(options_.fanout) + ", members: [ " + members + "]";
}

eh::EpochRules Cluster::rules(const eh::EpochRules& plain) const {
    eh::EpochRules numbered = plain;
    numbered.combine = combine_numbered;
    numbered.granule = frame_bytes() + epoch_calls_.numbers_bytes();
    numbered.swap_bytes = nullptr;  // All nodes have the same byte order.
    return numbered;
}

// The index of a node that has something to say of its calls.
std::size_t Cluster::caller(const std::string& node) {
    const auto found =
        std::ranges::find_if(nodes_, [&node](const auto& each) { return each->name() == node; });
    ENSURE(found != nodes_.end());
    const auto index = static_cast<std::size_t>(found - nodes_.begin());
    note_life(index);
    return index;
}

// Calls of earlier lives of the node ended with them.
void Cluster::note_life(std::size_t node) {
    const std::uint64_t life = nodes_[node]->life_count();
    if (std::exchange(epoch_lives_[node], life) == life) return;
    epoch_calls_.on_crash(node);
    member_states_.on_crash(node);
}

void Cluster::mark(const std::string& node, std::vector<std::byte>& data) {
    const auto numbers = epoch_calls_.numbers(caller(node), epoch_calls_.numbers_bytes());
    data.insert(data.end(), numbers.begin(), numbers.end());
}

void Cluster::on_call(const std::string& node, Duration longest) {
    epoch_calls_.on_call(epochs_, caller(node),
                         {.bytes = epoch_calls_.numbers_bytes(), .longest = longest}, world_.now());
}

void Cluster::on_leave(const std::string& node, eh::Incarnation incarnation) {
    epoch_calls_.on_leave(caller(node), incarnation);
}

// A process cannot be killed within its own call: until the turn ends it does nothing of what the
// handler of its epochs asks for.
bool Cluster::on_effect(const std::string& node, const eh::peers::Effect& effect) {
    const std::size_t index = caller(node);
    if (doomed_[index]) return false;
    note_idle(effect);
    const auto hits = [&](const Fault& fault) {
        const bool is_its = fault.node == index || fault.node == Fault::kAnyNode;
        return is_its && is_moment(effect, fault.moment);
    };
    const auto found = std::ranges::find_if(awaited_, hits);
    if (found == awaited_.end()) return true;
    Fault fault = *found;
    awaited_.erase(found);
    fault.node = nodes_[index]->index();
    doomed_[index] = true;
    ++faults_carried_out_;
    carried_out_.insert(fault.kind);
    due_.push_back({after(world_.now(), fault.span), fault});
    return fault.is_done;
}

void Cluster::crash_doomed() {
    for (const auto& node : nodes_) {
        if (!doomed_[node->index()]) continue;
        doomed_[node->index()] = false;
        if (!node->running()) continue;
        look_for_broken_protocol(*node);
        node->crash();
    }
}

void Cluster::on_answer(const std::string& node, eh::Incarnation incarnation,
                        eh::peers::Answer& answer) {
    look_at_views();
    const std::size_t index = caller(node);
    const std::size_t frame = frame_bytes();
    const bool is_whole = answer.data.size() == frame + epoch_calls_.numbers_bytes();
    std::span<const std::byte> numbers;
    if (is_whole) numbers = std::span(answer.data).subspan(frame);
    if (answer.epoch) {
        epochs_.on_epoch(node, answer);
        epochs_.require(is_whole, "I3", node + " has a result of another length");
    }
    epoch_calls_.on_answer(
        epochs_, index, answer,
        {.incarnation = incarnation, .numbers = numbers, .frozen = frozen_in_call(index)},
        world_.now());
    if (is_whole) answer.data.resize(frame);
    last_answer_at_ = world_.now();
}

void Cluster::on_settled(const std::string& node, const eh::peers::Member& member) {
    look_at_views();
    const std::size_t index = caller(node);
    if (!doomed_[index]) member_states_.on_step(epochs_, index, member);
}

// What follows from an epoch that has begun is over after the grace.
void Cluster::note_idle(const eh::peers::Effect& effect) {
    if (!std::holds_alternative<eh::peers::Send>(effect)) return;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
        if (epoch_calls_.is_pending(i)) return;
    }
    if (world_.now() <= after(last_answer_at_, kEpochGrace)) return;
    ++(is_send_of<eh::peers::Beat>(effect) ? idle_messages_.beats : idle_messages_.others);
}

// How long a stall may have kept the node from ending its call.
Duration Cluster::frozen_in_call(std::size_t node) const {
    if (!epoch_calls_.is_pending(node)) return Duration{0};
    const Instant called_at = epoch_calls_.called_at(node);
    return std::max(excused_until_[node], called_at) - called_at;
}

// Calls that are pending, and not late.
void Cluster::look_at_calls() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
        if (!nodes_[i]->running()) continue;
        note_life(i);
        epoch_calls_.look(epochs_, i, frozen_in_call(i), world_.now());
    }
    if (!epochs_.broken().empty()) break_promise(epochs_.broken());
}

// The views that were committed since the last look.
void Cluster::look_at_views() {
    const std::size_t known = epochs_.views().size();
    if (options_.shared_views) {
        const auto& all = views_.history();
        for (std::size_t i = known; i < all.size(); ++i) epochs_.on_commit(all[i]);
    } else {
        const auto& all = nodes_.front()->epoch_files().view;
        for (std::size_t i = known; i < all.size(); ++i) epochs_.on_commit(view_in(all[i]));
    }
    if (!epochs_.broken().empty()) break_promise(epochs_.broken());
}

bool Cluster::move_together(Duration patience) {
    const Instant end_at = after(world_.now(), patience);
    std::vector<eh::EpochNumber> before;
    for (const auto& node : nodes_) before.push_back(epochs_.newest(node->name()));
    const auto moves = [&](const SimulatedNode& node) {
        return epochs_.newest(node.name()) > before[node.index()];
    };
    const auto is_member = [&](SimulatedNode& node) {
        const auto status = node.node().localities().front()->epochs()->status();
        const auto is_lost = [](const auto& each) {
            using State = eh::peers::EpochStatus::Seen::State;
            return each.state != State::kMember && each.state != State::kReady;
        };
        return std::ranges::none_of(status.members, is_lost);
    };
    std::string missing = "no node";
    while (broken_promise_.empty() && !missing.empty() && world_.now() < end_at) {
        step_until(after(world_.now(), 1s));
        missing.clear();
        for (const auto& node : nodes_) {
            if (!node->running() || !is_member(*node) || !moves(*node)) missing = node->name();
        }
    }
    if (!missing.empty()) break_promise(missing + " does not move from epoch to epoch with others");
    return broken_promise_.empty();
}

}  // namespace fopd::sim

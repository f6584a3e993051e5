#include "lrs/epoch_groups/epoch_groups.h"

#include <algorithm>
#include <utility>

#include "core/ensure.h"
#include "core/random.h"
#include "lrs/policies.h"

namespace fopd::lrs {

struct EpochGroups::Group : KnownClass, TurnPlace {
    Group(const ClassHash& of, const GroupRule& by, std::string named, GroupId with_id)
        : KnownClass(of), rule(&by), name(std::move(named)), id(with_id) {}

    Request& head() { return static_cast<Request&>(waiting.front()); }

    core::IntrusiveList<PolicyPlace> waiting;
    std::uint64_t queued = 0;
    const GroupRule* rule;
    const std::string name;
    const GroupId id;
    Line::iterator entry_at;  // The entry in the line, while requests wait.
    Line::node_type entry;    // Of the line, while none waits; empty until it was there once.
    std::uint64_t turns = 0;
    ClassTally tally;
};

std::unique_ptr<Policy> make_epoch_groups(const EpochGroupsSettings& settings,
                                          const EpochGroupsShare& share, std::uint64_t seed) {
    const EpochGroupsShare used =
        share.rules != nullptr ? share : EpochGroupsNode(seed).share(settings);
    return std::make_unique<EpochGroups>(used, settings, EpochGroups::Options{});
}

// -- the node --

EpochGroupsNode::EpochGroupsNode(std::uint64_t seed, std::uint64_t version) {
    core::Random random(seed);
    share_.key = {.first = random.next(), .second = random.next()};
    auto none = GroupRules::load({}, version);
    ENSURE(none.has_value());
    share_.rules = *std::move(none);
}

const EpochGroupsShare& EpochGroupsNode::share(const EpochGroupsSettings& settings) {
    if (settings.rules != texts_) {
        auto loaded = GroupRules::load(settings.rules, share_.rules->version() + 1);
        ENSURE(loaded.has_value());
        share_.rules = *std::move(loaded);
        texts_ = settings.rules;
    }
    return share_;
}

OrderedRulesPtr EpochGroupsNode::rules(const PolicySettings& settings, Instant /*now*/) {
    return share(settings.epoch_groups).rules;
}

std::optional<RuleMistakes> EpochGroupsNode::edit(PolicySettings& settings, const RuleEdit& edit,
                                                  Instant /*now*/) {
    const GroupRules& before = *share(settings.epoch_groups).rules;
    auto changed = edited_rules(before, edit, kGroupGrammar);
    if (!changed) return std::move(changed.error());
    auto texts = texts_of(*changed, kGroupGrammar);
    // The generated texts may be longer than the user's, and rules may be wrong together.
    const auto loaded = GroupRules::load(texts, before.version());
    if (!loaded) {
        // Line and column refer to the generated text, not to the user's.
        RuleMistake mistake = loaded.error().front();
        mistake.line = 0;
        mistake.column = 1;
        return mistake;
    }
    settings.epoch_groups.rules = std::move(texts);
    return std::nullopt;
}

// -- requests --

EpochGroups::EpochGroups(EpochGroupsShare share, EpochGroupsSettings settings,
                         const Options& options)
    : share_(std::move(share)),
      settings_(std::move(settings)),
      options_(options),
      groups_(options.groups_max) {
    ENSURE(share_.rules != nullptr);
}

EpochGroups::~EpochGroups() = default;

void EpochGroups::push(Request& request, Instant now) {
    now_ = now;
    groups_.forget_idle(now, options_.forget_after, [this](Group& idle) { groups_.drop(idle); });
    Group& to = group_of(request);
    static_cast<PolicyPlace&>(request).queue = &to;
    to.waiting.push_back(request);
    if (++to.queued == 1) begin_waiting(to);
}

Policy::Next EpochGroups::pop(Instant now) {
    now_ = now;
    if (state_ == State::kInEpoch && turn_) {
        // The next epoch lets them go: it begins, or fails, without more requests.
        const bool is_over = now >= after(begun_at_, settings_.length);
        if (is_over && settings_.at_end == AtEnd::kPause) return {};
        if (!turn_groups_.empty()) {
            auto& first = static_cast<Group&>(turn_groups_.front());
            return {.request = take(first, now)};
        }
        if (settings_.others == OtherGroups::kWait) return {};
    }
    return {.request = take_own(now)};
}

void EpochGroups::remove(Request& request) {
    leave(*static_cast<Group*>(static_cast<PolicyPlace&>(request).queue), request);
}

void EpochGroups::let_pass(Request& request, Instant now) {
    now_ = now;
    auto& from = *static_cast<Group*>(static_cast<PolicyPlace&>(request).queue);
    from.tally.add_request(request.attributes.size_bytes, now);
    leave(from, request);
}

Request* EpochGroups::take(Group& from, Instant now) {
    Request& request = from.head();
    from.tally.add_request(request.attributes.size_bytes, now);
    leave(from, request);
    return &request;
}

// The next request in this locality's own order. Null: none waits.
Request* EpochGroups::take_own(Instant now) {
    if (own_turn_ == nullptr || now >= own_end_) {
        if (line_.empty()) return nullptr;
        const auto [tag, next] = *line_.begin();
        if (tag.at > kLastTagAt) {
            own_last_ = {};
            for (std::size_t left = line_.size(); left > 0; --left) {
                // The moved ones are before the others, which are far behind.
                move_tag(*std::prev(line_.end())->second);
            }
            return take_own(now);
        }
        own_last_ = tag;
        own_turn_ = next;
        own_end_ = after(now, settings_.length);
        move_tag(*next);
    }
    return take(*own_turn_, now);
}

void EpochGroups::leave(Group& from, Request& request) {
    static_cast<PolicyPlace&>(request).unlink();
    if (--from.queued == 0) stop_waiting(from);
}

void EpochGroups::begin_waiting(Group& group) {
    group.KnownClass::unlink();
    const Tag tag = next_tag(own_last_, group.id, group.rule->weight);
    if (group.entry.empty()) {
        group.entry_at = line_.emplace(tag, &group);
    } else {
        group.entry.key() = tag;
        group.entry_at = line_.insert(std::move(group.entry));
    }
    if (turn_ == group.id) turn_groups_.push_back(group);
}

void EpochGroups::stop_waiting(Group& group) {
    group.entry = line_.extract(group.entry_at);
    group.TurnPlace::unlink();
    if (own_turn_ == &group) own_turn_ = nullptr;
    groups_.fell_idle(group, now_);
}

// To the group's next tag after own_last_. REQUIRES: requests wait.
void EpochGroups::move_tag(Group& group) {
    const Tag tag = next_tag(own_last_, group.id, group.rule->weight);
    if (tag == group.entry_at->first) return;
    auto entry = line_.extract(group.entry_at);
    entry.key() = tag;
    group.entry_at = line_.insert(std::move(entry));
}

// -- epochs --

void EpochGroups::write_epoch(std::span<std::byte> room, Instant /*now*/) {
    demands_.clear();
    for (const auto& [tag, group] : line_) {
        demands_.push_back(
            {.tag = next_tag(last_, group->id, group->rule->weight), .requests = group->queued});
    }
    EpochDemand demand;
    demand.last = last_;
    demand.set_groups(demands_);
    demand.write(room);
}

void EpochGroups::start_epoch(eh::EpochNumber /*epoch*/, const EpochPartData& data, Instant now) {
    state_ = State::kInEpoch;
    begun_at_ = now;
    turn_.reset();
    while (turn_groups_.pop_front() != nullptr) {
    }
    in_all_ = {};
    if (data.filled == 0) return;
    in_all_ = EpochDemand::read(data.bytes);
    const std::optional<Tag> next = in_all_.next();
    last_ = next.value_or(in_all_.last);
    if (last_.at > kLastTagAt) last_ = {};
    if (!next) return;
    turn_ = next->group;
    begin_turn();
}

// The locality uses the rest of its time for the groups with the next turns, which have the same
// order at all nodes.
void EpochGroups::begin_turn() {
    own_last_ = last_;
    own_turn_ = nullptr;
    for (auto at = line_.begin(); at != line_.end();) {
        Group& group = *at->second;
        ++at;
        move_tag(group);
        if (group.id != turn_ || group.TurnPlace::linked()) continue;
        turn_groups_.push_back(group);
        ++group.turns;
    }
}

// last_ remains: if the others went on without this node, it is told the newer turn; if all have
// lost the epoch, they go on where they were.
void EpochGroups::lose_epoch(const Error& /*reason*/, Instant /*now*/) {
    state_ = State::kAlone;
    turn_.reset();
    while (turn_groups_.pop_front() != nullptr) {
    }
    in_all_ = {};
}

Instant EpochGroups::epoch_over_at() const {
    if (state_ == State::kNew) return Instant{};  // Nothing of it was contributed.
    if (state_ == State::kAlone) return kNever;
    if (!turn_groups_.empty()) return after(begun_at_, settings_.length);
    if (!turn_ && line_.empty()) return after(begun_at_, std::min(settings_.length, kIdleLength));
    const bool serves = settings_.others == OtherGroups::kServe;
    return serves ? after(begun_at_, settings_.length / kShortestParts) : Instant{};
}

Policy::Adapted EpochGroups::adapt(const PolicySettings& settings, const PolicyParts& parts,
                                   Instant /*now*/) {
    if (parts.share.epoch_groups != share_) return Adapted::kNot;
    settings_ = settings.epoch_groups;
    return Adapted::kAtOnce;
}

// -- groups --

EpochGroups::Group& EpochGroups::group_of(const Request& request) {
    const RequestAttributes& attributes = request.attributes;
    const GroupRule& rule = share_.rules->rule_for(attributes, &memo_);
    const ClassHash own = rule.own_class(share_.key);
    if (!rule.classes_by.is_empty()) {
        const ClassHash hash = rule.class_of(attributes, share_.key);
        if (Group* const known = groups_.find(hash)) return *known;
        // Earlier requests of the rule's own class, from when there was no room, are served first.
        const Group* const others = groups_.find(own);
        const bool has_others = others != nullptr && others->queued > 0;
        if (!has_others && make_room()) return add_group(hash, rule, rule.class_name(attributes));
    }
    if (Group* const known = groups_.find(own)) return *known;
    return add_group(own, rule, rule.own_class_name());
}

EpochGroups::Group& EpochGroups::add_group(const ClassHash& hash, const GroupRule& rule,
                                           std::string name) {
    const GroupId id = options_.id_of(name);
    return groups_.add(hash, rule, std::move(name), id);
}

bool EpochGroups::make_room() {
    while (groups_.count() >= options_.groups_max) {
        Group* const idle = groups_.longest_idle();
        if (idle == nullptr) return false;
        groups_.drop(*idle);
    }
    return true;
}

ClassLabel EpochGroups::class_of(const Request& request) const {
    const auto* const of =
        static_cast<const Group*>(static_cast<const PolicyPlace&>(request).queue);
    return {.name = of->name, .rule = of->rule->name};
}

// The rules of a set are contiguous, in their order.
bool EpochGroups::visit_classes(Instant /*now*/, const ClassVisitor& visitor) {
    groups_.for_each([&](Group& known) {
        visitor(
            {.name = known.name,
             .rule = known.rule->name,
             .sort_position = static_cast<std::uint32_t>(known.rule - share_.rules->rules().data()),
             .queued = known.queued,
             .oldest = known.queued > 0 ? known.head().arrived_at() : kNever,
             .tally = known.tally,
             .turns = ClassTurns{.weight = known.rule->weight,
                                 .taken = known.turns,
                                 .queued_in_all = in_all_.requests_of(known.id)}});
    });
    return true;
}

}  // namespace fopd::lrs

// Goal: with its line of tags, which it moves only where it must, epoch_groups does what it would
// do if it looked at every group each time.
// Method: a model that does look at all of them; drawn requests, removals, times, epochs of drawn
// contributions and losses go to both, and both must give the same requests and contributions.

#include <algorithm>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/random.h"
#include "tests/catch.h"
#include "tests/lrs/epoch_groups/groups_stage.h"

using namespace fopd;
using namespace fopd::lrs;
using namespace fopd::lrs::testing;

namespace {

struct ModelGroup {
    GroupId id = 0;
    std::uint32_t weight = 1;
    std::deque<StageRequest*> waiting{};
};

class Model {
public:
    Model(std::vector<ModelGroup> groups, const EpochGroupsSettings& settings)
        : groups_(std::move(groups)), settings_(settings) {}

    void push(std::size_t group, StageRequest& request) {
        groups_[group].waiting.push_back(&request);
    }
    void remove(StageRequest& request) {
        for (ModelGroup& each : groups_) std::erase(each.waiting, &request);
        end_own_turn();
    }
    StageRequest* pop(Instant now) {
        if (in_epoch_ && turn_) {
            const bool is_over = now >= begun_at_ + settings_.length;
            if (is_over && settings_.at_end == AtEnd::kPause) return nullptr;
            for (std::size_t i = 0; i < groups_.size(); ++i) {
                if (groups_[i].id == *turn_ && !groups_[i].waiting.empty()) return take(i);
            }
            if (settings_.others == OtherGroups::kWait) return nullptr;
        }
        if (!own_turn_ || now >= own_end_) {
            const auto next = first_after(own_last_);
            if (!next) return nullptr;
            own_last_ = tag(*next, own_last_);
            own_turn_ = *next;
            own_end_ = now + settings_.length;
        }
        return take(*own_turn_);
    }
    EpochDemand contribution() const {
        EpochDemand demand;
        demand.last = last_;
        std::vector<GroupDemand> all;
        for (std::size_t i = 0; i < groups_.size(); ++i) {
            if (groups_[i].waiting.empty()) continue;
            all.push_back({.tag = tag(i, last_), .requests = groups_[i].waiting.size()});
        }
        std::ranges::sort(all, {}, &GroupDemand::tag);
        for (const GroupDemand& each : all) {
            if (demand.count < EpochDemand::kGroupsMax) demand.groups[demand.count++] = each;
        }
        return demand;
    }
    void start_epoch(const EpochDemand& demand, Instant now) {
        in_epoch_ = true;
        begun_at_ = now;
        turn_.reset();
        last_ = demand.last;
        if (demand.count == 0) return;
        last_ = demand.groups[0].tag;
        turn_ = last_.group;
        own_last_ = last_;
        own_turn_.reset();
    }
    void lose_epoch() {
        in_epoch_ = false;
        turn_.reset();
    }

private:
    Tag tag(std::size_t group, const Tag& last) const {
        return next_tag(last, groups_[group].id, groups_[group].weight);
    }
    std::optional<std::size_t> first_after(const Tag& last) const {
        std::optional<std::size_t> first;
        for (std::size_t i = 0; i < groups_.size(); ++i) {
            if (groups_[i].waiting.empty()) continue;
            if (!first || tag(i, last) < tag(*first, last)) first = i;
        }
        return first;
    }
    StageRequest* take(std::size_t group) {
        StageRequest* const request = groups_[group].waiting.front();
        groups_[group].waiting.pop_front();
        end_own_turn();
        return request;
    }
    // A turn ends with the group's last request.
    void end_own_turn() {
        if (own_turn_ && groups_[*own_turn_].waiting.empty()) own_turn_.reset();
    }

    std::vector<ModelGroup> groups_;
    const EpochGroupsSettings settings_;
    bool in_epoch_ = false;
    Instant begun_at_{};
    std::optional<GroupId> turn_;
    Tag last_;
    Tag own_last_;
    std::optional<std::size_t> own_turn_;
    Instant own_end_{};
};

// Jobs 0 to 9 have weight 1, the next ten 2, and so on.
std::vector<ModelGroup> groups_of(std::size_t count, std::vector<std::string>& rules) {
    std::vector<ModelGroup> groups;
    for (std::size_t i = 0; i < count; ++i) {
        const auto weight = static_cast<std::uint32_t>(1 + i / 10);
        const std::string job = std::to_string(i);
        const std::string rule = "w" + job;
        if (weight > 1) rules.push_back(rule + " job=" + job + " weight=" + std::to_string(weight));
        const std::string name = (weight > 1 ? rule : "default") + "{job=" + job + "}";
        groups.push_back({.id = group_id_of(name), .weight = weight});
    }
    return groups;
}

}  // namespace

TEST_CASE("lrs epoch groups: a model that looks at all groups each time gives the same", "[lrs]") {
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        CAPTURE(seed);
        core::Random random(seed);
        const std::size_t count = seed % 3 == 0 ? 100 : 1 + random.below(40);
        EpochGroupsSettings settings{
            .length = Duration(random.between(1, 50)) * 1'000'000,
            .at_end = random.below(2) == 0 ? AtEnd::kGoOn : AtEnd::kPause,
            .others = random.below(2) == 0 ? OtherGroups::kServe : OtherGroups::kWait};
        auto groups = groups_of(count, settings.rules);
        GroupsStage stage(settings);
        Model model(groups, settings);
        Instant now = kGroupsStart;
        std::size_t popped = 0;
        for (int step = 0; step < 3000; ++step) {
            const std::uint64_t what = random.below(100);
            if (what < 45) {
                const std::size_t group = random.below(count);
                model.push(group, stage.push("job=" + std::to_string(group), now));
            } else if (what < 85) {
                const Policy::Next next = stage.pop(now);
                REQUIRE(next.request == model.pop(now));
                if (next.request != nullptr) ++popped;
            } else if (what < 88) {
                if (stage.requests.empty()) continue;
                StageRequest& request = stage.requests[random.below(stage.requests.size())];
                if (!request.is_waiting) continue;
                model.remove(request);
                stage.remove(request);
            } else if (what < 97) {
                EpochDemand demand = stage.contribution(now);
                REQUIRE(demand == model.contribution());
                // With what another node says, which may know an older turn, or a newer one.
                EpochDemand other;
                other.last = demand.last;
                if (random.below(5) == 0) other.last.at += random.below(3 * kRoundLength);
                if (random.below(10) == 0) other.last = {};
                std::vector<GroupDemand> theirs;
                for (std::uint64_t left = random.below(80); left > 0; --left) {
                    const ModelGroup& group = groups[random.below(groups.size())];
                    theirs.push_back({.tag = next_tag(other.last, group.id, group.weight),
                                      .requests = 1 + random.below(9)});
                }
                other.set_groups(theirs);
                demand = EpochDemand::combine(demand, other);
                stage.start_epoch(demand, now);
                model.start_epoch(demand, now);
            } else if (what < 98) {
                stage.lose_epoch(now);
                model.lose_epoch();
            } else {
                now += Duration(random.between(0, 100)) * 1'000'000;
            }
        }
        CHECK(popped > 100);
        stage.lose_epoch(now);
        model.lose_epoch();
        for (const std::uint64_t number : stage.pop_all(now)) {
            StageRequest* const next = model.pop(now);
            REQUIRE(next != nullptr);
            CHECK(next->number == number);
        }
        CHECK(model.pop(now) == nullptr);
    }
}

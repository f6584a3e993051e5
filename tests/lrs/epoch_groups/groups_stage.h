#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "lrs/epoch_groups/epoch_groups.h"
#include "tests/lrs/policy_stage.h"

namespace fopd::lrs::testing {

inline constexpr Instant kGroupsStart{100s};

// One policy with rules, and epochs as the test has them.
class GroupsStage : public PolicyStage<EpochGroups> {
public:
    explicit GroupsStage(const EpochGroupsSettings& settings = {},
                         const EpochGroups::Options& options = {})
        : share(node.share(settings)) {
        policies.push_back(std::make_unique<EpochGroups>(share, settings, options));
    }

    EpochDemand contribution(Instant now) {
        std::vector<std::byte> bytes(EpochDemand::kBytes);
        policy().write_epoch(bytes, now);
        return EpochDemand::read(bytes);
    }
    void start_epoch(const EpochDemand& demand, Instant now) {
        std::vector<std::byte> bytes(EpochDemand::kBytes);
        demand.write(bytes);
        policy().start_epoch(++epoch, {.filled = 1, .bytes = bytes}, now);
    }
    // An epoch of this one alone.
    void start_own_epoch(Instant now) { start_epoch(contribution(now), now); }
    // It is the turn of this job; others wait elsewhere.
    void start_turn_of(std::string_view job, Instant now) {
        EpochDemand demand;
        demand.last = contribution(now).last;
        const GroupId group = group_id_of("default{job=" + std::string(job) + "}");
        std::vector<GroupDemand> all{{.tag = next_tag(demand.last, group, 1), .requests = 1}};
        demand.set_groups(all);
        start_epoch(demand, now);
    }
    void lose_epoch(Instant now) { policy().lose_epoch(Error{.code = Errc::kTimedOut}, now); }

    // The job of the next request; "-" if none is given out.
    std::string job_of_next(Instant now) {
        const Policy::Next next = pop(now);
        if (next.request == nullptr) {
            CHECK(next.again == kNever);
            return "-";
        }
        return std::string(next.request->attributes.job);
    }

    EpochGroupsNode node{7};
    EpochGroupsShare share;
    eh::EpochNumber epoch = 0;
};

// Jobs in the order of their turns in a round.
inline std::vector<std::string> jobs_by_turn(std::vector<std::string> jobs) {
    std::ranges::sort(
        jobs, {}, [](const std::string& job) { return group_id_of("default{job=" + job + "}"); });
    return jobs;
}

}  // namespace fopd::lrs::testing

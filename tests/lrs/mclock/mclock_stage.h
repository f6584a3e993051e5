#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lrs/mclock/mclock.h"
#include "tests/catch.h"
#include "tests/lrs/policy_stage.h"

namespace fopd::lrs::testing {

inline constexpr Instant kMclockStart{100s};

// Rules, and the policies of as many localities as are wanted, which share the node's meters. A
// request without data costs one.
class MclockStage : public PolicyStage<Mclock> {
public:
    explicit MclockStage(const std::vector<std::string>& rules, std::size_t locality_count = 1,
                         const Mclock::Options& options = {}) {
        MclockSettings settings;
        settings.rules = rules;
        for (const std::string& rule : rules) {
            const auto parsed = parse_mclock_rule(rule);
            if (!parsed) INFO(to_string(parsed.error()));
            REQUIRE(parsed.has_value());
        }
        const MclockShare share = node.share(settings);
        for (std::size_t i = 0; i < locality_count; ++i) {
            policies.push_back(std::make_unique<Mclock>(share, options));
        }
    }

    MclockNode node{7};
};

// A server that does one request after the other, each in the same time, for jobs that always have
// something waiting while they are there.
class MclockServer {
public:
    MclockServer(MclockStage& stage, std::int64_t per_second)
        : stage_(stage), service_(Duration(1s) / per_second) {}

    // A job of that name has so many requests outstanding from now on.
    void come(const std::string& job, const std::string& size = "0", int depth = 4) {
        there_[job] = true;
        stage_.push_many(depth, "job=" + job + " size=" + size, now_);
    }
    // It asks for no more, and what waits of it is given up.
    void go(const std::string& job) {
        there_[job] = false;
        for (StageRequest& request : stage_.requests) {
            if (request.attributes.job != job || !request.PolicyPlace::linked()) continue;
            stage_.policy().remove(request);
        }
    }
    void set_rate(std::int64_t per_second) { service_ = Duration(1s) / per_second; }

    // What each job was served meanwhile.
    using Counts = std::map<std::string, double>;
    Counts run(Duration span) {
        Counts counts;
        for (const Instant end = now_ + span; now_ < end; now_ += service_) {
            const Policy::Next next = stage_.policy().pop(now_);
            if (next.request == nullptr) {
                ++idle_count;
                continue;
            }
            const std::string job(next.request->attributes.job);
            counts[job] += 1;
            if (there_[job]) stage_.policy().push(*next.request, now_);
        }
        return counts;
    }
    Instant now() const { return now_; }

    std::uint64_t idle_count = 0;  // How often there was nothing to do.

private:
    MclockStage& stage_;
    Duration service_;
    Instant now_ = kMclockStart;
    std::map<std::string, bool> there_;
};

inline bool within(double value, double wanted, double part) {
    return value >= wanted * (1 - part) && value <= wanted * (1 + part);
}

}  // namespace fopd::lrs::testing

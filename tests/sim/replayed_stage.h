#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sim/object_stage.h"
#include "tests/catch.h"
#include "tests/replay.h"
#include "tests/sim/seeds.h"

namespace fopd::sim::testing {

// The log leaves half of it for data.
inline constexpr std::uint64_t kSmallDisk = 16U << 20;

// A stage whose test prints, when it fails, how it comes again.
class ReplayedStage : fopd::testing::Replay, public ObjectStage {
public:
    using Replay::Seed;

    explicit ReplayedStage(std::uint64_t seed, const ObjectStageOptions& options = {},
                           Seed whose = Seed::kOfTest)
        : Replay(seed, whose), ObjectStage(seed, options) {
        if (options.disk_bytes <= kSmallDisk) book().excuse_space();
        if (number_in("FOPD_SEED") && !number_in("FOPD_SWARM_SEEDS")) book().keep_history();
    }

    void must(bool kept) {
        INFO(broken_promise());
        INFO(book().summary());
        INFO(book().history());
        REQUIRE(kept);
    }
    void work(std::uint32_t workers, std::uint32_t count) {
        for (std::uint32_t i = 0; i < workers; ++i) {
            for (std::uint32_t each = 0; each < user_count(); ++each) user(each).work(count);
        }
    }
};

}  // namespace fopd::sim::testing

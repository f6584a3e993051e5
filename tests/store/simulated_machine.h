#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "core/ensure.h"
#include "core/gate.h"
#include "core/random.h"
#include "core/virtual_world.h"
#include "devices/disk_image.h"
#include "devices/memory_disk.h"

namespace fopd::store::testing {

// A machine of the simulated world: a reactor, and the power that its disks share. It lives once;
// the images of its disks outlive it.
class SimulatedMachine {
public:
    // The world outlives it.
    explicit SimulatedMachine(core::VirtualWorld& world)
        : world_(world), reactor_(world.make_reactor()) {}

    core::Reactor& reactor() { return *reactor_; }
    devices::Power& power() { return power_; }
    const devices::Power& power() const { return power_; }

    // A disk that shares the power.
    std::unique_ptr<devices::MemoryDisk> plug_in(devices::DiskImage& image,
                                                 devices::MemoryDiskOptions options) {
        options.power = &power_;
        return std::make_unique<devices::MemoryDisk>(*reactor_, image, options);
    }

    // Ends all coroutines, as the end of a process does. REQUIRES: called before anything that they
    // use is destroyed.
    void drop_coroutines() { reactor_->drop_coroutines(); }

    // Runs `life` until it ends or the power goes at step `cut_at`; 0: never. Calls `observe`, if
    // any, after each step. False when the life hangs.
    bool live(Task<void> life, std::uint64_t cut_at,
              const std::function<void(std::uint64_t step)>& observe = {}) {
        constexpr std::uint64_t kStepsMax = 3'000'000;
        if (cut_at > 0) power_.cut_at(cut_at);
        reactor_->spawn(lives_, watch(std::move(life)));
        for (std::uint64_t step = 0; power_.on() && !ended_; ++step) {
            if (!world_.step() || step > kStepsMax) return false;
            if (observe) observe(step);
        }
        return true;
    }

private:
    Task<void> watch(Task<void> life) {
        co_await std::move(life);
        ended_ = true;
    }

    core::VirtualWorld& world_;
    devices::Power power_;
    std::unique_ptr<core::Reactor> reactor_;
    core::Gate lives_;
    bool ended_ = false;
};

// At which step of a boot its power goes, as the plan says or the luck has it; 0: never. The last
// boot is never cut.
template <typename Plan>
std::uint64_t draw_cut(const Plan& plan, unsigned boot, unsigned boots, core::Random& random) {
    if (plan.orderly || boot + 1 >= boots) return 0;
    const std::uint64_t drawn = 1 + random.below(plan.cut_within);
    return boot == 0 && plan.first_cut > 0 ? plan.first_cut : drawn;
}

}  // namespace fopd::store::testing

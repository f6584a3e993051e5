#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

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

// What a stage has found to be wrong. The first finding counts: others may follow from it.
class Findings {
public:
    void add(std::string what) {
        if (first_.empty()) first_ = std::move(what);
    }
    bool none() const { return first_.empty(); }
    // Empty: nothing was found.
    const std::string& first() const { return first_; }

private:
    std::string first_;
};

// One boot of several.
struct Boot {
    unsigned number = 0;
    bool is_last = false;
    std::uint64_t cut_at = 0;  // The step at which its power goes; 0: never.
};

// What the boots of a machine have in common. All of it outlives them.
struct Boots {
    core::Random& random;
    const Findings& findings;
    std::vector<devices::DiskImage*> images;
    // After one of so many cuts, drawn by chance, only the process ends, and the kernel finishes
    // the I/O in flight. 0: each cut is a loss of power.
    unsigned process_ends_of = 0;
};

// The step of a boot at which its power is cut, as the plan says or drawn by chance. 0: it is not
// cut, as in the last boot.
template <typename Plan>
std::uint64_t draw_cut(const Plan& plan, unsigned boot, core::Random& random) {
    if (plan.orderly || boot + 1 >= plan.boots) return 0;
    const std::uint64_t drawn = 1 + random.below(plan.cut_within);
    return boot == 0 && plan.first_cut > 0 ? plan.first_cut : drawn;
}

// Boots as the plan says until something is wrong, and returns that. `live` runs one life of a
// machine; after it the disks lose what was not flushed.
template <typename Plan, std::invocable<const Boot&> Live>
std::string run_boots(const Plan& plan, const Boots& boots, Live live) {
    core::Random& random = boots.random;
    for (unsigned number = 0; number < plan.boots && boots.findings.none(); ++number) {
        const Boot boot{.number = number,
                        .is_last = number + 1 == plan.boots,
                        .cut_at = draw_cut(plan, number, random)};
        live(boot);
        const bool only_process = boot.cut_at > 0 && boots.process_ends_of > 0 &&
                                  random.below(boots.process_ends_of) == 0;
        for (devices::DiskImage* const image : boots.images) {
            if (only_process) {
                image->settle();
                continue;
            }
            core::Random crash = random.fork();
            image->crash(crash);
        }
    }
    return boots.findings.first();
}

}  // namespace fopd::store::testing

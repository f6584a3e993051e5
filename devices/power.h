#pragma once

#include <coroutine>
#include <cstdint>
#include <functional>
#include <limits>
#include <utility>

namespace fopd::devices {

// The power supply of a machine, its disks and its tape library. Once it is cut, operations in
// flight never end and later ones never begin, so the images do not change any more; the test then
// destroys the machine's coroutines, and crashes the images. A restarted machine gets a new Power.
//
// A step is a moment at which a power cut makes a difference: two for each operation that changes
// an image, one before it has any effect, and one after its full effect but before its completion.
class Power {
public:
    bool on() const { return on_; }
    std::uint64_t steps() const { return steps_; }

    // Cuts the power at step number `step`, counted from 1, and then calls `on_cut`. This is called
    // within a reactor turn, so it must not destroy coroutines.
    void cut_at(std::uint64_t step, std::function<void()> on_cut = {}) {
        cut_at_ = step;
        on_cut_ = std::move(on_cut);
    }
    void cut();
    // Called by power_step(). Cuts the power if this is the step at which it was to be cut.
    void step() {
        if (++steps_ == cut_at_) cut();
    }

private:
    bool on_ = true;
    std::uint64_t steps_ = 0;
    std::uint64_t cut_at_ = std::numeric_limits<std::uint64_t>::max();
    std::function<void()> on_cut_;
};

// A simulated device awaits this after each delay. With the power off, the coroutine is suspended
// and never resumed: the test destroys its frame.
class NeedsPower {
public:
    // Null: never cut.
    explicit NeedsPower(const Power* power) : has_power_(power == nullptr || power->on()) {}

    bool await_ready() const noexcept { return has_power_; }
    void await_suspend(std::coroutine_handle<>) const noexcept {}
    void await_resume() const noexcept {}

private:
    bool has_power_;
};

// A simulated device awaits this at each step. Counts the step; see Power::step().
inline NeedsPower power_step(Power* power) {
    if (power != nullptr && power->on()) power->step();
    return NeedsPower(power);
}

}  // namespace fopd::devices

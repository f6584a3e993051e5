#include <algorithm>
#include <vector>

#include "core/ensure.h"
#include "core/offload.h"
#include "core/virtual_world.h"

namespace fopd::core {

namespace {

constexpr Duration kCallMin = 20us;
constexpr Duration kCallMax = 5ms;

// Models the threads as a number of concurrent calls, each with a duration drawn from the seed.
class VirtualOffload final : public Offload {
public:
    VirtualOffload(VirtualWorld& world, const OffloadOptions& options)
        : world_(world), queue_max_(options.queue_max), threads_busy_until_(options.thread_count) {
        ENSURE(options.thread_count > 0);
    }

    Result<void> grow(unsigned thread_count) override {
        if (thread_count > threads_busy_until_.size()) threads_busy_until_.resize(thread_count);
        return {};
    }

    bool submit(Job& job) override {
        const Instant now = world_.now();
        std::erase_if(starts_, [now](Instant start) { return start <= now; });
        if (starts_.size() >= queue_max_) return false;
        Instant& thread = *std::ranges::min_element(threads_busy_until_);
        const Instant start = std::max(thread, now);
        if (start > now) starts_.push_back(start);
        thread = start + Duration{world_.random().between(kCallMin.count(), kCallMax.count())};
        job.run(job);
        job.home.arm(job.delay, thread);
        return true;
    }

private:
    VirtualWorld& world_;
    const std::size_t queue_max_;
    std::vector<Instant> threads_busy_until_;
    std::vector<Instant> starts_;  // The start times of the queued calls.
};

}  // namespace

std::unique_ptr<Offload> make_virtual_offload(VirtualWorld& world, OffloadOptions options) {
    return std::make_unique<VirtualOffload>(world, options);
}

}  // namespace fopd::core

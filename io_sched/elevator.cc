#include "io_sched/elevator.h"

#include <tuple>
#include <utility>
#include <vector>

#include "io_sched/order.h"
#include "io_sched/per_device_scheduler.h"
#include "io_sched/settings.h"

namespace fopd::io_sched {

namespace {

// How many requests go in the order of the sweep between two that go because of their age.
constexpr std::uint32_t kBatch = 16;

// Requests by offset, the lowest first; equal ones by age. A request knows its index, so that any
// can be removed. Allocates only when it grows beyond its largest size so far.
class OffsetHeap {
public:
    explicit OffsetHeap(std::uint16_t number) : number_(number) {}

    bool empty() const { return heap_.empty(); }
    IoRequest* lowest() const { return heap_.empty() ? nullptr : heap_.front().request; }

    void push(IoRequest& request) {
        request.queue_state.heap_number = number_;
        heap_.push_back({.offset = request.parts[request.queue_state.part].offset,
                         .arrival = request.arrival(),
                         .request = &request});
        rise(heap_.size() - 1);
    }

    void remove(IoRequest& request) {
        const std::size_t gap =
            std::exchange(request.queue_state.heap, IoRequest::QueueState::kNone);
        ENSURE(gap < heap_.size());
        ENSURE(heap_[gap].request == &request);
        const HeapEntry last = heap_.back();
        heap_.pop_back();
        if (gap == heap_.size()) return;
        put(gap, last);
        sink(gap);
        rise(last.request->queue_state.heap);
    }

private:
    struct HeapEntry {
        std::uint64_t offset;
        std::uint64_t arrival;
        IoRequest* request;

        bool operator<(const HeapEntry& other) const {
            return std::tie(offset, arrival) < std::tie(other.offset, other.arrival);
        }
    };

    void put(std::size_t index, const HeapEntry& entry) {
        heap_[index] = entry;
        entry.request->queue_state.heap = static_cast<std::uint32_t>(index);
    }
    void rise(std::size_t index) {
        const HeapEntry entry = heap_[index];
        for (std::size_t above = (index - 1) / 2; index > 0 && entry < heap_[above];
             above = (index - 1) / 2) {
            put(index, heap_[above]);
            index = above;
        }
        put(index, entry);
    }
    void sink(std::size_t index) {
        const HeapEntry entry = heap_[index];
        for (std::size_t below = 2 * index + 1; below < heap_.size(); below = 2 * index + 1) {
            if (below + 1 < heap_.size() && heap_[below + 1] < heap_[below]) ++below;
            if (!(heap_[below] < entry)) break;
            put(index, heap_[below]);
            index = below;
        }
        put(index, entry);
    }

    const std::uint16_t number_;
    std::vector<HeapEntry> heap_;
};

class Elevator final : public Order {
public:
    explicit Elevator(Duration max_wait) : max_wait_(max_wait) {}

    void push(IoRequest& request) override {
        ages_.push(request);
        const bool ahead = request.parts[request.queue_state.part].offset >= position_;
        heaps_[ahead ? sweep_ : 1U - sweep_].push(request);
    }

    IoRequest* next(Instant now) override {
        IoRequest* const oldest = ages_.oldest();
        if (oldest == nullptr) return nullptr;
        const bool overdue = now - oldest->arrived_at() > max_wait_;
        return overdue && since_aged_ >= kBatch ? oldest : next_of_sweep();
    }

    void take(IoRequest& request) override {
        const bool in_sweep = &request == next_of_sweep();
        if (in_sweep && request.queue_state.heap_number != sweep_) sweep_ = 1U - sweep_;
        remove(request);
        if (!in_sweep) {
            // The sweep continues from its position.
            since_aged_ = 0;
            return;
        }
        if (since_aged_ < kBatch) ++since_aged_;
        const IoPart& part = request.parts[request.queue_state.part];
        position_ = part.offset + part.size_bytes;
    }

    void remove(IoRequest& request) override {
        AgeList::remove(request);
        heaps_[request.queue_state.heap_number].remove(request);
    }

    IoRequest* oldest() override { return ages_.oldest(); }

private:
    IoRequest* next_of_sweep() const {
        const OffsetHeap& ahead = heaps_[sweep_];
        return ahead.empty() ? heaps_[1U - sweep_].lowest() : ahead.lowest();
    }

    const Duration max_wait_;
    AgeList ages_;
    // One heap has the requests ahead of the position, the other those that this sweep has passed.
    OffsetHeap heaps_[2] = {OffsetHeap(0), OffsetHeap(1)};
    std::uint32_t sweep_ = 0;
    std::uint64_t position_ = 0;
    std::uint32_t since_aged_ = kBatch;
};

}  // namespace

std::unique_ptr<IoScheduler> make_elevator(const IoSchedSettings& settings) {
    return std::make_unique<PerDeviceScheduler>(
        [max_wait = settings.elevator_max_wait] { return std::make_unique<Elevator>(max_wait); });
}

}  // namespace fopd::io_sched

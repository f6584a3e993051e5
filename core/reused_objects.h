#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "core/freed_memory.h"
#include "core/reactor.h"
#include "core/time.h"
#include "core/timer_heap.h"

namespace fopd::core {

// Base class of the objects of a ReusedObjects.
class ReusedObject {
private:
    template <typename T, void (*kReturnMemory)()>
    friend class ReusedObjects;
    std::size_t index_ = 0;  // In the list of all objects.
};

// A pool of objects: makes one when none is free, and reuses the object that was given back last.
// Objects that only a burst has needed are destroyed when they were free for a whole period: a few
// in each turn, so that other work of the reactor gets its turn. An object is never destroyed
// within a call of its user, so the user may still read an object that it has given back in the
// same turn.
//
// Lives on its reactor, which outlives it. `kReturnMemory` gives freed memory back to the kernel;
// it is called after each few thousand objects, as it takes long for much memory.
template <typename T, void (*kReturnMemory)() = &return_freed_memory>
class ReusedObjects final : Timer {
public:
    // The number of free objects that are always kept.
    static constexpr std::size_t kKept = 1024;
    static constexpr Duration kPeriod = 10s;
    static constexpr std::size_t kDestroyedPerStep = 1024;
    static constexpr Duration kStepPause = 10ms;
    // After so many destroyed objects their memory is returned. Fewer that were destroyed in a
    // period leave it to the allocator.
    static constexpr std::size_t kWorthReturning = 4096;

    explicit ReusedObjects(Reactor& reactor) : Timer(&on_time), reactor_(reactor) {}

    // The arguments are those of the constructor, for an object that has to be made.
    template <typename... Arguments>
    T& take(Arguments&&... arguments) {
        if (free_.empty()) return make(std::forward<Arguments>(arguments)...);
        T& object = *free_.back();
        free_.pop_back();
        unneeded_ = std::min(unneeded_, free_.size());
        return object;
    }
    void give_back(T& object) { free_.push_back(&object); }

    std::size_t free_count() const { return free_.size(); }
    // All objects, whether they are free or not.
    const std::vector<std::unique_ptr<T>>& all() const { return all_; }

private:
    template <typename... Arguments>
    T& make(Arguments&&... arguments) {
        T& made = *all_.emplace_back(std::make_unique<T>(std::forward<Arguments>(arguments)...));
        index_of(made) = all_.size() - 1;
        unneeded_ = 0;
        if (all_.size() > kKept && !armed()) reactor_.arm(*this, after(reactor_.now(), kPeriod));
        return made;
    }
    static std::size_t& index_of(T& object) { return static_cast<ReusedObject&>(object).index_; }

    static void on_time(Timer& timer) {
        auto& self = static_cast<ReusedObjects&>(timer);
        if (self.spare_ == 0) self.end_period();
        self.destroy_some();
        if (self.all_.size() <= kKept) return;
        self.reactor_.arm(self, after(self.reactor_.now(), self.spare_ > 0 ? kStepPause : kPeriod));
    }
    void end_period() {
        spare_ = unneeded_ - std::min(unneeded_, kKept);
        unneeded_ = free_.size();
    }
    void destroy_some() {
        // Some may have been taken since the period ended.
        spare_ = std::min(spare_, free_.size() - std::min(free_.size(), kKept));
        for (std::size_t i = 0; i < kDestroyedPerStep && spare_ > 0; ++i) {
            T& object = *free_.back();
            free_.pop_back();
            destroy(object);
            --spare_;
            ++destroyed_;
        }
        unneeded_ = std::min(unneeded_, free_.size());
        const bool is_last = spare_ == 0;
        const bool is_worth = destroyed_ >= kWorthReturning;
        is_returning_ |= is_worth;
        if (is_last && is_returning_) {
            free_.shrink_to_fit();
            all_.shrink_to_fit();
        }
        if (is_worth || (is_last && is_returning_)) {
            destroyed_ = 0;
            kReturnMemory();
        }
        if (!is_last) return;
        destroyed_ = 0;
        is_returning_ = false;
    }
    void destroy(T& object) {
        const std::size_t index = index_of(object);
        std::swap(all_[index], all_.back());
        index_of(*all_[index]) = index;
        all_.pop_back();
    }

    Reactor& reactor_;
    std::vector<std::unique_ptr<T>> all_;
    std::vector<T*> free_;
    std::size_t unneeded_ = 0;   // The smallest number of free objects since the period began.
    std::size_t spare_ = 0;      // How many objects are still to be destroyed.
    std::size_t destroyed_ = 0;  // How many were, since memory was returned or a period ended.
    bool is_returning_ = false;  // Memory was returned since the period ended.
};

}  // namespace fopd::core

#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "core/reactor.h"
#include "core/time.h"
#include "objects/block_io.h"
#include "reqh/phase.h"
#include "store/fid.h"
#include "store/object_map.h"

namespace fopd::reqh {

enum class WaitsFor : std::uint8_t {
    kNothing,
    kTurn,
    kLimit,
    kBuffer,
    kSameRequest,
    kName,
    kLock,
    kClientSends,
    kClientTakes,
    kLogRoom,
    kSpace,
    kDisk,
    kLog,
    kLocality,
    kTape,
    kCount,  // Not a reason: the number of reasons.
};
inline constexpr std::size_t kWaitsForCount = static_cast<std::size_t>(WaitsFor::kCount);

struct Wait {
    WaitsFor what = WaitsFor::kNothing;
    // The object whose lock the fop waits for.
    store::Fid object{};
    store::BlockRange blocks{};

    bool is_for_client() const {
        return what == WaitsFor::kClientSends || what == WaitsFor::kClientTakes;
    }
    // Whether the fop waits for another one, which holds a name or a lock, or is the same request.
    bool is_for_other_fop() const {
        return what == WaitsFor::kName || what == WaitsFor::kLock || what == WaitsFor::kSameRequest;
    }
    // Whether the fop waits for an operation of a disk, or for one of its log.
    bool is_for_disk() const { return what == WaitsFor::kDisk || what == WaitsFor::kLog; }
    // Whether the fop waits for tape drives. Such a wait has no usual length.
    bool is_for_tape() const { return what == WaitsFor::kTape; }
};

// "a lock of object 0003…, blocks 0 to 7", "data from the client"; empty for kNothing.
std::string to_text(const Wait& wait);

// The phase of a fop, and the reason for which it waits. Written by the locality that executes it
// at the moment; any thread may read it, so that the fop's own locality can report it while it runs
// on another.
class Progress final : public objects::DiskWaitObserver {
public:
    struct Now {
        Phase phase = Phase::kQueued;
        Instant since{};  // In the phase.
        Wait wait{};
        Instant waits_since{};
    };
    struct Longest {
        Wait wait{};
        Duration span{};
    };

    // REQUIRES: no concurrent reads.
    void begin(Instant now);
    void enter(Phase phase, Instant now);
    // Empty: it is being written at this moment.
    std::optional<Now> read() const;
    // The longest completed wait after the fop's turn has come. Only where the fop runs, or after
    // it has ended.
    const Longest& longest() const { return longest_; }
    // The sum of all completed waits for `what`. Only where the fop runs, or after it has ended.
    Duration waited_for(WaitsFor what) const { return sums_[static_cast<std::size_t>(what)]; }

    // A wait that ends on another locality than it begins on. At most one wait at a time.
    void begin_wait(const Wait& wait, Instant now);
    void end_wait(Instant now);

    void disk_wait_begins(Instant now) override { begin_wait({.what = WaitsFor::kDisk}, now); }
    void disk_wait_ends(Instant now) override { end_wait(now); }

private:
    void set_wait(const Wait& wait, Instant now);
    void begin_write() { turn_.fetch_add(1, std::memory_order_acq_rel); }
    void end_write() { turn_.fetch_add(1, std::memory_order_release); }

    // Odd while it is being written; a reader compares it before and after.
    std::atomic<std::uint32_t> turn_ = 0;
    std::atomic<Phase> phase_ = Phase::kQueued;
    std::atomic<std::int64_t> since_ns_ = 0;
    std::atomic<WaitsFor> what_ = WaitsFor::kNothing;
    std::atomic<std::int64_t> waits_since_ns_ = 0;
    std::atomic<std::uint64_t> object_high_ = 0;
    std::atomic<std::uint64_t> object_low_ = 0;
    std::atomic<std::uint64_t> first_ = 0;
    std::atomic<std::uint64_t> count_ = 0;
    Wait wait_{};
    Instant wait_began_{};
    Longest longest_;
    std::array<Duration, kWaitsForCount> sums_{};
};

// Marks a fop as waiting during its own lifetime.
class Waiting {
public:
    Waiting(Progress& progress, core::Reactor& reactor, const Wait& wait)
        : progress_(progress), reactor_(reactor) {
        progress_.begin_wait(wait, reactor.now());
    }
    ~Waiting() { progress_.end_wait(reactor_.now()); }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

private:
    Progress& progress_;
    core::Reactor& reactor_;
};

}  // namespace fopd::reqh

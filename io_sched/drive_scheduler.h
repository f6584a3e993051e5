#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "core/intrusive_list.h"
#include "io_sched/io_media.h"
#include "io_sched/io_scheduler.h"
#include "io_sched/order.h"

namespace fopd::io_sched {

// A scheduler for drives, which change their media. It has a queue for each medium, and a queue for
// each collection for writes that may go to any medium of a pool. A subclass decides which queue is
// served next, and in which order.
//
// A request waits with one of its parts at a time. A read that several cartridges can serve waits
// for the one that is loaded, otherwise for the one for which most requests wait. A write to
// several cartridges gets all its drives at once, or none.
//
// Requests that failed on a drive have a queue of their own. They go to another drive if one is up,
// which takes the cartridge from the first drive. Requests for a cartridge in a drive that is down
// are handled in the same way.
//
// After a search that found nothing to start, the next search waits until a drive, a medium or a
// request has changed, or the time has come at which a request may start.
class DriveScheduler : public IoScheduler {
public:
    // `media` outlives it.
    explicit DriveScheduler(const IoMedia& media) : media_(media) {}

    void push_request(IoRequest& request) final;
    IoRequest* peek_request(Instant now) final;
    Result<std::optional<DeviceMedium>> get_device_medium_pair(IoRequest& request,
                                                               Instant now) final;
    void requeue(IoRequest& request) final;
    void remove_request(IoRequest& request) final;
    // Tries the request on another drive. If that fails too, tries a read with another medium.
    bool retry(IoRequest& request, IoPart& part, const IoDevice& device) final;
    Instant next_time(Instant now) const final;

    void add_device(IoDevice& device) final;
    void remove_device(IoDevice& device) final;
    // With kTake it returns an idle drive: one without a cartridge, otherwise the drive whose
    // cartridge has the fewest waiting requests.
    IoDevice* reclaim_device(const Reclaim& what) final;
    IoDevice* wanted_device() const final;
    bool has_device(const IoDevice& device) const final;
    std::size_t device_count() const final { return drives_.size(); }

protected:
    struct QueueKey {
        MediumId medium{};
        // The next three are set for writes with kAnyMedium only.
        std::uint32_t pool = 0;
        std::uint32_t copies = 0;
        std::uint64_t collection = 0;
        std::uint8_t failed_on = 0;  // The drive on which the requests failed; 0: none.

        auto operator<=>(const QueueKey&) const = default;
    };
    // The rank of a request by its priority, then by its urgency. A lower level goes first.
    using Level = std::uint16_t;
    struct OfLevel {
        AgeList waiting;        // Without those that are planned.
        std::size_t count = 0;  // All requests of the level.
    };
    struct Queue {
        QueueKey key;
        // Each has requests.
        std::map<Level, OfLevel> levels;
        // The requests whose order was planned, and what a subclass notes of the plan.
        core::IntrusiveList<OrderPlace> planned;
        std::size_t planned_count = 0;
        Level planned_level = 0;    // The first level at the time of the plan.
        bool is_late_plan = false;  // Some had waited for too long at that time.
        // How many requests of the first level in a row were taken while others waited.
        std::uint32_t first_run = 0;
        std::size_t count = 0;  // All requests of the queue.
        std::uint64_t bytes = 0;
        // The arrival of the oldest request, or of one that was planned with it.
        std::uint64_t oldest = 0;
        Instant oldest_at{};
    };
    // The drive that a part of a request gets.
    struct PartDrive {
        IoDevice* drive = nullptr;
        std::size_t part = 0;
        MediumId medium{};
        IoDevice* from = nullptr;  // As in DeviceMedium.
    };
    using PartDrives = std::vector<PartDrive>;
    // A request, and the drives that it gets.
    struct Choice {
        IoRequest* request = nullptr;
        PartDrives drives{};
    };
    // The queues by the age of their oldest request.
    using ByAge = std::set<std::pair<std::uint64_t, Queue*>>;

    // The next request that can be started. If there is none: when to ask again, if nothing but the
    // time changes until then.
    struct Answer {
        Choice choice{};
        Instant again = kNever;
    };
    virtual Answer choose(Instant now) = 0;
    // Whether requests of different collections have queues of their own.
    virtual bool by_collection() const { return false; }
    // The rank of a drive: the drive with the lowest rank gets another cartridge first. Nothing:
    // the drive must keep its cartridge.
    virtual std::optional<std::uint64_t> eviction_rank(const IoDevice& drive, Instant now) const;

    // A loaded cartridge serves at least so many parts, even while requests for other cartridges
    // have waited for too long.
    static constexpr std::uint32_t kBatch = 16;
    // Whether the drive has served kBatch parts for its present cartridge.
    bool had_batch(const IoDevice& drive) const;

    const IoMedia& media() const { return media_; }
    const std::vector<IoDevice*>& drives() const { return drives_; }
    const ByAge& queues() const { return by_age_; }
    Queue* find_queue(const QueueKey& key) const;
    Queue* queue_of(MediumId medium) const { return find_queue({.medium = medium}); }
    // The requests that wait for the medium of the drive and can be served there.
    Queue* queue_for(const IoDevice& drive) const;
    // Whether the requests of the queue must not go to this drive, because they failed there and
    // another drive is up.
    bool avoids(Queue& queue, const IoDevice& drive) const;
    static Level level_of(const IoRequest& request);
    // The oldest request of the first level that has any without a plan; after some of these, the
    // oldest of all levels.
    static IoRequest* oldest_of(Queue& queue);
    static IoRequest* any_of(Queue& queue);
    static void collect(Queue& queue, std::vector<IoRequest*>& requests);
    void reindex(Queue& queue);

    // The drives to which the request, which waits in the queue, can go now; empty: none.
    PartDrives choose_drives(const IoRequest& request, Instant now) const;
    // The drive for a part on that medium; null: none now.
    IoDevice* drive_for(const IoRequest& request, const IoPart& part, const IoMedium& medium,
                        Instant now, const PartDrives& used) const;
    // The drive and the cartridge for a part of a write that may go to any cartridge of its pool.
    virtual PartDrive choose_for_write(const IoRequest& request, std::size_t part, Instant now,
                                       const PartDrives& used) const;
    static bool has_space(const IoMedium& medium, const IoRequest& request, const IoPart& part);
    // Whether a drive keeps the medium, so that no other drive can get it now.
    bool is_kept(MediumId medium) const;
    static bool uses(const PartDrives& chosen, const IoDevice& drive);
    static bool uses(const PartDrives& chosen, MediumId medium);

private:
    // The requests that a drive was given in a row for one cartridge.
    struct Given {
        MediumId medium{};
        std::uint32_t count = 0;
    };

    void note_given(const IoDevice& drive, MediumId medium);
    static void note_taken(Queue& queue, const IoRequest& request);
    bool possible(const IoRequest& request, const IoPart& part) const;
    bool has_drive_up(const IoRequest& request, const IoPart& part) const;
    bool avoids(const IoPart& part, const IoMedium& medium, IoType type,
                const IoDevice& drive) const;
    Error why_impossible(const IoRequest& request) const;
    std::size_t best_part(const IoRequest& request) const;
    QueueKey key_of(const IoRequest& request, std::size_t part) const;
    void enter(IoRequest& request);
    void leave(IoRequest& request);
    void find_lost();
    std::uint64_t fingerprint() const;

    const IoMedia& media_;
    std::vector<IoDevice*> drives_;
    std::map<QueueKey, std::unique_ptr<Queue>> queues_;
    ByAge by_age_;
    // Requests without a medium or a drive, by age.
    std::set<std::pair<std::uint64_t, IoRequest*>> lost_;
    std::uint64_t lost_version_ = 0;
    std::map<std::uint8_t, Given> given_;  // By the drive's number.
    Choice peeked_;
    std::uint64_t changes_ = 0;  // Of the waiting requests.
    // After a search that found nothing to start: its fingerprint(), and the time until which that
    // holds.
    std::uint64_t nothing_for_ = 0;
    Instant nothing_until_ = kNever;
};

}  // namespace fopd::io_sched

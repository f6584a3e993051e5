#pragma once

#include <array>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/buffer_pool.h"
#include "core/io.h"
#include "core/reactor.h"
#include "core/result.h"
#include "fop/range.h"
#include "io_sched/disk.h"
#include "io_sched/main_scheduler.h"

namespace fopd::objects {

inline constexpr std::size_t kBlock = fop::kBlockBytes;
// The checksum of a block of zeros, as a hole reads.
std::uint32_t zero_block_checksum();
// The blocks that fit into one buffer.
inline constexpr std::uint32_t kBufferBlocks = core::kBufferBytes / kBlock;

// Notified when a wait for the disk begins and ends, so that lists of running fops can show it. An
// interface, because reqh::Progress implements it and this folder does not know reqh/.
class DiskWaitObserver {
public:
    virtual void disk_wait_begins(Instant now) = 0;
    virtual void disk_wait_ends(Instant now) = 0;

protected:
    ~DiskWaitObserver() = default;
};

// Issues several reads or writes of a disk at a time, and waits for all of them. Belongs to one
// operation; must not move while requests are in flight. May be used again after the wait.
class BlockIo {
public:
    static constexpr std::size_t kRequestsMax = 16;

    BlockIo();
    BlockIo(const BlockIo&) = delete;
    BlockIo& operator=(const BlockIo&) = delete;

    struct Disk {
        core::Reactor* reactor = nullptr;
        io_sched::MainScheduler* scheduler = nullptr;
        io_sched::MediumId medium{};
        io_sched::IoPriority priority = io_sched::IoPriority::kForeground;
    };
    // Selects the disk of all further requests. REQUIRES: no request is in flight.
    void use(const Disk& disk) { disk_ = disk; }

    // Null: no observer. The observer outlives the waits.
    void set_observer(DiskWaitObserver* observer) { observer_ = observer; }

    // No further request may be added before the next wait().
    bool full() const { return count_ == kRequestsMax; }
    // Transfer whole blocks, from or to block number `block` of the disk. REQUIRES: not full.
    // wait() reports failures.
    void read(core::Buffer into, std::uint64_t block, core::WaitOptions wait);
    void write(core::Buffer from, std::uint64_t block, core::WaitOptions wait);

    class Awaiter;
    // Result<void>: the first failure, in the order of the requests.
    Awaiter wait();

    // The total wait for the disk since the last call; for concurrent requests, the longest wait
    // counts.
    Duration take_waited() { return std::exchange(waited_, Duration::zero()); }

private:
    class Request final : public io_sched::DiskRequest {
    public:
        Request() : DiskRequest(&on_complete) {}
        BlockIo* owner = nullptr;
        core::Buffer buffer{};
        io_sched::IoPart part{};
    };

    static void on_complete(io_sched::IoRequest& request);
    void push(io_sched::IoType type, core::Buffer buffer, std::uint64_t block,
              core::WaitOptions wait);

    Disk disk_;
    std::array<Request, kRequestsMax> requests_;
    std::size_t count_ = 0;
    std::size_t running_ = 0;
    Duration waited_{};
    std::coroutine_handle<> waiter_;
    DiskWaitObserver* observer_ = nullptr;
};

// Used by co_await only.
class BlockIo::Awaiter {
public:
    explicit Awaiter(BlockIo& io) : io_(io) {}
    ~Awaiter() { end_wait(); }
    Awaiter(const Awaiter&) = delete;
    Awaiter& operator=(const Awaiter&) = delete;
    bool await_ready() const { return io_.running_ == 0; }
    void await_suspend(std::coroutine_handle<> handle);
    [[nodiscard]] Result<void> await_resume();

private:
    void end_wait();

    BlockIo& io_;
    DiskWaitObserver* told_ = nullptr;
};

inline BlockIo::Awaiter BlockIo::wait() {
    return Awaiter(*this);
}

}  // namespace fopd::objects

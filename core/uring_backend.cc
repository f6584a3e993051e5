#include "core/uring_backend.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <thread>
#include <vector>

#include <liburing.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/ensure.h"
#include "core/io_at_once.h"

namespace fopd::core {

namespace {

// Without these, liburing puts its own time-outs into the ring, or completions may be lost.
constexpr unsigned kFeaturesNeeded = IORING_FEAT_EXT_ARG | IORING_FEAT_NODROP;
constexpr std::uint64_t kIgnored = 0;  // user_data of submissions whose completion is ignored.

struct Opcode {
    std::uint8_t plain;
    std::uint8_t in_region;  // The opcode with a registered buffer.
    std::uint32_t flags;
};
// In the order of IoCode.
constexpr std::array kOpcodes{
    Opcode{.plain = IORING_OP_NOP, .in_region = IORING_OP_NOP, .flags = 0},
    Opcode{.plain = IORING_OP_READ, .in_region = IORING_OP_READ_FIXED, .flags = 0},
    Opcode{.plain = IORING_OP_WRITE, .in_region = IORING_OP_WRITE_FIXED, .flags = 0},
    Opcode{.plain = IORING_OP_WRITEV, .in_region = IORING_OP_WRITEV, .flags = 0},
    Opcode{.plain = IORING_OP_FSYNC, .in_region = IORING_OP_FSYNC, .flags = 0},
    Opcode{.plain = IORING_OP_FSYNC, .in_region = IORING_OP_FSYNC, .flags = IORING_FSYNC_DATASYNC},
    Opcode{.plain = IORING_OP_POLL_ADD, .in_region = IORING_OP_POLL_ADD, .flags = 0},
};
static_assert(kOpcodes.size() == static_cast<std::size_t>(IoCode::kPoll) + 1);
// The kernel expects the poll events in little-endian order.
static_assert(std::endian::native == std::endian::little);

// Assigns the entries of one of the ring's tables.
class TableEntries {
public:
    void resize(std::uint32_t count) {
        for (std::uint32_t i = count; i > 0; --i) free_.push_back(static_cast<std::int32_t>(i - 1));
    }
    std::int32_t take() {
        if (free_.empty()) return -1;
        const std::int32_t entry = free_.back();
        free_.pop_back();
        return entry;
    }
    void give_back(std::int32_t entry) { free_.push_back(entry); }

private:
    std::vector<std::int32_t> free_;
};

class UringBackend final : public Backend {
public:
    UringBackend(const Clock& clock, io_uring ring, int wake_fd, bool disabled)
        : clock_(clock), ring_(ring), wake_fd_(wake_fd), disabled_(disabled) {}

    ~UringBackend() override {
        // A ring descriptor is registered per thread, and liburing unregisters it by its number
        // alone: on another thread, that may be the number of a ring in use. The kernel refuses the
        // invalid number set here.
        if (enabled_by_ != std::this_thread::get_id()) ring_.enter_ring_fd = -1;
        io_uring_queue_exit(&ring_);
        ::close(wake_fd_);
    }

    const char* name() const override { return "io_uring"; }
    Instant now() override { return clock_.now(); }

    void make_tables(const UringOptions& options, EventSink& events) {
        if (const int failed = io_uring_register_files_sparse(&ring_, options.file_entries);
            failed == 0) {
            file_entries_.resize(options.file_entries);
        } else {
            emit(events, Level::kInfo, "reactor.without_fixed_files",
                 {{"reason", std::string_view(std::strerror(-failed))}});
        }
        if (const int failed = io_uring_register_buffers_sparse(&ring_, options.region_entries);
            failed == 0) {
            region_entries_.resize(options.region_entries);
        } else {
            emit(events, Level::kInfo, "reactor.without_registered_buffers",
                 {{"reason", std::string_view(std::strerror(-failed))}});
        }
    }

    void submit(IoOp& op) override {
        if (op.file.in_memory) {
            carry_out_at_once(op);
            done_.push_back(&op);
            return;
        }
        // Operations that are queued already go first.
        io_uring_sqe* sqe = waiting_head_ == nullptr ? io_uring_get_sqe(&ring_) : nullptr;
        if (sqe == nullptr) [[unlikely]]
            sqe = next_sqe();
        if (sqe == nullptr) [[unlikely]] {
            op.next = nullptr;
            (waiting_tail_ == nullptr ? waiting_head_ : waiting_tail_->next) = &op;
            waiting_tail_ = &op;
            return;
        }
        prepare(*sqe, op);
        // The kernel runs a flush on a thread: it can begin while this turn continues.
        if (op.code == IoCode::kSyncData && !disabled_) io_uring_submit(&ring_);
    }

    void cancel(IoOp& op) override {
        if (!op.in_flight) return;
        if (remove_waiting(op)) {
            op.result = -ECANCELED;
            done_.push_back(&op);
            return;
        }
        cancel_requests_.push_back(&op);
    }

    void abandon(IoOp& op) override {
        // The kernel may still write to the buffer: the owner of the frame must wait for the
        // completion first.
        ENSURE(!op.in_flight);
    }

    void wait(Instant until) override {
        enable();
        refill();
        const bool block = done_.empty() && until > Instant::min();
        if (block) {
            // If the submission queue has no room for everything, waits only briefly: submitting
            // empties it.
            const bool complete =
                arm_wake() && waiting_head_ == nullptr && cancel_requests_.empty();
            wait_in_kernel(complete ? until : std::min(until, clock_.now() + 1ms));
        } else if (io_uring_sq_ready(&ring_) > 0 || kernel_has_work()) {
            submit_and_look();
        }
        reap();
    }

    bool has_completions() override {
        return !done_.empty() || io_uring_cq_ready(&ring_) > 0 || kernel_has_work();
    }

    void wake() override {
        const std::uint64_t one = 1;
        // Fails only if the counter is full; the reactor is awake already in that case.
        [[maybe_unused]] const auto written = ::write(wake_fd_, &one, sizeof one);
    }

    Result<File> attach(int fd) override {
        // The kernel would use a thread of its own for each read of such a file, at the cost of two
        // wake-ups.
        if (is_in_memory(fd)) return File{.fd = fd, .in_memory = true};
        const std::int32_t entry = file_entries_.take();
        if (entry < 0) return File{.fd = fd};
        const int done =
            io_uring_register_files_update(&ring_, static_cast<unsigned>(entry), &fd, 1);
        if (done == 1) return File{.fd = fd, .entry = entry};
        file_entries_.give_back(entry);
        return std::unexpected(os_error(done < 0 ? -done : EIO, "register file"));
    }

    void detach(const File& file) override {
        if (file.entry < 0) return;
        const int none = -1;
        io_uring_register_files_update(&ring_, static_cast<unsigned>(file.entry), &none, 1);
        file_entries_.give_back(file.entry);
    }

    Result<Buffer> attach_region(std::span<std::byte> memory) override {
        const std::int32_t entry = region_entries_.take();
        if (entry < 0) {
            return std::unexpected(Error{.code = Errc::kNoSpace, .context = "register buffers"});
        }
        const iovec region{.iov_base = memory.data(), .iov_len = memory.size()};
        const int done = update_region(entry, region);
        if (done == 1) {
            return Buffer{.data = memory.data(), .size_bytes = memory.size(), .region = entry};
        }
        region_entries_.give_back(entry);
        return std::unexpected(os_error(done < 0 ? -done : EIO, "register buffers"));
    }

    void detach_region(const Buffer& region) override {
        if (region.region < 0) return;
        update_region(region.region, iovec{.iov_base = nullptr, .iov_len = 0});
        region_entries_.give_back(region.region);
    }

private:
    int update_region(std::int32_t entry, const iovec& region) {
        const __u64 tag = 0;
        return io_uring_register_buffers_update_tag(&ring_, static_cast<unsigned>(entry), &region,
                                                    &tag, 1);
    }

    // The thread of the first wait becomes the ring's owner.
    void enable() {
        if (!disabled_) return;
        // Not io_uring_enable_rings(): the shared liburing 2.3 declares but does not export it.
        const long enabled = ::syscall(SYS_io_uring_register, ring_.ring_fd,
                                       IORING_REGISTER_ENABLE_RINGS, nullptr, 0);
        ENSURE(enabled == 0);
        disabled_ = false;
        enabled_by_ = std::this_thread::get_id();
        io_uring_register_ring_fd(&ring_);  // Saves a look-up in each enter; optional.
    }

    io_uring_sqe* next_sqe() {
        if (waiting_head_ != nullptr) return nullptr;
        return sqe_or_flush();
    }

    io_uring_sqe* sqe_or_flush() {
        io_uring_sqe* sqe = io_uring_get_sqe(&ring_);
        if (sqe != nullptr || disabled_) return sqe;
        io_uring_submit(&ring_);
        if ((ring_.flags & IORING_SETUP_SQPOLL) != 0) io_uring_sqring_wait(&ring_);
        return io_uring_get_sqe(&ring_);
    }

    // Prepares operations that found no free entry before, and cancellations.
    void refill() {
        while (waiting_head_ != nullptr) {
            io_uring_sqe* const sqe = sqe_or_flush();
            if (sqe == nullptr) return;
            IoOp& op = *waiting_head_;
            waiting_head_ = op.next;
            if (waiting_head_ == nullptr) waiting_tail_ = nullptr;
            prepare(*sqe, op);
        }
        while (!cancel_requests_.empty()) {
            io_uring_sqe* const sqe = sqe_or_flush();
            if (sqe == nullptr) return;
            io_uring_prep_cancel64(sqe, reinterpret_cast<std::uint64_t>(cancel_requests_.back()),
                                   0);
            io_uring_sqe_set_data64(sqe, kIgnored);
            cancel_requests_.pop_back();
        }
    }

    // No branches per operation: fields that an operation does not use are zero.
    static void prepare(io_uring_sqe& sqe, IoOp& op) {
        const Opcode& opcode = kOpcodes[static_cast<std::size_t>(op.code)];
        const bool fixed_file = op.file.entry >= 0;
        const bool fixed_buffer = op.buffer.region >= 0;
        io_uring_prep_rw(fixed_buffer ? opcode.in_region : opcode.plain, &sqe,
                         fixed_file ? op.file.entry : op.file.fd, op.buffer.data,
                         static_cast<unsigned>(std::min(op.buffer.size_bytes, kIoBytesMax)),
                         op.offset);
        sqe.flags = fixed_file ? IOSQE_FIXED_FILE : 0;
        sqe.buf_index = static_cast<std::uint16_t>(fixed_buffer ? op.buffer.region : 0);
        // One word, which each operation interprets in its own way.
        sqe.poll32_events = opcode.flags | op.poll_events;
        sqe.user_data = reinterpret_cast<std::uint64_t>(&op);
    }

    // Whenever the reactor sleeps, a read of the wake-up counter is pending in the kernel.
    bool arm_wake() {
        if (wake_armed_) return true;
        io_uring_sqe* const sqe = sqe_or_flush();
        if (sqe == nullptr) return false;
        io_uring_prep_read(sqe, wake_fd_, &wake_count_, sizeof wake_count_, 0);
        io_uring_sqe_set_data(sqe, &wake_count_);
        wake_armed_ = true;
        return true;
    }

    void wait_in_kernel(Instant until) {
        io_uring_cqe* first = nullptr;
        if (until == kNever) {
            io_uring_submit_and_wait(&ring_, 1);
            return;
        }
        const Duration left = until - clock_.now();
        if (left.count() <= 0) {
            submit_and_look();
            return;
        }
        __kernel_timespec span{.tv_sec = left.count() / 1'000'000'000,
                               .tv_nsec = left.count() % 1'000'000'000};
        io_uring_submit_and_wait_timeout(&ring_, &first, 1, &span, nullptr);
    }

    // Submits what is queued, and makes completions visible that the kernel has, without waiting.
    void submit_and_look() {
        // The kernel's thread takes submissions and delivers completions by itself. A system call
        // is needed only to wake it, which io_uring_submit() does.
        if ((ring_.flags & IORING_SETUP_SQPOLL) != 0 && !kernel_has_work()) {
            io_uring_submit(&ring_);
        } else {
            io_uring_submit_and_get_events(&ring_);
        }
    }

    // Returns true if the kernel has completions that only io_uring_enter() makes visible.
    bool kernel_has_work() const {
        return (__atomic_load_n(ring_.sq.kflags, __ATOMIC_RELAXED) &
                (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW)) != 0;
    }

    void reap() {
        finishing_.swap(done_);
        for (IoOp* op : finishing_) finish(*op, op->result);
        finishing_.clear();

        // Completions may submit operations that complete at once, so only those present now are
        // processed.
        const unsigned count = io_uring_cq_ready(&ring_);
        const unsigned head = *ring_.cq.khead;
        for (unsigned i = 0; i < count; ++i)
            complete(ring_.cq.cqes[(head + i) & *ring_.cq.kring_mask]);
        io_uring_cq_advance(&ring_, count);
    }

    void complete(const io_uring_cqe& cqe) {
        if (cqe.user_data == kIgnored) return;
        if (cqe.user_data == reinterpret_cast<std::uint64_t>(&wake_count_)) {
            wake_armed_ = false;
            return;
        }
        finish(*reinterpret_cast<IoOp*>(cqe.user_data), cqe.res);
    }

    void finish(IoOp& op, std::int32_t result) {
        ENSURE(op.in_flight);
        // A pending cancellation of a completed operation must not hit a later operation at the
        // same address.
        if (!cancel_requests_.empty()) std::erase(cancel_requests_, &op);
        op.in_flight = false;
        op.result = result;
        op.complete(op);
    }

    bool remove_waiting(IoOp& op) {
        IoOp* before = nullptr;
        for (IoOp* each = waiting_head_; each != nullptr; before = each, each = each->next) {
            if (each != &op) continue;
            (before == nullptr ? waiting_head_ : before->next) = op.next;
            if (waiting_tail_ == &op) waiting_tail_ = before;
            return true;
        }
        return false;
    }

    const Clock& clock_;
    io_uring ring_;
    const int wake_fd_;
    bool disabled_;
    std::thread::id enabled_by_;
    std::uint64_t wake_count_ = 0;
    bool wake_armed_ = false;
    TableEntries file_entries_;
    TableEntries region_entries_;
    IoOp* waiting_head_ = nullptr;  // Operations that found no room in the submission queue.
    IoOp* waiting_tail_ = nullptr;
    std::vector<IoOp*> cancel_requests_;
    std::vector<IoOp*> done_;  // Completed without the ring; delivered by the next wait.
    std::vector<IoOp*> finishing_;
};

struct Attempt {
    unsigned flags;
    const char* without;  // The missing feature to log if this attempt succeeds.
};

// Creates the ring with the best flags that this kernel accepts.
int open_ring(const UringOptions& options, io_uring& ring, bool& disabled, EventSink& events) {
    constexpr unsigned kDeferred = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
                                   IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_R_DISABLED;
    constexpr unsigned kCooperative =
        IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_R_DISABLED;
    const std::array attempts{
        Attempt{.flags = IORING_SETUP_SQPOLL | IORING_SETUP_R_DISABLED, .without = nullptr},
        Attempt{.flags = kDeferred, .without = options.sqpoll ? "SQPOLL" : nullptr},
        Attempt{.flags = kCooperative, .without = "DEFER_TASKRUN"},
        Attempt{.flags = 0, .without = "DEFER_TASKRUN, COOP_TASKRUN"},
    };
    int failed = 0;
    int first_failed = 0;
    for (std::size_t i = options.sqpoll ? 0 : 1; i < attempts.size(); ++i) {
        io_uring_params params{};
        params.flags = attempts[i].flags | IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP;
        params.cq_entries = options.submission_entries * 8;
        params.sq_thread_idle = 50;
        failed = io_uring_queue_init_params(options.submission_entries, &ring, &params);
        if (failed == 0 && (params.features & kFeaturesNeeded) != kFeaturesNeeded) {
            io_uring_queue_exit(&ring);
            return -ENOSYS;
        }
        if (failed == 0) {
            disabled = (attempts[i].flags & IORING_SETUP_R_DISABLED) != 0;
            if (attempts[i].without != nullptr) {
                emit(events, Level::kInfo, "reactor.without_feature",
                     {{"feature", std::string_view(attempts[i].without)},
                      {"reason", std::string_view(std::strerror(-first_failed))}});
            }
            return 0;
        }
        if (first_failed == 0) first_failed = failed;
    }
    return failed;
}

// The first operation that the reactor needs and this kernel lacks, or null.
const char* missing_operation(io_uring& ring) {
    struct Needed {
        int code;
        const char* name;
    };
    constexpr std::array kNeeded{
        Needed{.code = IORING_OP_READ, .name = "io_uring operation READ"},
        Needed{.code = IORING_OP_WRITE, .name = "io_uring operation WRITE"},
        Needed{.code = IORING_OP_READ_FIXED, .name = "io_uring operation READ_FIXED"},
        Needed{.code = IORING_OP_WRITE_FIXED, .name = "io_uring operation WRITE_FIXED"},
        Needed{.code = IORING_OP_WRITEV, .name = "io_uring operation WRITEV"},
        Needed{.code = IORING_OP_FSYNC, .name = "io_uring operation FSYNC"},
        Needed{.code = IORING_OP_POLL_ADD, .name = "io_uring operation POLL_ADD"},
        Needed{.code = IORING_OP_ASYNC_CANCEL, .name = "io_uring operation ASYNC_CANCEL"},
    };
    io_uring_probe* const probe = io_uring_get_probe_ring(&ring);
    if (probe == nullptr) return "io_uring probe";
    const char* missing = nullptr;
    for (const Needed& needed : kNeeded) {
        if (missing == nullptr && io_uring_opcode_supported(probe, needed.code) == 0) {
            missing = needed.name;
        }
    }
    io_uring_free_probe(probe);
    return missing;
}

}  // namespace

Result<std::unique_ptr<Backend>> make_uring_backend(const Clock& clock, EventSink& events,
                                                    UringOptions options) {
    io_uring ring{};
    bool disabled = false;
    if (const int failed = open_ring(options, ring, disabled, events); failed != 0) {
        return std::unexpected(os_error(-failed, "io_uring_setup"));
    }
    if (const char* missing = missing_operation(ring); missing != nullptr) {
        io_uring_queue_exit(&ring);
        return std::unexpected(Error{.code = Errc::kUnsupported, .context = missing});
    }
    const int wake_fd = ::eventfd(0, EFD_CLOEXEC);
    if (wake_fd < 0) {
        const int os_errno = errno;
        io_uring_queue_exit(&ring);
        return std::unexpected(os_error(os_errno, "eventfd"));
    }
    auto backend = std::make_unique<UringBackend>(clock, ring, wake_fd, disabled);
    backend->make_tables(options, events);
    return backend;
}

std::string explain_no_uring(const Error& error) {
    int setting = 0;
    std::ifstream("/proc/sys/kernel/io_uring_disabled") >> setting;
    if (setting != 0) {
        return "io_uring is disabled by sysctl kernel.io_uring_disabled=" +
               std::to_string(setting) + "; set it to 0" +
               (setting == 1 ? ", or put the daemon's group into kernel.io_uring_group" : "");
    }
    switch (error.os_errno) {
        case EPERM:
        case EACCES:
            return "io_uring is refused although sysctl kernel.io_uring_disabled is 0; "
                   "a seccomp filter (container or SystemCallFilter=) blocks io_uring_setup";
        case ENOSYS: return "this kernel has no io_uring; Linux 5.19 or newer is needed";
        case ENOMEM:
            return "no memory for an io_uring; raise the memory lock limit (LimitMEMLOCK=, ulimit "
                   "-l)";
        default: return "io_uring cannot be set up: " + describe(error);
    }
}

}  // namespace fopd::core

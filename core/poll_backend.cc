#include "core/poll_backend.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <vector>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/io_at_once.h"

namespace fopd::core {

namespace {

class PollBackend final : public Backend {
public:
    PollBackend(const Clock& clock, int wake_fd) : clock_(clock), wake_fd_(wake_fd) {}
    ~PollBackend() override { ::close(wake_fd_); }

    const char* name() const override { return "poll"; }
    Instant now() override { return clock_.now(); }

    void submit(IoOp& op) override {
        if (op.code == IoCode::kPoll && op.file.fd < 0) {
            op.result = -EBADF;  // ppoll(2) silently ignores negative descriptors.
            done_.push_back(&op);
        } else if (op.code == IoCode::kPoll) {
            polls_.push_back(&op);
        } else {
            carry_out_at_once(op);
            done_.push_back(&op);
        }
    }

    void cancel(IoOp& op) override {
        const auto found = std::ranges::find(polls_, &op);
        if (found == polls_.end()) return;
        polls_.erase(found);
        op.result = -ECANCELED;
        done_.push_back(&op);
    }

    void abandon(IoOp& op) override {
        std::erase(polls_, &op);
        std::erase(done_, &op);
    }

    void wait(Instant until) override {
        poll_descriptors(done_.empty() ? timeout_until(until) : timespec{});
        std::vector<IoOp*> done;
        done.swap(done_);
        for (IoOp* op : done) {
            op->in_flight = false;
            op->complete(*op);
        }
    }

    bool has_completions() override { return !done_.empty(); }

    void wake() override {
        const std::uint64_t one = 1;
        // Fails only if the counter is full; the reactor is awake already in that case.
        [[maybe_unused]] const auto written = ::write(wake_fd_, &one, sizeof one);
    }

private:
    // ppoll(2) takes null as "no time-out"; a very long one is equivalent here.
    timespec timeout_until(Instant until) {
        if (until == Instant::min()) return {};
        const Duration left = until == kNever ? Duration(1h) : until - clock_.now();
        const std::int64_t ns = std::clamp<std::int64_t>(left.count(), 0, Duration(1h).count());
        return {.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
    }

    void poll_descriptors(const timespec& timeout) {
        descriptors_.clear();
        descriptors_.push_back({.fd = wake_fd_, .events = POLLIN, .revents = 0});
        for (const IoOp* op : polls_) {
            descriptors_.push_back(
                {.fd = op->file.fd, .events = static_cast<short>(op->poll_events), .revents = 0});
        }
        const int ready = ::ppoll(descriptors_.data(), descriptors_.size(), &timeout, nullptr);
        if (ready <= 0) return;  // Nothing is ready, or a signal came: the reactor calls again.
        if (descriptors_[0].revents != 0) {
            std::uint64_t count = 0;
            // Non-blocking: the counter is zero afterwards in any case.
            [[maybe_unused]] const auto got = ::read(wake_fd_, &count, sizeof count);
        }
        for (std::size_t i = descriptors_.size() - 1; i > 0; --i) {
            const short events = descriptors_[i].revents;
            if (events == 0) continue;
            IoOp* const op = polls_[i - 1];
            op->result = (events & POLLNVAL) != 0 ? -EBADF : static_cast<unsigned short>(events);
            polls_.erase(polls_.begin() + static_cast<std::ptrdiff_t>(i - 1));
            done_.push_back(op);
        }
    }

    const Clock& clock_;
    const int wake_fd_;
    std::vector<IoOp*> polls_;
    std::vector<IoOp*> done_;  // To be completed by the next wait.
    std::vector<pollfd> descriptors_;
};

}  // namespace

Result<std::unique_ptr<Backend>> make_poll_backend(const Clock& clock) {
    const int wake_fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake_fd < 0) return std::unexpected(os_error(errno, "eventfd"));
    return std::make_unique<PollBackend>(clock, wake_fd);
}

}  // namespace fopd::core

#include "core/virtual_world.h"

#include <algorithm>
#include <cerrno>

#include "core/io_at_once.h"

namespace fopd::core {

namespace {

// 2020-01-01: the start of the simulated wall clock.
constexpr std::int64_t kEpochUnixNs = 1'577'836'800LL * 1'000'000'000;
constexpr Duration kIoDelayMin = 10us;
constexpr Duration kIoDelayMax = 300us;

}  // namespace

class VirtualWorld::VirtualBackend final : public Backend {
public:
    explicit VirtualBackend(VirtualWorld& world) : world_(world), id_(world.reactor_count_++) {
        world_.backends_.push_back(this);
    }
    ~VirtualBackend() override {
        std::erase(world_.backends_, this);
        std::erase(world_.runnable_, this);
    }

    const char* name() const override { return "virtual"; }
    Instant now() override { return world_.now_; }

    void submit(IoOp& op) override {
        if (is_of_descriptors(op)) return insert(poll_of(op));
        const auto delay =
            Duration{world_.random_.between(kIoDelayMin.count(), kIoDelayMax.count())};
        insert({.at = world_.now_ + delay, .op = &op, .cancelled = false});
    }

    void cancel(IoOp& op) override {
        if (!forget(op)) return;
        insert({.at = world_.now_, .op = &op, .cancelled = true});
    }

    void abandon(IoOp& op) override { forget(op); }

    void wait(Instant) override {
        ensure_failed("a simulated reactor is turned by its world", __FILE__, __LINE__);
    }
    bool has_completions() override { return false; }
    void wake() override { world_.make_runnable(*this); }

    Result<Buffer> attach_region(std::span<std::byte> memory) override {
        return Buffer{.data = memory.data(), .size_bytes = memory.size(), .region = 0};
    }

    void complete_due() {
        while (!pending_.empty() && pending_.front().at <= world_.now_) {
            const Pending first = pending_.front();
            pending_.erase(pending_.begin());
            IoOp& op = *first.op;
            if (first.cancelled) {
                op.result = -ECANCELED;
            } else if (is_of_descriptors(op)) {
                const std::uint32_t events = world_.descriptors_->ready(op.file.fd, op.poll_events);
                if (events == 0) {
                    insert(poll_of(op));  // It was ready, and is not any more.
                    continue;
                }
                op.result = static_cast<std::int32_t>(events);
            } else {
                carry_out_at_once(op);
            }
            op.in_flight = false;
            op.complete(op);
        }
    }

    // Polls of this descriptor, or of any if it is negative, may complete at another time.
    void look_at_polls(int fd) {
        polls_.clear();
        std::erase_if(pending_, [&](const Pending& each) {
            const bool is_meant = !each.cancelled && is_of_descriptors(*each.op) &&
                                  (fd < 0 || each.op->file.fd == fd);
            if (is_meant) polls_.push_back(each.op);
            return is_meant;
        });
        for (IoOp* const each : polls_) insert(poll_of(*each));
    }

    // The next instant at which this reactor has work.
    Instant due_at() const {
        if (held_back) return stalled_until;
        // Work from outside its turns: from a test, or from another reactor's coroutine.
        if (reactor->work_waiting()) return std::max(world_.now_, stalled_until);
        const Instant io = pending_.empty() ? kNever : pending_.front().at;
        return std::max(std::min(io, reactor->next_deadline()), stalled_until);
    }

    std::uint64_t id() const { return id_; }

    Reactor* reactor = nullptr;
    Instant stalled_until = Instant::min();
    bool runnable = false;
    bool held_back = false;  // It had work while it was stalled.

private:
    struct Pending {
        Instant at;
        IoOp* op;
        bool cancelled;
    };

    bool is_of_descriptors(const IoOp& op) const {
        return op.code == IoCode::kPoll && world_.descriptors_ != nullptr &&
               world_.descriptors_->has(op.file.fd);
    }
    Pending poll_of(IoOp& op) const {
        return {.at = world_.descriptors_->ready_at(op.file.fd, op.poll_events),
                .op = &op,
                .cancelled = false};
    }

    // After entries with the same time: equal times stay in the order of submission.
    void insert(const Pending& pending) {
        const auto at = std::ranges::upper_bound(pending_, pending.at, {}, &Pending::at);
        pending_.insert(at, pending);
    }

    bool forget(IoOp& op) {
        return std::erase_if(pending_, [&op](const Pending& each) { return each.op == &op; }) > 0;
    }

    VirtualWorld& world_;
    const std::uint64_t id_;
    std::vector<Pending> pending_;  // By time, then order of submission.
    std::vector<IoOp*> polls_;      // Of look_at_polls().
};

WallTime VirtualWorld::VirtualClock::wall() const {
    return {.unix_ns = kEpochUnixNs + world_.now_.time_since_epoch().count()};
}

VirtualWorld::VirtualWorld(std::uint64_t seed)
    : seed_(seed), random_(seed), clock_(*this), trace_hash_(mix(0, seed)) {}

VirtualWorld::~VirtualWorld() {
    ENSURE(backends_.empty());
}

std::unique_ptr<Reactor> VirtualWorld::make_reactor() {
    auto owned = std::make_unique<VirtualBackend>(*this);
    VirtualBackend& backend = *owned;
    auto reactor = std::make_unique<Reactor>(std::move(owned));
    backend.reactor = reactor.get();
    make_runnable(backend);
    return reactor;
}

void VirtualWorld::make_runnable(VirtualBackend& backend) {
    if (backend.runnable) return;
    backend.runnable = true;
    runnable_.push_back(&backend);
}

void VirtualWorld::stall(const Reactor& reactor, Instant until) {
    for (VirtualBackend* backend : backends_) {
        if (backend->reactor == &reactor) backend->stalled_until = until;
    }
}

void VirtualWorld::abandon(IoOp& op) {
    for (VirtualBackend* backend : backends_) backend->abandon(op);
}

void VirtualWorld::descriptor_changed(int fd) {
    for (VirtualBackend* backend : backends_) backend->look_at_polls(fd);
}

void VirtualWorld::descriptors_changed() {
    descriptor_changed(-1);
}

Instant VirtualWorld::next_event() const {
    Instant next = kNever;
    for (const VirtualBackend* backend : backends_) next = std::min(next, backend->due_at());
    return next;
}

void VirtualWorld::collect_due() {
    for (VirtualBackend* backend : backends_) {
        if (backend->due_at() <= now_) make_runnable(*backend);
    }
}

bool VirtualWorld::step(Instant limit) {
    if (now_ > limit) return false;
    if (runnable_.empty()) {
        const Instant next = next_event();
        if (next > limit || next == kNever) {
            if (limit != kNever) now_ = std::max(now_, limit);
            return false;
        }
        now_ = std::max(now_, next);
        collect_due();
    }
    const std::size_t index = runnable_.size() == 1 ? 0 : random_.below(runnable_.size());
    VirtualBackend& backend = *runnable_[index];
    runnable_[index] = runnable_.back();
    runnable_.pop_back();
    backend.runnable = false;
    if (backend.stalled_until > now_) {
        backend.held_back = true;
        return true;
    }
    backend.held_back = false;

    trace(static_cast<std::uint64_t>(now_.time_since_epoch().count()) ^ (backend.id() << 56));
    backend.complete_due();
    backend.reactor->expect_wake();
    if (backend.reactor->turn(now_)) make_runnable(backend);
    return true;
}

void VirtualWorld::run_until(Instant end) {
    while (step(end)) {
    }
}

bool VirtualWorld::run(Reactor& reactor, Task<void> task) {
    const auto done = std::make_shared<bool>(false);
    reactor.spawn(tasks_, detail::keep_result(std::move(task), done));
    while (!*done && step()) {
    }
    return *done;
}

}  // namespace fopd::core

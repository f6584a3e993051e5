#include "lrs/deadline.h"

#include <algorithm>
#include <utility>

#include "lrs/policies.h"

namespace fopd::lrs {

namespace {

class Deadline final : public Policy {
public:
    Deadline(std::unique_ptr<Policy> inner, Duration wait_max)
        : inner_(std::move(inner)), wait_max_(wait_max) {}

    void push(Request& request, Instant now) override {
        waiting_.push_back(request);
        inner_->push(request, now);
    }

    Next pop(Instant now) override {
        if (waiting_.empty()) return {};
        auto& oldest = static_cast<Request&>(waiting_.front());
        const Instant due = after(oldest.arrived_at(), wait_max_);
        if (due <= now) {
            let_pass(oldest, now);
            oldest.is_of_inner = false;
            return {.request = &oldest};
        }
        Next next = inner_->pop(now);
        if (next.request == nullptr) {
            next.again = std::min(next.again, due);
        } else {
            next.request->OuterPlace::unlink();
            next.request->is_of_inner = true;
        }
        return next;
    }

    void remove(Request& request) override {
        request.OuterPlace::unlink();
        inner_->remove(request);
    }

    // For a request that this policy took out itself, inner_ was told let_pass(), not pop().
    void complete(Request& request, Instant now) override {
        if (request.is_of_inner) inner_->complete(request, now);
    }

    void let_pass(Request& request, Instant now) override {
        request.OuterPlace::unlink();
        inner_->let_pass(request, now);
    }
    Adapted adapt(const PolicySettings& settings, const PolicyParts& parts, Instant now) override {
        const Adapted adapted = inner_->adapt(settings, parts, now);
        if (adapted != Adapted::kNot) wait_max_ = settings.deadline.wait_max;
        return adapted;
    }
    void move(Request& request, Instant now) override { inner_->move(request, now); }
    bool is_held_back(const Request& request, Instant now) const override {
        return inner_->is_held_back(request, now);
    }
    bool visit_classes(Instant now, const ClassVisitor& visitor) override {
        return inner_->visit_classes(now, visitor);
    }
    ClassLabel class_of(const Request& request) const override { return inner_->class_of(request); }

    std::string_view epoch_part() const override { return inner_->epoch_part(); }
    void write_epoch(std::span<std::byte> room, Instant now) override {
        inner_->write_epoch(room, now);
    }
    void start_epoch(eh::EpochNumber epoch, const EpochPartData& data, Instant now) override {
        inner_->start_epoch(epoch, data, now);
    }
    void lose_epoch(const Error& reason, Instant now) override { inner_->lose_epoch(reason, now); }
    Instant epoch_over_at() const override { return inner_->epoch_over_at(); }

private:
    const std::unique_ptr<Policy> inner_;
    Duration wait_max_;
    core::IntrusiveList<OuterPlace> waiting_;  // The oldest first.
};

}  // namespace

std::unique_ptr<Policy> make_deadline(std::unique_ptr<Policy> inner, Duration wait_max) {
    ENSURE(inner != nullptr);
    return std::make_unique<Deadline>(std::move(inner), wait_max);
}

}  // namespace fopd::lrs

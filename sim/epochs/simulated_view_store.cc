#include "sim/epochs/simulated_view_store.h"

#include <algorithm>

#include "core/ensure.h"

namespace fopd::sim {

eh::ViewHandle SimulatedViewRegister::newest() {
    serve_due();
    return history_.empty() ? nullptr : history_.back();
}

const std::vector<eh::ViewHandle>& SimulatedViewRegister::history() {
    serve_due();
    return history_;
}

SimulatedViewRegister::Journey SimulatedViewRegister::draw() {
    const Instant now = world_.now();
    const auto delay = [this](Duration most) {
        return Duration{
            random_.between(faults_.delay_min.count(), std::max(faults_.delay_min, most).count())};
    };
    Journey journey{.ends = after(now, faults_.timeout)};
    // Always drawn, so that one fault more does not change all later ones.
    const Instant there = after(now, delay(faults_.delay_max));
    const Instant back = after(there, delay(faults_.delay_max));
    const Instant late = after(journey.ends, delay(faults_.late));
    const bool is_failed = random_.chance_ppm(faults_.failed_ppm);
    const bool is_lost = random_.chance_ppm(faults_.lost_ppm);
    const bool is_unknown = random_.chance_ppm(faults_.unknown_ppm);
    const bool is_late = random_.chance_ppm(faults_.late_ppm);
    if (is_failed || now < broken_until_) {
        journey.is_refused = true;
        journey.ends = there;
    } else if (is_late) {
        journey.arrives = late;
    } else if (!is_lost) {
        journey.arrives = there;
        if (!is_unknown) journey.answered = back;
    }
    journey.ends = std::min(journey.ends, journey.answered);
    return journey;
}

void SimulatedViewRegister::send(std::shared_ptr<Request> request, Instant arrives) {
    serve_due();
    under_way_.emplace(std::pair(arrives, ++sent_), std::move(request));
}

// Nobody can tell whether a request took effect when it arrived, or when somebody looked.
void SimulatedViewRegister::serve_due() {
    while (!under_way_.empty() && under_way_.begin()->first.first <= world_.now()) {
        serve(*under_way_.begin()->second);
        under_way_.erase(under_way_.begin());
    }
}

void SimulatedViewRegister::serve(Request& request) {
    request.is_done = true;
    request.seen = history_.empty() ? nullptr : history_.back();
    if (request.next == nullptr) return;
    if (history_.size() == request.expected) history_.push_back(request.next);
    // Written by this request, or by an earlier one for the same view.
    if (history_.size() > request.expected) {
        const bool is_own = history_[request.expected]->bytes() == request.next->bytes();
        request.outcome = is_own ? eh::Swapped::kYes : eh::Swapped::kNo;
    }
}

void SimulatedViewStore::read(eh::ViewStoreUser& user) {
    ENSURE(!std::exchange(is_asked_, true));
    reactor_.spawn(calls_, run(std::make_shared<Request>(), &user));
}

void SimulatedViewStore::swap(eh::ViewNumber expected, eh::ViewHandle next,
                              eh::ViewStoreUser& user) {
    ENSURE(!std::exchange(is_asked_, true));
    ENSURE(next->number() == expected + 1);
    auto request = std::make_shared<Request>();
    request->expected = expected;
    request->next = std::move(next);
    reactor_.spawn(calls_, run(std::move(request), &user));
}

Task<void> SimulatedViewStore::run(std::shared_ptr<Request> request, eh::ViewStoreUser* user) {
    const auto journey = shared_.draw();
    if (journey.arrives != kNever) shared_.send(request, journey.arrives);
    const auto slept = co_await reactor_.sleep_until(journey.ends);
    ENSURE(slept.has_value());
    shared_.serve_due();
    const bool is_answered = journey.answered != kNever && reactor_.now() >= journey.answered;
    ENSURE(!is_answered || request->is_done);
    is_asked_ = false;
    if (request->next == nullptr) {
        constexpr Error kNoAnswer{.code = Errc::kTimedOut, .context = "no view store"};
        user->on_view_read(is_answered ? Result<eh::ViewHandle>(request->seen)
                                       : std::unexpected(kNoAnswer));
        co_return;
    }
    const bool may_be_under_way =
        (!is_answered && !journey.is_refused) ||
        (unsettled_ != nullptr && unsettled_->bytes() == request->next->bytes());
    const eh::Swapped not_written = may_be_under_way ? eh::Swapped::kUnknown : eh::Swapped::kNo;
    const eh::Swapped outcome = is_answered ? request->outcome.value_or(not_written) : not_written;
    unsettled_ = outcome == eh::Swapped::kUnknown ? request->next : nullptr;
    user->on_view_swapped(outcome);
}

}  // namespace fopd::sim

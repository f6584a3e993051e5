#include "eh/fold.h"

#include <algorithm>
#include <utility>

#include "core/ensure.h"

namespace fopd::eh {

namespace {

// A scheduler is ready after half of the timeout at the latest. A locality that takes a quarter
// longer hangs; so the node itself is ready in time for other nodes.
constexpr int kReadyParts = 2;
constexpr int kPatienceParts = 4;

}  // namespace

LocalityFold::LocalityFold(core::Reactor& reactor, EpochHandler& node)
    : reactor_(reactor), node_(node), rules_(node.rules()), timeout_(*this) {}

void LocalityFold::join(End& end) {
    auto seat = std::ranges::find(seats_, &end, &Seat::end);
    if (seat == seats_.end()) {
        seats_.push_back({.end = &end});
        seat = seats_.end() - 1;
    }
    seat->state = Seat::State::kReady;
    look();
}

void LocalityFold::leave(End& end) {
    const auto seat = std::ranges::find(seats_, &end, &Seat::end);
    if (seat == seats_.end()) return;
    const bool waits = seat->state == Seat::State::kReady || seat->state == Seat::State::kAsked;
    seats_.erase(seat);
    if (waits) {
        end.ready_.answer(std::unexpected(Error{.code = Errc::kCancelled, .context = "left"}), {});
    }
    if (seats_.empty()) {
        timeout_.disarm();
        node_.last_epoch(std::exchange(epoch_, kFirstEpoch));
    } else {
        look();
    }
}

bool LocalityFold::has(Seat::State state) const {
    return std::ranges::find(seats_, state, &Seat::state) != seats_.end();
}

void LocalityFold::look() {
    if (is_asking_) return;
    if (!has(Seat::State::kReady)) return timeout_.disarm();
    if (!has(Seat::State::kInEpoch)) return begin();
    if (timeout_.armed()) return;
    const Instant ready_at =
        std::max(reactor_.now(), after(begun_at_, rules_.timeout / kReadyParts));
    reactor_.arm(timeout_, after(ready_at, rules_.timeout / kPatienceParts));
}

// The node is ready, with the localities that are.
void LocalityFold::begin() {
    timeout_.disarm();
    const std::size_t size_bytes = combine();
    for (Seat& each : seats_) {
        using State = Seat::State;
        each.state = each.state == State::kReady ? State::kAsked : State::kLeftOut;
    }
    is_asking_ = true;
    const auto asked = node_.next_epoch(epoch_, std::span(data_).first(size_bytes), *this);
    if (!asked) on_epoch(std::unexpected(asked.error()), {});
}

std::size_t LocalityFold::combine() {
    std::size_t size_bytes = 0;
    bool is_first = true;
    for (const Seat& each : seats_) {
        if (each.state != Seat::State::kReady) continue;
        const auto data = each.end->ready_.data();
        if (std::exchange(is_first, false)) {
            std::ranges::copy(data, data_.begin());
            size_bytes = data.size();
            continue;
        }
        size_bytes = std::min(size_bytes, data.size());
        size_bytes -= size_bytes % rules_.granule;
        const auto into = std::span(data_).first(size_bytes);
        if (rules_.combine != nullptr) rules_.combine(into, into, data.first(size_bytes));
    }
    return size_bytes;
}

void LocalityFold::on_epoch(Result<EpochNumber> epoch, std::span<const std::byte> data) {
    is_asking_ = false;
    epoch_ = epoch.value_or(kFirstEpoch);
    begun_at_ = reactor_.now();
    for (Seat& each : seats_) {
        if (each.state != Seat::State::kAsked) continue;
        each.state = epoch ? Seat::State::kInEpoch : Seat::State::kLeftOut;
        each.end->ready_.answer(epoch, data);
    }
    if (!seats_.empty()) look();
}

// -- the end of a locality --

LocalityFold::End::End(core::Reactor& reactor, LocalityFold& fold)
    : fold_(fold),
      ready_(reactor, fold.reactor_, *this),
      leave_(reactor, fold.reactor_, *this),
      home_(reactor) {}

void LocalityFold::End::Ready::put(std::span<const std::byte> data) {
    size_bytes_ = data.size();
    std::ranges::copy(data, data_.begin());
}

void LocalityFold::End::Ready::answer(Result<EpochNumber> begun, std::span<const std::byte> data) {
    epoch = std::move(begun);
    put(data);
    go_back();
}

Result<void> LocalityFold::End::next_epoch(EpochNumber current, std::span<const std::byte> data,
                                           Participant& participant) {
    if (current != kFirstEpoch && current != epoch_) return std::unexpected(kOtherEpoch);
    if (data.size() > next_.size()) return std::unexpected(kTooMuchData);
    if (waiting_ != nullptr) return std::unexpected(kAlreadyWaiting);
    waiting_ = &participant;
    ++asks_;
    next_bytes_ = data.size();
    std::ranges::copy(data, next_.begin());
    has_more_ = true;
    send();
    return {};
}

void LocalityFold::End::last_epoch(EpochNumber current) {
    ENSURE(current == kFirstEpoch || current == epoch_);
    epoch_ = kFirstEpoch;
    has_more_ = false;
    is_leaving_ = is_leaving_ || std::exchange(is_known_, false);
    send();
    if (waiting_ == nullptr) return;
    std::exchange(waiting_, nullptr)
        ->on_epoch(std::unexpected(Error{.code = Errc::kCancelled, .context = "left"}), {});
}

// Messages arrive in order. One that is under way is sent again when it is back.
void LocalityFold::End::send() {
    if (is_leaving_ && !leave_.under_way()) {
        is_leaving_ = false;
        leave_.go();
    }
    if (has_more_ && !is_under_way() && !calling_) {
        has_more_ = false;
        is_known_ = true;
        ready_.ask = asks_;
        ready_.put(std::span(next_).first(next_bytes_));
        ready_.go();
    }
    if (!is_under_way()) home_.wake_all();
}

void LocalityFold::End::on_answer() {
    // The participant may have left since, and have come back.
    const bool is_awaited = waiting_ != nullptr && ready_.ask == asks_ && !has_more_;
    if (is_awaited) {
        epoch_ = ready_.epoch.value_or(kFirstEpoch);
        calling_ = true;
        std::exchange(waiting_, nullptr)->on_epoch(ready_.epoch, ready_.data());
        calling_ = false;
    }
    send();
}

Task<void> LocalityFold::End::close() {
    ENSURE(waiting_ == nullptr && !is_known_);
    while (is_under_way() || is_leaving_) {
        // Messages come back as long as the reactors turn.
        [[maybe_unused]] const auto woken = co_await home_.wait({});
    }
}

}  // namespace fopd::eh

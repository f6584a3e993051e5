#include "sim/schedulers/epoch_barrier.h"

#include <algorithm>
#include <utility>

#include "core/ensure.h"

namespace fopd::sim {

std::unique_ptr<EpochBarrier::End> EpochBarrier::make_end() {
    auto end = std::make_unique<End>(*this);
    ends_.push_back(end.get());
    return end;
}

// The epoch begins for all that take part, when none of them is in the one before.
void EpochBarrier::look() {
    const auto keeps_waiting = [](const End* end) {
        return end->takes_part() && (end->waiting_ == nullptr || end->armed());
    };
    const auto takes_part = [](const End* end) { return end->takes_part(); };
    if (std::ranges::any_of(ends_, keeps_waiting)) return;
    if (std::ranges::none_of(ends_, takes_part)) return;
    data_ = combined();
    ++epoch_;
    for (End* const end : ends_) {
        if (!end->takes_part()) continue;
        end->next_ = epoch_;
        end->data_ = data_;
        const Duration late(random_.between(0, options_.raggedness.count()));
        reactor_.arm(*end, after(reactor_.now(), options_.cost + late));
    }
}

// Any two of the parts, again and again, until one is left.
std::vector<std::byte> EpochBarrier::combined() {
    std::vector<std::vector<std::byte>> parts;
    for (const End* const end : ends_) {
        if (end->takes_part()) parts.push_back(end->contributed_);
    }
    while (parts.size() > 1) {
        std::swap(parts[random_.below(parts.size())], parts.back());
        const std::vector<std::byte> last = std::move(parts.back());
        parts.pop_back();
        std::vector<std::byte>& other = parts[random_.below(parts.size())];
        ENSURE(other.size() == last.size());
        if (rules_.combine != nullptr) rules_.combine(other, other, last);
    }
    return std::move(parts.front());
}

EpochBarrier::End::~End() {
    std::erase(barrier_.ends_, this);
}

Result<void> EpochBarrier::End::next_epoch(eh::EpochNumber current, std::span<const std::byte> data,
                                           eh::Participant& participant) {
    ENSURE(waiting_ == nullptr);
    ENSURE(current == eh::kFirstEpoch || current == epoch_);
    waiting_ = &participant;
    contributed_.assign(data.begin(), data.end());
    is_member_ = true;
    if (is_cut_off_) {
        cut_off(true);
    } else {
        barrier_.look();
    }
    return {};
}

void EpochBarrier::End::last_epoch(eh::EpochNumber current) {
    ENSURE(current == eh::kFirstEpoch || current == epoch_);
    is_member_ = false;
    if (waiting_ != nullptr) {
        next_ = std::unexpected(Error{.code = Errc::kCancelled, .context = "left"});
        answer();
    }
    barrier_.look();
}

void EpochBarrier::End::cut_off(bool is_cut_off) {
    is_cut_off_ = is_cut_off;
    if (is_cut_off_ && waiting_ != nullptr) {
        next_ = std::unexpected(Error{.code = Errc::kTimedOut, .context = "cut off"});
        barrier_.reactor_.arm(*this, after(barrier_.reactor_.now(), barrier_.rules_.timeout));
    }
    barrier_.look();
}

void EpochBarrier::End::answer() {
    Timer::disarm();
    if (!next_) is_member_ = false;
    epoch_ = next_.value_or(eh::kFirstEpoch);
    const std::vector<std::byte> data = next_ ? std::move(data_) : std::vector<std::byte>();
    std::exchange(waiting_, nullptr)->on_epoch(next_, data);
}

}  // namespace fopd::sim

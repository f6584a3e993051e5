#include "eh/local.h"

#include <algorithm>
#include <utility>

#include "core/ensure.h"

namespace fopd::eh {

// If the participant becomes ready again within on_epoch(), the outermost call starts the next
// epoch: the stack does not grow.
Result<void> LocalEpochHandler::next_epoch(EpochNumber current, std::span<const std::byte> data,
                                           Participant& participant) {
    const bool knows = is_member_ && current == epoch_;
    if (current != kFirstEpoch && !knows)
        return std::unexpected(Error{.code = Errc::kInvalid, .context = "not the current epoch"});
    if (data.size() > data_.size())
        return std::unexpected(Error{.code = Errc::kInvalid, .context = "too much data"});
    if (ready_ != nullptr)
        return std::unexpected(Error{.code = Errc::kBusy, .context = "waiting for an epoch"});
    ready_ = &participant;
    size_bytes_ = data.size();
    std::ranges::copy(data, data_.begin());
    if (calling_) return {};

    calling_ = true;
    while (ready_ != nullptr) {
        is_member_ = true;
        ++epoch_;
        // Copied, because next_epoch() called from within replaces it.
        const auto said = data_;
        const std::size_t size_bytes = size_bytes_;
        std::exchange(ready_, nullptr)->on_epoch(epoch_, std::span(said).first(size_bytes));
    }
    calling_ = false;
    return {};
}

void LocalEpochHandler::last_epoch(EpochNumber current) {
    ENSURE(current == kFirstEpoch || current == epoch_);
    is_member_ = false;
    if (ready_ == nullptr) return;
    std::exchange(ready_, nullptr)
        ->on_epoch(std::unexpected(Error{.code = Errc::kCancelled, .context = "left"}), {});
}

}  // namespace fopd::eh

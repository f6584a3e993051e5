#include "store/discards.h"

#include <optional>

namespace fopd::store {

Task<void> Discards::run(Allocator* space, core::CancelSource* stop) {
    if (!options_.wanted) co_return;
    // Some devices say only at the first discard that they have none.
    while (device_.geometry().discards) {
        space->note_empty();
        const auto slept = co_await reactor_.sleep_for(options_.interval, stop);
        if (!slept) co_return;
        const auto done = co_await discard_some(space, stop);
        if (done) continue;
        if (!stop->cancelled()) {
            core::emit(events_, core::Level::kWarn, "store.discard_ended",
                       {{"device", device_.name()},
                        {"reason", std::string_view(done.error().context)},
                        {"errno", std::int64_t{done.error().os_errno}}});
        }
        co_return;
    }
    core::emit(events_, core::Level::kInfo, "store.no_discard", {{"device", device_.name()}});
}

Task<Result<void>> Discards::discard_some(Allocator* space, core::CancelSource* stop) {
    for (;;) {
        const std::optional<std::uint32_t> segment = space->hold_unused(options_.ahead_blocks);
        if (!segment) co_return Result<void>{};
        const DiskRange range = space->range_of(*segment);
        const auto discarded = co_await device_.discard(range.block * devices::kBlockBytes,
                                                        range.count * devices::kBlockBytes);
        space->end_hold(*segment, Allocator::Content::kDiscarded);
        released_.wake_all();
        if (!discarded || !device_.geometry().discards) co_return discarded;
        const auto slept = co_await reactor_.sleep_for(options_.pause, stop);
        if (!slept) co_return slept;
    }
}

}  // namespace fopd::store

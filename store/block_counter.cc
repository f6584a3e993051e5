#include "store/block_counter.h"

#include "core/cancel.h"

namespace fopd::store {

Task<Result<BlockCounter::Counted>> BlockCounter::count(Fid fid, BlockRange range,
                                                        Options options) {
    Counted all;
    for (BlockRange rest = range;;) {
        const auto counted = options.which == Which::kLiving
                                 ? map_.count(fid, rest, options.extents_a_turn)
                                 : map_.count_all(fid, rest, options.extents_a_turn);
        if (!counted) co_return std::unexpected(counted.error());
        all.blocks += counted->blocks;
        if (counted->met_cleared) ++all.cleared;
        ++all.turns;
        if (counted->finished) co_return all;
        rest = {.first = counted->next, .count = range.end() - counted->next};
        const auto wanted = check_wanted(options.wait);
        if (!wanted) co_return std::unexpected(wanted.error());
        co_await reactor_.yield();
    }
}

Result<void> BlockCounter::check_wanted(core::WaitOptions wait) const {
    const bool is_wanted = wait.cancel == nullptr || !wait.cancel->cancelled();
    if (!is_wanted) return std::unexpected(Error{.code = Errc::kCancelled});
    if (wait.deadline > reactor_.now()) return {};
    return std::unexpected(Error{.code = Errc::kTimedOut, .context = "an object of many extents"});
}

}  // namespace fopd::store

#include "library/copy_join.h"

#include <string>
#include <string_view>
#include <utility>

#include "core/ensure.h"
#include "library/staging_disks.h"

namespace fopd::library {

Task<bool> CopyJoin::arrive(Copies copies) {
    ENSURE(missing_ > 0);
    for (auto& [locality, some] : copies) {
        auto& all = copies_[locality];
        all.insert(all.end(), some.begin(), some.end());
    }
    if (--missing_ == 0 && !failed_) {
        Copies together = std::move(copies_);
        co_await record(std::move(together));
        done_ = true;
        over_.wake_all();
    }
    while (!done_ && !failed_) {
        // No deadline: each of the other writers arrives or fails.
        [[maybe_unused]] const auto woken = co_await over_.wait({});
    }
    co_return done_;
}

void CopyJoin::fail() {
    failed_ = true;
    over_.wake_all();
}

// The order is: data durable on tape, then the table of media, which keeps later writes from
// overwriting these data, then the records, which let the bytes leave the disks.
Task<void> CopyJoin::record(Copies copies) {
    for (auto& [locality, some] : copies) {
        const std::uint64_t count = some.size();
        for (const store::Copy& each : some) recorded_.bytes += each.length;
        auto job = [&some](StagingDisks& disks) { return disks.record(std::move(some)); };
        const auto recorded = co_await parts_.homes.run_at<StagingDisks::Recorded>(locality, &job);
        const StagingDisks::Recorded of_home =
            recorded ? *recorded
                     : StagingDisks::Recorded{.unrecorded = count, .reason = recorded.error()};
        recorded_.copies += of_home.live;
        recorded_.dead += of_home.dead;
        if (of_home.unrecorded == 0) continue;
        // Without a record, the objects stay on their disk. The tape is not at fault.
        recorded_.unrecorded += of_home.unrecorded;
        const std::string reason = describe(of_home.reason);
        core::emit(parts_.events, core::Level::kWarn, "library.copies_not_recorded",
                   {{"locality", std::uint64_t{locality}}, {"reason", std::string_view(reason)}});
    }
}

}  // namespace fopd::library

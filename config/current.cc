#include "config/current.h"

#include <utility>

namespace fopd::config {

Current::Current(SnapshotPtr snapshot) : newest_(std::move(snapshot)) {}

Current::Applied Current::apply(const SnapshotPtr& next) {
    Merged merged = merge(newest_, next);
    Applied applied;
    for (Change& change : merged.changes) {
        const bool is_live = change.reload == Reload::kLive;
        (is_live ? applied.live : applied.waiting).push_back(std::move(change));
    }
    if (applied.live.empty()) return applied;

    newest_ = std::move(merged.snapshot);
    return applied;
}

}  // namespace fopd::config

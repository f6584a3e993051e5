#include "config/current.h"

#include <utility>

namespace fopd::config {

// Walks to the end first: if an old version were dropped at the start of a long chain, each
// destructor would destroy the next version recursively.
Current::Reader::~Reader() {
    if (version_ != nullptr) latest();
}

const Current::Version& Current::Reader::latest() {
    while (version_->has_next.load(std::memory_order_acquire)) {
        // In two steps: the assignment may destroy the version that holds `next`.
        std::shared_ptr<Version> next = version_->next;
        version_ = std::move(next);
    }
    return *version_;
}

Current::Current(SnapshotPtr snapshot) : newest_(std::make_shared<Version>(std::move(snapshot))) {}

Current::~Current() = default;

Current::Applied Current::apply(const SnapshotPtr& next) {
    Merged merged = merge(newest_->snapshot, next);
    Applied applied;
    for (Change& change : merged.changes) {
        const bool is_live = change.reload == Reload::kLive;
        (is_live ? applied.live : applied.waiting).push_back(std::move(change));
    }
    if (applied.live.empty()) return applied;

    auto version = std::make_shared<Version>(std::move(merged.snapshot));
    newest_->next = version;
    newest_->has_next.store(true, std::memory_order_release);
    newest_ = std::move(version);
    return applied;
}

}  // namespace fopd::config

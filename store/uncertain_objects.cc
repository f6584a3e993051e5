#include "store/uncertain_objects.h"

#include <algorithm>
#include <optional>

#include "store/copy.h"

namespace fopd::store {

namespace {

// The object that a value of the index belongs to.
std::optional<Fid> object_of(Bytes key) {
    const auto kind = static_cast<KeyKind>(key.front());
    switch (kind) {
        case KeyKind::kObject:
        case KeyKind::kUpload:
        case KeyKind::kRecall: {
            const auto fid = read_fid_key(kind, key);
            return fid ? std::optional(*fid) : std::nullopt;
        }
        case KeyKind::kCopy: {
            const auto copy = read_copy_key(key);
            return copy ? std::optional(copy->fid) : std::nullopt;
        }
        case KeyKind::kCleared:
        case KeyKind::kExtent:
        case KeyKind::kPosition:
        case KeyKind::kNames:
        case KeyKind::kReply:
        case KeyKind::kTotal: break;
    }
    return std::nullopt;
}

}  // namespace

void UncertainObjects::note(const Record& record) {
    Changed changed{.fid = record.fid, .seq = UINT64_MAX};
    if (record.kind == RecordKind::kPut || record.kind == RecordKind::kCommit ||
        record.kind == RecordKind::kForget) {
        const auto fid = object_of(record.key);
        if (!fid) return;
        changed.fid = *fid;
    }
    const bool is_known = !changed_.empty() && changed_.back().seq == UINT64_MAX &&
                          changed_.back().fid == changed.fid;
    if (!is_known) changed_.push_back(changed);
}

void UncertainObjects::begun(std::size_t count, std::uint64_t seq) {
    for (std::size_t i = count; i < changed_.size(); ++i) changed_[i].seq = seq;
}

void UncertainObjects::note_durable(std::uint64_t seq) {
    while (!changed_.empty() && changed_.front().seq <= seq) changed_.pop_front();
}

bool UncertainObjects::contains(Fid fid, std::uint64_t durable_seq) {
    for (const Changed& each : changed_) {
        std::uint64_t& last = last_seq_[each.fid];
        last = std::max(last, each.seq);
    }
    changed_.clear();
    const auto found = last_seq_.find(fid);
    return found != last_seq_.end() && found->second > durable_seq;
}

}  // namespace fopd::store

#include "store/record_applier.h"

#include <array>

namespace fopd::store {

namespace {

constexpr Error kBadRecord{.code = Errc::kCorrupt, .context = "a record of the log"};

}  // namespace

Result<void> RecordApplier::apply(const Record& record, RecordEffects& effects) {
    switch (record.kind) {
        case RecordKind::kPut:
        case RecordKind::kCommit:
        case RecordKind::kForget: return apply_value(record, effects.names);
        case RecordKind::kExtent: return apply_extent(record, effects);
        case RecordKind::kPunch: return apply_punch(record, effects);
        case RecordKind::kClear: {
            const BlockRange range{.first = record.first, .count = record.count};
            const Result<void> cleared = map_.clear(record.fid, range);
            if (!cleared) return cleared;
            effects.clears = true;
            return {};
        }
        case RecordKind::kRemove: {
            const Result<void> noted = names_.note(record.fid, nullptr, effects.names);
            if (!noted) return noted;
            const Result<void> removed = map_.remove(record.fid);
            if (!removed) return removed;
            effects.clears = true;
            return {};
        }
    }
    return std::unexpected(kBadRecord);
}

// REQUIRES: the range has few extents, and none that was cleared before; unless a log is replayed.
Result<void> RecordApplier::apply_punch(const Record& record, RecordEffects& effects) {
    const BlockRange range{.first = record.first, .count = record.count};
    const std::size_t freed_before = effects.freed.size();
    for (BlockRange rest = range;;) {
        const auto punched = map_.punch(record.fid, rest, extents_a_step_, effects.freed);
        if (!punched) return std::unexpected(punched.error());
        if (punched->finished) break;
        rest = {.first = punched->next, .count = range.end() - punched->next};
    }
    // In a replay this may be a record of the sweep, for a part of a range that was cleared.
    const auto forgotten = map_.forget_cleared(record.fid, range);
    if (!forgotten) return forgotten;
    for (std::size_t i = freed_before; i < effects.freed.size(); ++i) {
        effects.net_blocks -= effects.freed[i].count;
    }
    return {};
}

Result<void> RecordApplier::apply_extent(const Record& record, RecordEffects& effects) {
    ExtentRuns runs(record);
    while (const std::optional<Extent> run = runs.next()) {
        const auto more = map_.insert(record.fid, *run, effects.freed);
        if (!more) return std::unexpected(more.error());
        effects.net_blocks += static_cast<std::int64_t>(*more);
        if (space_ != nullptr) space_->take_up({.block = run->block, .count = run->count()});
    }
    return {};
}

Result<void> RecordApplier::apply_value(const Record& record, NameChanges& names) {
    switch (static_cast<KeyKind>(record.key.front())) {
        case KeyKind::kReply: return apply_reply(record);
        case KeyKind::kUpload: return apply_upload(record);
        case KeyKind::kObject: return apply_object(record, names);
        case KeyKind::kCopy: return apply_copy(record);
        case KeyKind::kTotal: return apply_total(record);
        case KeyKind::kRecall: return apply_recall(record);
        case KeyKind::kExtent:
        case KeyKind::kPosition:
        case KeyKind::kNames:
        case KeyKind::kCleared: break;
    }
    return std::unexpected(kBadRecord);
}

Result<void> RecordApplier::apply_upload(const Record& record) {
    const auto fid = read_fid_key(KeyKind::kUpload, record.key);
    if (!fid) return std::unexpected(fid.error());
    const auto upload = read_upload(record.value);
    if (!upload) return std::unexpected(upload.error());
    if (record.kind != RecordKind::kPut) return std::unexpected(kBadRecord);
    map_.put_upload(*fid, *upload);
    return {};
}

Result<void> RecordApplier::apply_object(const Record& record, NameChanges& names) {
    const auto fid = read_fid_key(KeyKind::kObject, record.key);
    if (!fid) return std::unexpected(fid.error());
    const auto object = read_object(record.value);
    if (!object) return std::unexpected(object.error());
    if (record.kind == RecordKind::kForget) return std::unexpected(kBadRecord);
    const Result<void> noted = names_.note(*fid, &*object, names);
    if (!noted) return noted;
    if (record.kind == RecordKind::kCommit) return map_.commit_upload(*fid, *object);
    return map_.put(*fid, *object);
}

// The log may hold the copy before the object's newest record, and cleaning may have dropped the
// older ones.
Result<void> RecordApplier::apply_copy(const Record& record) {
    if (record.kind == RecordKind::kForget) {
        const auto key = read_copy_key(record.key);
        if (!key) return std::unexpected(key.error());
        return map_.copies().erase(*key);
    }
    const auto copy = read_copy(record.key, record.value);
    if (!copy) return std::unexpected(copy.error());
    if (record.kind != RecordKind::kPut) return std::unexpected(kBadRecord);
    const auto object = map_.find(copy->fid);
    if (!object) return std::unexpected(object.error());
    if (object->has_value() && !is_of_content(*copy, **object)) return {};
    return map_.copies().put(*copy);
}

Result<void> RecordApplier::apply_total(const Record& record) {
    const bool forgets = record.kind == RecordKind::kForget;
    if (!forgets && record.kind != RecordKind::kPut) return std::unexpected(kBadRecord);
    const std::array<std::byte, kTotalValueBytes> nothing{};
    const auto total = read_total(record.key, forgets ? Bytes(nothing) : record.value);
    if (!total) return std::unexpected(total.error());
    if (forgets) {
        map_.copies().erase_total(total->cartridge.vsn);
    } else {
        map_.copies().put_total(*total);
    }
    return {};
}

// The recall of an object that is not there ends with its removal, later in the log.
Result<void> RecordApplier::apply_recall(const Record& record) {
    const auto fid = read_fid_key(KeyKind::kRecall, record.key);
    if (!fid) return std::unexpected(fid.error());
    if (record.kind == RecordKind::kForget) {
        map_.erase_recall(*fid);
        return {};
    }
    const auto recall = read_recall(record.value);
    if (!recall) return std::unexpected(recall.error());
    if (record.kind != RecordKind::kPut) return std::unexpected(kBadRecord);
    map_.put_recall(*fid, *recall);
    return {};
}

Result<void> RecordApplier::apply_reply(const Record& record) {
    if (record.kind == RecordKind::kForget) {
        const auto key = read_reply_key(record.key);
        if (!key) return std::unexpected(key.error());
        map_.forget_reply(*key);
        return {};
    }
    const auto reply = read_reply(record.key, record.value);
    if (!reply) return std::unexpected(reply.error());
    if (record.kind != RecordKind::kPut) return std::unexpected(kBadRecord);
    return map_.put_reply(*reply);
}

}  // namespace fopd::store

#include "store/released_rules.h"

#include <algorithm>

#include "core/ensure.h"
#include "store/object_map.h"

namespace fopd::store {

namespace {

std::unexpected<Error> released() {
    return std::unexpected(
        Error{.code = Errc::kBusy, .context = "the bytes of the object are not on the disk"});
}

std::unexpected<Error> uncovered() {
    return std::unexpected(Error{.code = Errc::kInvalid,
                                 .context = "copies on cartridges do not have all of its bytes"});
}

bool has_key(const Record& record, KeyKind kind) {
    return !record.key.empty() && record.key.front() == static_cast<std::byte>(kind);
}

}  // namespace

ReleasedRules::Changed& ReleasedRules::changed(Fid fid) {
    const auto known =
        std::ranges::find_if(changed_, [fid](const Changed& each) { return each.fid == fid; });
    if (known != changed_.end()) return *known;
    return changed_.emplace_back(Changed{.fid = fid});
}

Result<void> ReleasedRules::note(const Record& record) {
    switch (record.kind) {
        case RecordKind::kExtent: changed(record.fid).extents = true; return {};
        case RecordKind::kPunch:
        case RecordKind::kClear: changed(record.fid).holes = true; return {};
        case RecordKind::kRemove: return {};
        case RecordKind::kForget: {
            if (!has_key(record, KeyKind::kCopy)) return {};
            const auto key = read_copy_key(record.key);
            if (!key) return std::unexpected(key.error());
            dropped_.push_back(*key);
            return {};
        }
        case RecordKind::kPut:
        case RecordKind::kCommit: break;
    }
    if (!has_key(record, KeyKind::kObject)) return {};
    const auto fid = read_fid_key(KeyKind::kObject, record.key);
    if (!fid) return std::unexpected(fid.error());
    const auto object = read_object(record.value);
    if (!object) return std::unexpected(object.error());
    changed(*fid).to = *object;
    return {};
}

Result<void> ReleasedRules::check(Bytes records, const Grant& grant) {
    changed_.clear();
    dropped_.clear();
    RecordReader reader(records);
    for (;;) {
        const auto record = reader.next();
        ENSURE(record.has_value());
        if (!record->has_value()) break;
        const auto noted = note(**record);
        if (!noted) return noted;
    }
    if (!map_.may_have_released()) {
        // Most changes are of disks that have released nothing.
        const bool releases = std::ranges::any_of(
            changed_, [](const Changed& each) { return each.to && each.to->is_released; });
        if (!releases) return {};
    }
    for (const Changed& each : changed_) {
        const auto checked = check(each, grant);
        if (!checked) return checked;
    }
    return grant.accepts_loss ? Result<void>{} : check_dropped();
}

Result<void> ReleasedRules::check(const Changed& changed, const Grant& grant) {
    const auto found = map_.find(changed.fid);
    if (!found) return std::unexpected(found.error());
    const bool is_released = found->has_value() && (*found)->is_released;
    const bool stays = changed.to ? changed.to->is_released : is_released;
    if (grant.purpose == Grant::Purpose::kFromTape && grant.fid == changed.fid) {
        const bool is_new =
            !found->has_value() || (is_released && changed.to &&
                                    (*found)->content_version() < changed.to->content_version());
        return stays && is_new && !changed.extents ? Result<void>{} : released();
    }
    if (!is_released) {
        if (!stays) return {};
        if (changed.extents || !found->has_value() ||
            (*found)->content_version() != changed.to->content_version() ||
            (*found)->size_bytes != changed.to->size_bytes) {
            return uncovered();
        }
        const auto covered = map_.copies().cover(changed.fid, *changed.to);
        if (!covered) return std::unexpected(covered.error());
        return *covered ? Result<void>{} : uncovered();
    }
    const Object& object = **found;
    const bool is_granted = grant.purpose != Grant::Purpose::kNone && grant.fid == changed.fid &&
                            grant.content_version == object.content_version();
    if (stays) {
        if ((changed.extents || changed.holes) && !is_granted) return released();
        const bool is_same =
            !changed.to || (changed.to->content_version() == object.content_version() &&
                            changed.to->size_bytes == object.size_bytes);
        return is_same ? Result<void>{} : released();
    }
    const bool is_back = is_granted && grant.purpose == Grant::Purpose::kEnd &&
                         changed.to->content_version() == object.content_version() &&
                         changed.to->size_bytes == object.size_bytes;
    // Parts that are back already are holes of the same change.
    const bool is_emptied = changed.to->size_bytes == 0 && !changed.extents &&
                            changed.to->content_version() != object.content_version();
    return is_back || is_emptied ? Result<void>{} : released();
}

Result<void> ReleasedRules::check_dropped() {
    std::ranges::sort(dropped_);
    for (std::size_t i = 0; i < dropped_.size(); ++i) {
        const Fid fid = dropped_[i].fid;
        if (i > 0 && dropped_[i - 1].fid == fid) continue;
        const auto object = map_.find(fid);
        if (!object) return std::unexpected(object.error());
        if (!object->has_value() || !(*object)->is_released) continue;
        const auto covered = map_.copies().cover(fid, **object, dropped_);
        if (!covered) return std::unexpected(covered.error());
        if (!*covered) {
            return std::unexpected(
                Error{.code = Errc::kBusy, .context = "a released object needs the copy"});
        }
    }
    return {};
}

}  // namespace fopd::store

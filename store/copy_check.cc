#include "store/copy_check.h"

#include <string>

namespace fopd::store {

Result<void> CopyCheck::see(const IndexEntry& entry) {
    const auto kind = static_cast<KeyKind>(entry.key.front());
    const auto note = [](auto read, auto& seen) -> Result<void> {
        if (!read) return std::unexpected(read.error());
        seen.push_back(*read);
        return {};
    };
    if (kind == KeyKind::kCopy) return note(read_copy(entry.key, entry.value), copies_);
    if (kind == KeyKind::kPosition) return note(read_position(entry.key, entry.value), owners_);
    if (kind == KeyKind::kTotal) return note(read_total(entry.key, entry.value), totals_);
    const auto recall = read_recall(entry.value);
    if (!recall) return std::unexpected(recall.error());
    return note(read_fid_key(KeyKind::kRecall, entry.key), recalls_);
}

void CopyCheck::forget() {
    copies_.clear();
    owners_.clear();
    totals_.clear();
    recalls_.clear();
    released_.clear();
}

Result<void> CopyCheck::judge(std::vector<CheckFinding>& findings) {
    const auto judge_all = [&](const auto& seen, auto judge_one) -> Result<void> {
        for (const auto& each : seen) {
            const Result<void> judged = (this->*judge_one)(each, findings);
            if (!judged) return judged;
        }
        return {};
    };
    for (const CartridgeTotal& each : totals_) {
        const CartridgeUse use = volume_.map().copies().use_of(each.cartridge.vsn);
        if (use.live_copies <= each.copies && use.live_bytes <= each.bytes) continue;
        findings.push_back({.reason = "cartridge " + std::string(text_of(each.cartridge.vsn)) +
                                      " has more live copies than were recorded"});
    }
    auto judged = judge_all(copies_, &CopyCheck::judge_copy);
    if (judged) judged = judge_all(owners_, &CopyCheck::judge_position);
    if (judged) judged = judge_all(recalls_, &CopyCheck::judge_recall);
    if (judged) judged = judge_all(released_, &CopyCheck::judge_released);
    forget();
    return judged;
}

Result<void> CopyCheck::judge_copy(const Copy& copy, std::vector<CheckFinding>& findings) {
    const auto object = volume_.map().find(copy.fid);
    if (!object) return std::unexpected(object.error());
    const char* problem = nullptr;
    if (!object->has_value()) {
        problem = "a copy of no object";
    } else if (!is_of_content(copy, **object)) {
        problem = "a copy of an older content is recorded as live";
    } else if (copy.end() > (*object)->size_bytes) {
        problem = "a copy of bytes behind the end of its object";
    }
    const auto owner = volume_.map().copies().at(copy.cartridge.vsn, copy.position);
    if (!owner) return std::unexpected(owner.error());
    if (*owner != key_of(copy))
        problem = "the position of a copy is not in the index of its cartridge";
    if (problem != nullptr) findings.push_back({.reason = problem, .object = copy.fid});
    return {};
}

Result<void> CopyCheck::judge_position(const PositionOwner& owner,
                                       std::vector<CheckFinding>& findings) {
    const auto copy = volume_.map().copies().find(owner.key);
    if (!copy) return std::unexpected(copy.error());
    if (copy->has_value() && (*copy)->position == owner.position) return {};
    findings.push_back({.reason = "an entry for a position on tape without a copy of an object",
                        .object = owner.key.fid});
    return {};
}

Result<void> CopyCheck::judge_recall(Fid fid, std::vector<CheckFinding>& findings) {
    const auto object = volume_.map().find(fid);
    if (!object) return std::unexpected(object.error());
    if (!object->has_value())
        findings.push_back({.reason = "a recall of an object that does not exist", .object = fid});
    return {};
}

// Looks the object up again, for the numbers only: an object that the map returns is valid until
// the next search.
Result<void> CopyCheck::judge_released(Fid fid, std::vector<CheckFinding>& findings) {
    const auto object = volume_.map().find(fid);
    if (!object) return std::unexpected(object.error());
    if (!object->has_value() || !(*object)->is_released) return {};
    const auto covered = volume_.map().copies().cover(fid, **object);
    if (!covered) return std::unexpected(covered.error());
    if (!*covered) {
        findings.push_back(
            {.reason = "bytes of a released object have no copy on a cartridge", .object = fid});
    }
    return {};
}

}  // namespace fopd::store

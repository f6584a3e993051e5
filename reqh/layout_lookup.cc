#include "reqh/layout_lookup.h"

#include "core/ensure.h"
#include "reqh/executors.h"

namespace fopd::reqh {

Granted<objects::PoolId> LayoutLookup::find_pool() const {
    const objects::LayoutPool* const pool = fop_.stores().layout().find_pool(fop_.header().pool);
    if (pool == nullptr) return refused(fop::Status::kWrongPool, "there is no pool of that name");
    return pool->id;
}

Granted<> LayoutLookup::check_quota(objects::PoolOwner whose, objects::Amount wanted) {
    using Verdict = objects::QuotaAccount::Verdict;
    const objects::LayoutPool* const pool = fop_.stores().layout().find_pool(whose.pool);
    ENSURE(pool != nullptr);
    RefusalWords::FullAccount full{
        .owner = whose.owner, .pool = pool->name, .account = &pool->quota->look_at(whose.owner)};
    const Verdict of_owner = full.account->check(wanted);
    if (of_owner != Verdict::kTaken) {
        full.lacks_objects = of_owner == Verdict::kTooManyObjects;
        return refused(words_.over_quota(full, wanted));
    }
    full.owner = RefusalWords::kAllOwners;
    full.account = &pool->quota->whole();
    const Verdict of_pool = full.account->check(wanted);
    if (of_pool == Verdict::kTaken) return {};
    full.lacks_objects = of_pool == Verdict::kTooManyObjects;
    return refused(words_.over_quota(full, wanted));
}

Granted<std::uint32_t> LayoutLookup::locality_of(store::Slot slot) {
    const objects::LayoutSlot* const found = fop_.stores().layout().find_slot(slot);
    if (found == nullptr) return refused(fop::Status::kNotFound, "no disk has that slot");
    const bool is_there = found->state == objects::SlotState::kOnline ||
                          found->state == objects::SlotState::kReadOnly;
    if (!is_there) return refused(why_not_there(slot));
    return found->locality;
}

// An object that was on a disk that has gone in order is gone, too, and so is a lost one.
Refusal LayoutLookup::why_not_there(store::Slot slot) {
    const bool is_about_object = executor_of(fop_.type()).about == About::kObject;
    if (is_about_object && fop_.stores().was_released(slot)) {
        return {.status = fop::Status::kNotFound,
                .words = "no such object: its disk was removed from the node"};
    }
    if (is_about_object && fop_.stores().was_written_off(slot)) {
        return {.status = fop::Status::kNotFound,
                .words = "there is no such object any more: its disk was written off"};
    }
    const objects::LayoutSlot* const found = fop_.stores().layout().find_slot(slot);
    return words_.medium_missing("its disk is not there",
                                 found == nullptr ? std::string_view() : found->disk);
}

Refusal LayoutLookup::why_no_name(objects::PoolId pool) {
    const auto known = check_names_known(pool);
    if (!known) return known.error();
    const objects::LayoutPool* const found = fop_.stores().layout().find_pool(pool);
    if (found != nullptr) return words_.no_such_name(found->name);
    return {.status = fop::Status::kNotFound, .words = "no object has that name"};
}

Granted<> LayoutLookup::check_names_known(objects::PoolId pool, std::string_view words) {
    const objects::LayoutPool* const known = fop_.stores().layout().find_pool(pool);
    if (known == nullptr || known->missing.empty()) return {};
    return refused(words_.medium_missing(words, known->missing));
}

Granted<objects::HomeVolume*> LayoutLookup::find_home(store::Slot slot) {
    objects::HomeVolume* const home = fop_.stores().find(slot);
    if (home == nullptr) return refused(why_not_there(slot));
    return home;
}

}  // namespace fopd::reqh

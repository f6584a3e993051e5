#include "reqh/access_check.h"

#include <string>

#include "reqh/caller.h"
#include "reqh/denial.h"

namespace fopd::reqh {

bool AccessCheck::may_administer(const Matter& matter) const {
    return fop_.caller().rights.cover(fop::kAdmin) || fop_.lent().lends(fop::kAdmin, matter);
}

bool AccessCheck::may_read(store::Fid fid, const store::Object& object) const {
    if (fop_.caller().rights.cover(fop::kRead) &&
        objects::may(actor_of(fop_.caller()), object, objects::Access::kRead))
        return true;
    return fop_.lent().lends(fop::kRead, {.pool = object.pool, .object = fid});
}

Granted<> AccessCheck::check_right(const Matter& matter) {
    const fop::Rights needed = fop_.type().rights;
    const fop::Rights own = fop_.caller().rights;
    if (own.cover(needed)) return {};
    const auto why_not = fop_.lent().why_not(needed, matter);
    if (!why_not) return {};
    return refused(words_.denied(denial_by_rights(needed, own, *why_not)));
}

Granted<> AccessCheck::check_mode(store::Fid fid, const store::Object& object, const Wish& wish) {
    if (objects::may(actor_of(fop_.caller()), object, wish.access)) return {};
    const Matter matter{.pool = object.pool, .object = fid};
    const auto why_not = fop_.lent().why_not(wish.lent, matter);
    if (!why_not) return {};
    const std::string words =
        wish.words.empty() ? fop::to_text(fop_.type().rights) : std::string(wish.words);
    const Looks looks = may_read(fid, object) ? Looks::kKnown : Looks::kHidden;
    return refused(words_.denied(denial_by_mode(words, object, looks, *why_not)));
}

}  // namespace fopd::reqh

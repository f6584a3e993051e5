#pragma once

#include <string_view>

#include "fop/rights.h"
#include "objects/access.h"
#include "reqh/lent.h"
#include "reqh/refusal.h"
#include "reqh/refusal_words.h"
#include "reqh/running_fop.h"
#include "store/fid.h"
#include "store/object.h"

namespace fopd::reqh {

// Whether the caller of a fop may do something, by its own rights and the object's owner, group and
// mode, or by the rights that its token lends.
class AccessCheck {
public:
    // Both arguments outlive this object.
    AccessCheck(const RunningFop& fop, RefusalWords& words) : fop_(fop), words_(words) {}

    // The access that is needed to an object, and the rights that a token must lend for it.
    struct Wish {
        objects::Access access = objects::Access::kNone;
        fop::Rights lent{};
        // The denied action, for people; empty: the name of the fop's right.
        std::string_view words{};
    };

    // Whether the caller has the admin right, or its token lends that right for `matter`.
    bool may_administer(const Matter& matter) const;
    // Whether the caller may read this object. Another locality may call this while the fop's own
    // locality waits for it.
    bool may_read(store::Fid fid, const store::Object& object) const;
    // kDenied unless the caller has the rights that this type of fop needs.
    Granted<> check_right(const Matter& matter);
    // kDenied unless the caller has that access to the object. REQUIRES: check_right() was granted.
    Granted<> check_mode(store::Fid fid, const store::Object& object, const Wish& wish);

private:
    const RunningFop& fop_;
    RefusalWords& words_;
};

}  // namespace fopd::reqh

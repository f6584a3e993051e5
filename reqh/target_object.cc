#include "reqh/target_object.h"

namespace fopd::reqh {

Granted<> TargetObject::load(store::Fid fid, objects::Access access) {
    fop_.enter(Phase::kLoadObject);
    const auto certain = fop_.check_certain(fid);
    if (!certain) return certain;
    const auto found = fop_.volume().map().find(fid);
    if (!found) return refused(found.error());
    if (!found->has_value()) return refused(fop::Status::kNotFound, "there is no such object");
    loaded_.set(**found);
    known_ = fid;
    AccessCheck::Wish wish{.access = access, .lent = fop_.type().rights, .words = {}};
    if (access == objects::Access::kOwn) {
        wish.lent = wish.lent | fop::kAdmin;
        wish.words = "change its owner, group or mode";
    }
    return check(fid, loaded_.get(), wish);
}

Granted<> TargetObject::load_upload(store::Fid fid) {
    fop_.enter(Phase::kLoadObject);
    const auto certain = fop_.check_certain(fid);
    if (!certain) return certain;
    const auto found = fop_.volume().map().find_upload(fid);
    if (!found) return refused(found.error());
    if (!found->has_value()) return refused(fop::Status::kNotFound, "there is no such upload");
    loaded_.set((*found)->object);
    known_ = fid;
    const AccessCheck::Wish wish{.access = objects::Access::kOwn,
                                 .lent = fop_.type().rights | fop::kAdmin,
                                 .words = "use another principal's upload"};
    return check(fid, loaded_.get(), wish);
}

Granted<> TargetObject::check_on_disk() const {
    if (!get().is_released) return {};
    return refused(fop::Status::kStaging, fop::status_row(fop::Status::kStaging).summary);
}

Granted<> TargetObject::look_at_replaced(store::Fid fid) {
    const auto certain = fop_.check_certain(fid);
    if (!certain) return certain;
    const auto found = fop_.volume().map().find(fid);
    if (!found) return refused(found.error());
    if (!found->has_value()) return refused(fop::Status::kNotFound, "there is no such object");
    const AccessCheck::Wish wish{.access = objects::Access::kWrite,
                                 .lent = fop::kWrite,
                                 .words = "replace the object that has the name"};
    return access_.check_mode(fid, **found, wish);
}

Granted<> TargetObject::check(store::Fid fid, const store::Object& object,
                              const AccessCheck::Wish& wish) {
    if (!fop_.header().pool.empty()) {
        const auto pool = layout_.find_pool();
        if (!pool) return refused(pool.error());
        if (*pool != object.pool) {
            return refused(fop::Status::kWrongPool, "the object is in another pool");
        }
    }
    fop_.enter(Phase::kAuthorise);
    const auto right = access_.check_right({.pool = object.pool, .object = fid});
    if (!right) return right;
    return access_.check_mode(fid, object, wish);
}

objects::ObjectState TargetObject::durable_state(store::Fid fid) const {
    if (const auto state = fop_.home().locks().durable_state(fid)) return *state;
    const store::Object& now = get();
    return {.size_bytes = now.size_bytes, .version = now.version, .changed = now.changed};
}

}  // namespace fopd::reqh

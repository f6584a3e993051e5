#pragma once

#include <optional>

#include "objects/access.h"
#include "objects/loaded_object.h"
#include "objects/range_locks.h"
#include "reqh/access_check.h"
#include "reqh/layout_lookup.h"
#include "reqh/refusal.h"
#include "reqh/running_fop.h"
#include "store/fid.h"
#include "store/object.h"

namespace fopd::reqh {

// The object or upload that a fop is about: a copy of its record, which the caller may access.
class TargetObject {
public:
    // All outlive it.
    TargetObject(const RunningFop& fop, const LayoutLookup& layout, AccessCheck& access)
        : fop_(fop), layout_(layout), access_(access) {}

    // Loads the object: kNotFound, kWrongPool, kDenied.
    Granted<> load(store::Fid fid, objects::Access access);
    // Loads an upload, which belongs to the principal that began it.
    Granted<> load_upload(store::Fid fid);
    // The record that was loaded last.
    const store::Object& get() const { return loaded_.get(); }
    // The record of the object or upload `fid` as it was loaded last; null: it was not loaded.
    const store::Object* known(store::Fid fid) const {
        return known_ == fid ? &loaded_.get() : nullptr;
    }
    void forget() { known_.reset(); }
    // kStaging if its bytes are on tape only. The operation then asks for a recall of it.
    Granted<> check_on_disk() const;
    // Whether the caller may remove another object, which loses its name to this one.
    Granted<> look_at_replaced(store::Fid fid);
    // The newest state of the object that a reply may show, i.e. that no crash can undo.
    objects::ObjectState durable_state(store::Fid fid) const;

private:
    Granted<> check(store::Fid fid, const store::Object& object, const AccessCheck::Wish& wish);

    const RunningFop& fop_;
    const LayoutLookup& layout_;
    AccessCheck& access_;
    objects::LoadedObject loaded_;
    std::optional<store::Fid> known_;
};

}  // namespace fopd::reqh

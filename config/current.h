#pragma once

#include "config/schema.h"

namespace fopd::config {

// The configuration in force. A reload replaces it as a whole.
class Current {
public:
    explicit Current(SnapshotPtr snapshot);

    // The snapshot in force. Settings that need a restart keep their old values in it. A copy of
    // the pointer keeps it alive.
    const SnapshotPtr& snapshot() const { return newest_; }

    // The result of a reload.
    struct Applied {
        Changes live;     // In force now.
        Changes waiting;  // The old value stays in force until a restart.
    };

    // Applies all changes that can take effect at run time. REQUIRES: `next` has the same schema.
    Applied apply(const SnapshotPtr& next);

private:
    SnapshotPtr newest_;
};

}  // namespace fopd::config

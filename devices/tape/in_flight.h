#pragma once

#include "core/ensure.h"

namespace fopd::devices {

// Marks an operation of a drive as in flight. REQUIRES: no other is. The flag outlives it.
class InFlight {
public:
    explicit InFlight(bool& flag) : flag_(flag) {
        ENSURE(!flag_);
        flag_ = true;
    }
    ~InFlight() { flag_ = false; }
    InFlight(const InFlight&) = delete;
    InFlight& operator=(const InFlight&) = delete;

private:
    bool& flag_;
};

}  // namespace fopd::devices

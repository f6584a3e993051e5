#include "devices/power.h"

namespace fopd::devices {

void Power::cut() {
    if (!on_) return;
    on_ = false;
    if (on_cut_) on_cut_();
}

}  // namespace fopd::devices

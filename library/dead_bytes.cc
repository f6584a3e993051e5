#include "library/dead_bytes.h"

#include <algorithm>
#include <string_view>

namespace fopd::library {

void add_dead_bytes(objects::Stores& stores, const std::vector<Cartridge>& cartridges,
                    DeadBytes& dead) {
    for (const auto& home : stores.volumes()) {
        for (const auto& [vsn, use] : home->volume().cartridges()) {
            const auto cartridge =
                std::ranges::find(cartridges, store::text_of(vsn), &Cartridge::vsn);
            // What an earlier label had is gone, and not among the used bytes.
            const bool is_there =
                cartridge != cartridges.end() && cartridge->generation == use.cartridge.generation;
            if (is_there) dead[cartridge->vsn] += use.dead_bytes();
        }
    }
}

}  // namespace fopd::library

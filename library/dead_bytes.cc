#include "library/dead_bytes.h"

namespace fopd::library {

void add_dead_bytes(objects::Stores& stores, const std::vector<Cartridge>& cartridges,
                    DeadBytes& dead) {
    for (const auto& home : stores.volumes()) {
        for (const auto& [vsn, use] : home->volume().cartridges()) {
            // Copies of before the last format are gone, and not among the used bytes.
            const Cartridge* const cartridge = find_cartridge(cartridges, use.cartridge);
            if (cartridge != nullptr) dead[cartridge->vsn] += use.dead_bytes();
        }
    }
}

}  // namespace fopd::library

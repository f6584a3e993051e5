#include "library/media_bytes.h"

#include "objects/home_volume.h"

namespace fopd::library {

void add_media_bytes(objects::Stores& stores, const std::vector<Cartridge>& cartridges,
                     MediaBytes& bytes) {
    for (const auto& home : stores.volumes()) {
        for (const auto& [vsn, use] : home->volume().cartridges()) {
            // Copies of before the last format are gone, and not among the used bytes.
            const Cartridge* const cartridge = find_cartridge(cartridges, use.cartridge);
            if (cartridge == nullptr) continue;
            MediumBytes& of_it = bytes[cartridge->vsn];
            of_it.live += use.live_bytes;
            of_it.dead += use.dead_bytes();
        }
    }
}

MediumBytes bytes_of(const MediaBytes& bytes, const Cartridge& cartridge) {
    const auto found = bytes.find(cartridge.vsn);
    return found == bytes.end() ? MediumBytes{} : found->second;
}

}  // namespace fopd::library

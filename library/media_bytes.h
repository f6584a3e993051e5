#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "library/cartridge.h"
#include "objects/stores.h"

namespace fopd::library {

// The bytes of copies on a cartridge.
struct MediumBytes {
    std::uint64_t live = 0;  // Copies that belong to objects.
    std::uint64_t dead = 0;  // Copies that no object needs any more.
};

// The bytes of copies on each cartridge that has copies, by its volume serial number.
using MediaBytes = std::map<std::string, MediumBytes, std::less<>>;

// Adds the bytes of the copies in the records of a locality's disks. Called on the locality's
// reactor.
void add_media_bytes(objects::Stores& stores, const std::vector<Cartridge>& cartridges,
                     MediaBytes& bytes);

// The bytes of copies on the cartridge; zeros if `bytes` does not have it.
MediumBytes bytes_of(const MediaBytes& bytes, const Cartridge& cartridge);

}  // namespace fopd::library

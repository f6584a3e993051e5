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
    std::uint64_t live = 0;  // That objects have.
    std::uint64_t dead = 0;  // That no object needs.
};

// Those of each cartridge that has some, by its volume serial number.
using MediaBytes = std::map<std::string, MediumBytes, std::less<>>;

// Adds those that the disks of a locality know of. Called on its reactor.
void add_media_bytes(objects::Stores& stores, const std::vector<Cartridge>& cartridges,
                     MediaBytes& bytes);

// Of a cartridge; zeros if it is not listed.
MediumBytes bytes_of(const MediaBytes& bytes, const Cartridge& cartridge);

}  // namespace fopd::library

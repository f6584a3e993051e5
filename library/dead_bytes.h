#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "library/cartridge.h"
#include "objects/stores.h"

namespace fopd::library {

// For each cartridge, by its volume serial number: the bytes of copies that no object needs.
using DeadBytes = std::map<std::string, std::uint64_t, std::less<>>;

// Adds those that the disks of a locality know of. Called on its reactor.
void add_dead_bytes(objects::Stores& stores, const std::vector<Cartridge>& cartridges,
                    DeadBytes& dead);

}  // namespace fopd::library

#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "devices/tape/changer.h"
#include "library/cartridge.h"
#include "library/media_table.h"

namespace fopd::library {

// Cartridges that cannot be told from others, by barcode, with the reason. Records of copies name a
// cartridge by its volume serial number, the first six characters of the barcode. If several have
// the same number, the one with data keeps its state, also while it is not in the library.
using Doubles = std::map<std::string, std::string_view>;

// REQUIRES: the table has every cartridge in the elements that has a valid barcode, but for those
// for which it has no room.
Doubles find_doubles(const std::vector<devices::LibraryElement>& elements, const MediaTable& table);

}  // namespace fopd::library

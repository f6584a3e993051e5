#include "library/doubles.h"

#include <algorithm>
#include <tuple>

#include "store/tape/labels.h"

namespace fopd::library {

namespace {

constexpr std::string_view kSameCharacters = "another cartridge has the same first six characters";
constexpr std::string_view kSameBarcode = "several cartridges have the barcode";

std::string vsn_of(const std::string& barcode) {
    return barcode.substr(0, store::Vsn::kCharacters);
}

}  // namespace

Doubles find_doubles(const std::vector<devices::LibraryElement>& elements,
                     const MediaTable& table) {
    std::map<std::string, std::size_t> present;
    for (const devices::LibraryElement& each : elements) {
        if (each.full && is_barcode(each.barcode)) ++present[each.barcode];
    }
    // The cartridge that keeps each number: the one with data, else a labelled one, else the first
    // of the table.
    std::map<std::string, const Cartridge*> owners;
    const auto rank = [](const Cartridge& each) {
        return std::tuple(each.files > 0, each.generation > 0);
    };
    for (const Cartridge& each : table.all()) {
        const bool counts = each.generation > 0 || present.contains(each.barcode);
        if (!counts) continue;
        const Cartridge*& owner = owners[vsn_of(each.barcode)];
        if (owner == nullptr || rank(each) > rank(*owner)) owner = &each;
    }
    Doubles doubles;
    for (const auto& [barcode, count] : present) {
        if (count > 1) {
            doubles.emplace(barcode, kSameBarcode);
            continue;
        }
        const auto owner = owners.find(vsn_of(barcode));
        if (owner == owners.end() || owner->second->barcode == barcode) continue;
        doubles.emplace(barcode, kSameCharacters);
    }
    return doubles;
}

}  // namespace fopd::library

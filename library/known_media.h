#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "store/copy.h"

namespace fopd::library {

// The facts about a cartridge from which homes decide whether copies on it count.
struct KnownMedium {
    std::uint32_t generation = 0;
    bool is_good = false;  // Its copies can be read, as far as the library knows.
    // A repack moves its copies to other cartridges: copies on this one do not count.
    bool is_repacked = false;
};
using KnownMedia = std::map<store::VsnText, KnownMedium>;

// The copies of an object that count when its home decides whether it needs a further copy.
struct CountedCopies {
    std::vector<store::Copy> copies{};
    bool moves = false;  // The object also has a copy on a cartridge that is being repacked.
};

// All copies count, unless one is on a cartridge that is being repacked: then only copies on other,
// good cartridges count.
inline CountedCopies counted_copies(const KnownMedia& media, std::vector<store::Copy> copies) {
    CountedCopies counted{.copies = std::move(copies)};
    const auto known = [&media](const store::Copy& copy) {
        const auto found = media.find(copy.cartridge.vsn);
        const bool is_known =
            found != media.end() && found->second.generation == copy.cartridge.generation;
        return is_known ? found->second : KnownMedium{};
    };
    for (const store::Copy& each : counted.copies) counted.moves |= known(each).is_repacked;
    if (!counted.moves) return counted;
    std::erase_if(counted.copies, [&known](const store::Copy& each) {
        const KnownMedium medium = known(each);
        return medium.is_repacked || !medium.is_good;
    });
    return counted;
}

}  // namespace fopd::library

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "library/cartridge.h"

namespace fopd::library {

// The table of media: a record of each cartridge that the node's library has or had. Pure; its text
// is the file `media` of the data directory (docs/formats/data_dir.md).
class MediaTable {
public:
    static constexpr std::size_t kCartridgesMax = 65'536;
    static constexpr std::size_t kReasonBytesMax = 200;

    // kUnsupported: a later version has written the text. kCorrupt: it is no table, or damaged.
    static Result<MediaTable> parse(std::string_view text);
    std::string text() const;

    // All cartridges, by ascending id.
    const std::vector<Cartridge>& all() const { return cartridges_; }
    const Cartridge* find(CartridgeId id) const;
    const Cartridge* find(std::string_view barcode) const;

    // Adds a blank cartridge with the next id. Null: the table is full. The result is valid until
    // the next add(). REQUIRES: the barcode is valid, and not in the table.
    Cartridge* add(std::string_view barcode);
    // The cartridge with this id; the caller may change all of it except id and barcode. Null: the
    // table has no such cartridge.
    Cartridge* change(CartridgeId id);
    // Sets the state and its reason, which is shortened to kReasonBytesMax. REQUIRES: the cartridge
    // is in the table.
    void set_state(CartridgeId id, CartridgeState state, std::string_view reason);
    // Removes a cartridge. Its id is not used again. REQUIRES: the cartridge is in the table.
    void forget(CartridgeId id);

    // Whether an administrator has taken down the drive with this serial number.
    bool is_drive_down(std::string_view serial) const { return drives_down_.contains(serial); }
    void set_drive_down(std::string_view serial, bool is_down);

    friend bool operator==(const MediaTable&, const MediaTable&) = default;

private:
    CartridgeId next_ = 1;
    std::set<std::string, std::less<>> drives_down_;
    std::vector<Cartridge> cartridges_;
};

// Whether the text is 6 to 32 capital letters and digits. The first six are the volume serial
// number.
bool is_barcode(std::string_view text);

}  // namespace fopd::library

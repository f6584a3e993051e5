#include "devices/tape/cartridge_text.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>

#include "core/whole_number.h"
#include "devices/tape/drive_model.h"
#include "devices/tape/tape_error.h"

namespace fopd::devices {

namespace {

constexpr std::string_view kBlanks = " \t\r";

std::string_view trimmed(std::string_view text) {
    const std::size_t first = text.find_first_not_of(kBlanks);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

// Takes the first line from `text`.
std::string_view take_line(std::string_view& text) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    return line;
}

std::unexpected<Error> wrong(const char* context) {
    return tape_refused(Errc::kInvalid, context);
}

// Text that labels and memories of cartridges can have.
bool is_label_text(std::string_view text) {
    return text.size() <= CartridgeInfo::kTextMax &&
           std::ranges::all_of(text, [](char each) { return each >= ' ' && each <= '~'; });
}

std::optional<bool> truth(std::string_view value) {
    if (value == "yes") return true;
    if (value == "no") return false;
    return std::nullopt;
}

Result<void> set_text(std::string& to, std::string_view value) {
    if (!is_label_text(value)) return wrong("text of a cartridge is too long or not ASCII");
    to = value;
    return {};
}

Result<void> set_truth(bool& to, std::string_view value) {
    const auto read = truth(value);
    if (!read) return wrong("cartridge has a value other than yes and no");
    to = *read;
    return {};
}

Result<void> set_barcode(CartridgeInfo& info, std::string_view value) {
    return set_text(info.barcode, value);
}
Result<void> set_technology(CartridgeInfo& info, std::string_view value) {
    if (find_drive_model(value) == nullptr) return wrong("cartridge of unknown technology");
    info.technology = value;
    return {};
}
Result<void> set_serial(CartridgeInfo& info, std::string_view value) {
    return set_text(info.serial, value);
}
Result<void> set_capacity(CartridgeInfo& info, std::string_view value) {
    const auto bytes = core::whole_number(value);
    if (!bytes) return wrong("capacity of a cartridge is not a number of bytes");
    info.capacity_bytes = *bytes;
    return {};
}
Result<void> set_write_protected(CartridgeInfo& info, std::string_view value) {
    return set_truth(info.write_protected, value);
}
Result<void> set_cleaning(CartridgeInfo& info, std::string_view value) {
    return set_truth(info.cleaning, value);
}

struct Key {
    std::string_view name;
    Result<void> (*set)(CartridgeInfo&, std::string_view);
};
constexpr std::array kKeys{
    Key{.name = "barcode", .set = set_barcode},
    Key{.name = "technology", .set = set_technology},
    Key{.name = "serial", .set = set_serial},
    Key{.name = "capacity_bytes", .set = set_capacity},
    Key{.name = "write_protected", .set = set_write_protected},
    Key{.name = "cleaning", .set = set_cleaning},
};

void append_line(std::string& text, std::string_view key, std::string_view value) {
    text.append(key).append(":");
    if (!value.empty()) text.append(" ").append(value);
    text.append("\n");
}

}  // namespace

Result<CartridgeInfo> parse_cartridge(std::string_view text) {
    CartridgeInfo info;
    std::array<bool, kKeys.size()> seen{};
    while (!text.empty()) {
        const std::string_view line = trimmed(take_line(text));
        if (line.empty() || line.front() == '#') continue;
        const std::size_t colon = line.find(':');
        if (colon == std::string_view::npos) return wrong("line of a cartridge without a colon");
        const auto* const key =
            std::ranges::find(kKeys, trimmed(line.substr(0, colon)), &Key::name);
        if (key == kKeys.end()) return wrong("unknown key of a cartridge");
        bool& again = seen[static_cast<std::size_t>(key - kKeys.begin())];
        if (std::exchange(again, true)) return wrong("key of a cartridge is there twice");
        const auto set = key->set(info, trimmed(line.substr(colon + 1)));
        if (!set) return std::unexpected(set.error());
    }
    return info;
}

std::string format_cartridge(const CartridgeInfo& info) {
    std::string text;
    append_line(text, "barcode", info.barcode);
    append_line(text, "technology", info.technology);
    append_line(text, "serial", info.serial);
    if (info.capacity_bytes != 0) {
        append_line(text, "capacity_bytes", std::to_string(info.capacity_bytes));
    }
    append_line(text, "write_protected", info.write_protected ? "yes" : "no");
    if (info.cleaning) append_line(text, "cleaning", "yes");
    return text;
}

bool is_cartridge_name(std::string_view name) {
    constexpr std::size_t kNameMax = 64;
    const auto allowed = [](char each) {
        return (each >= '0' && each <= '9') || (each >= 'A' && each <= 'Z') ||
               (each >= 'a' && each <= 'z') || each == '-' || each == '_' || each == '.';
    };
    return !name.empty() && name.size() <= kNameMax && name.front() != '.' &&
           std::ranges::all_of(name, allowed);
}

CartridgePositions parse_positions(std::string_view text) {
    CartridgePositions positions;
    std::set<std::string, std::less<>> placed;
    while (!text.empty()) {
        const std::string_view line = trimmed(take_line(text));
        const std::size_t blank = line.find_first_of(kBlanks);
        if (blank == std::string_view::npos) continue;
        const auto address = core::whole_number<std::uint32_t>(line.substr(0, blank));
        const std::string_view name = trimmed(line.substr(blank));
        if (!address || !is_cartridge_name(name) || placed.contains(name)) continue;
        if (positions.emplace(*address, name).second) placed.emplace(name);
    }
    return positions;
}

std::string format_positions(const CartridgePositions& positions) {
    std::string text;
    for (const auto& [address, name] : positions) {
        text.append(std::to_string(address)).append(" ").append(name).append("\n");
    }
    return text;
}

}  // namespace fopd::devices

#include "devices/tape/scsi_pages.h"

#include <algorithm>
#include <array>
#include <utility>

namespace fopd::devices {

namespace {

// Without spaces and zeros around it; control characters become '?'.
std::string printed_text(ScsiBytes bytes) {
    std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const auto is_blank = [](char c) { return c == ' ' || c == '\0'; };
    while (!text.empty() && is_blank(text.back())) text.pop_back();
    const auto first = std::ranges::find_if_not(text, is_blank);
    text.erase(text.begin(), first);
    std::ranges::replace_if(text, [](char c) { return c < ' ' || c > '~'; }, '?');
    return text;
}

// The body of a vital product data page; shorter than announced if the page is truncated.
ScsiBytes vpd_body(ScsiBytes page, std::uint8_t code) {
    constexpr std::size_t kHeader = 4;
    if (page.size() < kHeader || byte_at(page, 1) != code) return {};
    const ScsiBytes rest = page.subspan(kHeader);
    return rest.first(std::min<std::size_t>(rest.size(), two_at(page, 2)));
}

bool is_decimal(char c) {
    return c >= '0' && c <= '9';
}

}  // namespace

ScsiDeviceType scsi_device_type(std::uint8_t number) {
    const auto type = static_cast<ScsiDeviceType>(number);
    const bool is_known = type == ScsiDeviceType::kTape || type == ScsiDeviceType::kChanger;
    return is_known ? type : ScsiDeviceType::kOther;
}

std::optional<Inquiry> parse_inquiry(ScsiBytes bytes) {
    if (bytes.size() < 32) return std::nullopt;
    // The upper bits say whether there is a device.
    if ((byte_at(bytes, 0) & 0xe0U) != 0) return std::nullopt;
    Inquiry inquiry;
    inquiry.type = scsi_device_type(byte_at(bytes, 0));
    inquiry.vendor = printed_text(bytes.subspan(8, 8));
    inquiry.product = printed_text(bytes.subspan(16, 16));
    return inquiry;
}

std::optional<Designator> parse_designator(ScsiBytes bytes) {
    constexpr std::size_t kHeader = 4;
    if (bytes.size() < kHeader) return std::nullopt;
    const std::size_t size = byte_at(bytes, 3);
    if (size == 0 || bytes.size() - kHeader < size) return std::nullopt;
    const ScsiBytes value = bytes.subspan(kHeader, size);
    Designator designator;
    designator.kind = byte_at(bytes, 1) & 0x0fU;
    designator.is_text = (byte_at(bytes, 0) & 0x0fU) != 1;
    designator.value = designator.is_text
                           ? printed_text(value)
                           : std::string(reinterpret_cast<const char*>(value.data()), size);
    if (designator.value.empty()) return std::nullopt;
    return designator;
}

std::string parse_serial(ScsiBytes page) {
    return printed_text(vpd_body(page, 0x80));
}

std::vector<Designator> parse_designators(ScsiBytes page) {
    std::vector<Designator> designators;
    ScsiBytes rest = vpd_body(page, 0x83);
    while (rest.size() > 4) {
        const std::size_t size = std::min<std::size_t>(rest.size(), 4UL + byte_at(rest, 3));
        const bool is_of_device = (byte_at(rest, 1) & 0x30U) == 0;
        auto designator = parse_designator(rest.first(size));
        if (is_of_device && designator) designators.push_back(*std::move(designator));
        rest = rest.subspan(size);
    }
    return designators;
}

bool names_device(const Designator& of_element, std::string_view serial,
                  std::span<const Designator> of_device) {
    const bool is_same = std::ranges::any_of(of_device, [&](const Designator& each) {
        return each.is_text == of_element.is_text && each.value == of_element.value;
    });
    if (is_same) return true;
    if (!of_element.is_text || serial.empty()) return false;
    // Vendor, product and serial number, or the last alone.
    const std::string_view text = of_element.value;
    if (!text.ends_with(serial)) return false;
    if (text.size() == serial.size()) return true;
    constexpr std::size_t kVendorAndProduct = 24;
    const char before = text[text.size() - serial.size() - 1];
    return before == ' ' || text.size() - serial.size() == kVendorAndProduct;
}

std::string technology_of_product(std::string_view product) {
    for (const std::string_view mark : {"TD", "HH", "FH", "LTO-", "LTO", "Ultrium ", "ULTRIUM "}) {
        for (std::size_t found = product.find(mark); found != std::string_view::npos;
             found = product.find(mark, found + 1)) {
            std::string_view digits = product.substr(found + mark.size());
            std::size_t count = 0;
            while (count < digits.size() && is_decimal(digits[count])) ++count;
            digits = digits.substr(0, count);
            // "TH" and "HH" of other names have none.
            if (count == 1 || digits == "10") return "lto" + std::string(digits);
        }
    }
    return {};
}

std::string technology_of_density(std::uint8_t density) {
    // As SSC and the vendors list them; 0x5d is a cartridge of the seventh generation that was
    // formatted for drives of the eighth.
    static constexpr std::array<std::pair<std::uint8_t, std::string_view>, 6> kDensities{
        {{0x58, "lto5"},
         {0x5a, "lto6"},
         {0x5c, "lto7"},
         {0x5d, "lto8"},
         {0x5e, "lto8"},
         {0x60, "lto9"}}};
    const auto found = std::ranges::find_if(
        kDensities, [density](const auto& each) { return each.first == density; });
    return found == kDensities.end() ? std::string() : std::string(found->second);
}

std::optional<TapeMode> parse_tape_mode(ScsiBytes bytes) {
    if (bytes.size() < 4) return std::nullopt;
    TapeMode mode;
    mode.write_protected = (byte_at(bytes, 2) & 0x80U) != 0;
    if (byte_at(bytes, 3) >= 8 && bytes.size() >= 12) mode.density = byte_at(bytes, 4);
    return mode;
}

CartridgeMemory parse_attributes(ScsiBytes bytes) {
    CartridgeMemory memory;
    if (bytes.size() < 4) return memory;
    ScsiBytes rest = bytes.subspan(4);
    rest = rest.first(std::min<std::size_t>(rest.size(), four_at(bytes, 0)));
    constexpr std::size_t kHeader = 5;
    while (rest.size() >= kHeader) {
        const std::uint16_t id = two_at(rest, 0);
        const std::size_t size = two_at(rest, 3);
        if (rest.size() - kHeader < size) break;
        const ScsiBytes value = rest.subspan(kHeader, size);
        // In MiB.
        if (id == 0x0001 && size == 8) {
            const auto mebibytes = eight_at(value, 0);
            if (mebibytes < 1ULL << 40U) memory.capacity_bytes = mebibytes << 20U;
        }
        if (id == 0x0401) memory.serial = printed_text(value);
        if (id == 0x0408 && size == 1) memory.cleaning = byte_at(value, 0) == 0x01;
        rest = rest.subspan(kHeader + size);
    }
    return memory;
}

std::optional<std::uint64_t> parse_short_position(ScsiBytes bytes) {
    if (bytes.size() < 20) return std::nullopt;
    // The position is unknown, or too large for this form.
    if ((byte_at(bytes, 0) & 0x06U) != 0) return std::nullopt;
    return four_at(bytes, 4);
}

std::optional<LongPosition> parse_long_position(ScsiBytes bytes) {
    if (bytes.size() < 32) return std::nullopt;
    // Block or filemark are unknown.
    if ((byte_at(bytes, 0) & 0x0cU) != 0) return std::nullopt;
    return LongPosition{
        .at_beginning = (byte_at(bytes, 0) & 0x80U) != 0,
        .position = {.block = eight_at(bytes, 8), .filemarks = eight_at(bytes, 16)}};
}

std::vector<CommandTime> parse_command_times(ScsiBytes bytes) {
    std::vector<CommandTime> times;
    if (bytes.size() < 4) return times;
    ScsiBytes rest = bytes.subspan(4);
    rest = rest.first(std::min<std::size_t>(rest.size(), four_at(bytes, 0)));
    constexpr std::size_t kDescriptor = 8;
    constexpr std::size_t kTimeouts = 12;
    while (rest.size() >= kDescriptor) {
        const bool has_time = (byte_at(rest, 5) & 0x02U) != 0;
        const std::size_t size = kDescriptor + (has_time ? kTimeouts : 0);
        if (rest.size() < size) break;
        if (has_time) {
            // The nominal and the recommended timeout.
            const std::uint32_t seconds = std::max(four_at(rest, 12), four_at(rest, 16));
            if (seconds > 0) {
                times.push_back({.code = byte_at(rest, 0), .longest = Duration(1s) * seconds});
            }
        }
        rest = rest.subspan(size);
    }
    return times;
}

}  // namespace fopd::devices

#include "fop/hex.h"

#include <cstdint>
#include <cstdio>

#include "fop/secret.h"

namespace fopd::fop {
namespace {

// All ones if low <= `value` <= high, otherwise 0. REQUIRES: all are small.
std::uint32_t mask_between(std::uint32_t value, std::uint32_t low, std::uint32_t high) {
    return (((value - low) | (high - value)) >> 31) - 1;
}

char digit(std::uint32_t value) {
    return static_cast<char>('0' + value + (mask_between(value, 10, 15) & ('a' - '0' - 10)));
}

// 0 to 15, or 0x100 if it is not a digit.
std::uint32_t value_of(char text) {
    const auto c = static_cast<std::uint32_t>(static_cast<unsigned char>(text));
    const std::uint32_t lower = c | 0x20;
    const std::uint32_t is_decimal = mask_between(c, '0', '9');
    const std::uint32_t is_letter = mask_between(lower, 'a', 'f');
    return (is_decimal & (c - '0')) | (is_letter & (lower - 'a' + 10)) |
           (~(is_decimal | is_letter) & 0x100);
}

}  // namespace

std::string to_hex(std::span<const std::byte> bytes) {
    std::string text;
    text.reserve(bytes.size() * 2);
    for (const std::byte byte : bytes) {
        const auto value = std::to_integer<std::uint32_t>(byte);
        text += digit(value >> 4);
        text += digit(value & 15);
    }
    return text;
}

std::string to_hex(const Fid& fid) {
    std::array<char, 33> text{};
    std::snprintf(text.data(), text.size(), "%016llx%016llx",
                  static_cast<unsigned long long>(fid.high),
                  static_cast<unsigned long long>(fid.low));
    return text.data();
}

Result<void> parse_hex(std::string_view text, std::span<std::byte, 32> out) {
    const auto digits = text.ends_with('\n') ? text.substr(0, text.size() - 1) : text;
    const auto invalid = [&](const char* why) {
        wipe(out);
        return std::unexpected(Error{.code = Errc::kInvalid, .context = why});
    };
    if (digits.empty()) return invalid("empty; a key is 64 hexadecimal digits");
    if (digits.size() < 64) return invalid("shorter than a key's 64 hexadecimal digits");
    if (digits.size() > 64) return invalid("longer than a key's 64 hexadecimal digits");
    std::uint32_t bad = 0;
    for (std::size_t i = 0; i < out.size(); ++i) {
        const std::uint32_t high = value_of(digits[2 * i]);
        const std::uint32_t low = value_of(digits[2 * i + 1]);
        bad |= high | low;
        out[i] = static_cast<std::byte>((high << 4 | low) & 0xff);
    }
    if ((bad & 0x100) != 0)
        return invalid("a character is not one of a key's 64 hexadecimal digits");
    return {};
}

}  // namespace fopd::fop

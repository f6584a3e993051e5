#include "fop/base64.h"

#include <algorithm>

#include <sodium.h>

#include "fop/unsigned_bytes.h"

namespace fopd::fop {

namespace {

constexpr int variant_of(Base64 form) {
    return form == Base64::kPadded ? sodium_base64_VARIANT_ORIGINAL
                                   : sodium_base64_VARIANT_URLSAFE_NO_PADDING;
}

}  // namespace

std::string to_base64(std::span<const std::byte> bytes, Base64 form) {
    std::string text(sodium_base64_encoded_len(bytes.size(), variant_of(form)), '\0');
    sodium_bin2base64(text.data(), text.size(), in(bytes), bytes.size(), variant_of(form));
    text.pop_back();  // The NUL.
    return text;
}

std::optional<std::vector<std::byte>> from_base64(std::string_view text, Base64 form) {
    // libsodium's decoder also accepts some bytes above 127 as digits.
    const auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
    if (!std::ranges::all_of(text, is_ascii)) return std::nullopt;
    std::vector<std::byte> bytes(text.size() / 4 * 3 + 3);
    std::size_t size = 0;
    const char* end = nullptr;
    const int failed = sodium_base642bin(out(bytes), bytes.size(), text.data(), text.size(),
                                         nullptr, &size, &end, variant_of(form));
    if (failed != 0 || end != text.data() + text.size()) return std::nullopt;
    bytes.resize(size);
    return bytes;
}

}  // namespace fopd::fop

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "lrs/request.h"

namespace fopd::lrs {

// The properties of a request that rules can test.
enum class Key : std::uint8_t {
    kAddress,    // The client's host, "10.0.0.1".
    kClient,     // The client's id, 32 hexadecimal digits.
    kGroup,      //
    kJob,        //
    kNetwork,    // The transport's scheme, "tcp".
    kObject,     // The object's id, 32 hexadecimal digits; empty if there is none.
    kOp,         // The name of the type of fop.
    kPool,       //
    kPrincipal,  //
    kSize,       // Bytes of data to move: a number; all other keys are texts.
    kUser,       //
};
inline constexpr std::size_t kKeyCount = 11;
inline constexpr std::array<std::string_view, kKeyCount> kKeyNames{
    "address", "client", "group",     "job",  "network", "object",
    "op",      "pool",   "principal", "size", "user"};

constexpr std::string_view name_of(Key key) {
    return kKeyNames[static_cast<std::size_t>(key)];
}
constexpr std::optional<Key> find_key(std::string_view name) {
    for (std::size_t i = 0; i < kKeyCount; ++i) {
        if (kKeyNames[i] == name) return static_cast<Key>(i);
    }
    return std::nullopt;
}

// A set of keys.
class KeySet {
public:
    constexpr void add(Key key) { bits_ = static_cast<std::uint16_t>(bits_ | bit_of(key)); }
    constexpr bool has(Key key) const { return (bits_ & bit_of(key)) != 0; }
    constexpr bool is_empty() const { return bits_ == 0; }

    // Calls `visit` with each key, in the order of their names.
    template <typename Visit>
    void for_each(Visit visit) const {
        for (std::size_t i = 0; i < kKeyCount; ++i) {
            if (has(static_cast<Key>(i))) visit(static_cast<Key>(i));
        }
    }

    friend constexpr bool operator==(const KeySet&, const KeySet&) = default;

private:
    static constexpr std::uint16_t bit_of(Key key) {
        return static_cast<std::uint16_t>(1U << static_cast<unsigned>(key));
    }
    std::uint16_t bits_ = 0;
};

// The request's text for a key, written into `digits` if it is a number; the first one of several
// groups. REQUIRES: the key is not kSize; the request does not change while the text is used.
using Digits = std::array<char, 32>;
std::string_view text_of(Key key, const RequestAttributes& attributes, Digits& digits);

// Calls `visit` with each text that rules compare for a key, until it returns false. Returns
// whether every call returned true. REQUIRES: the key is not kSize.
template <typename Visit>
bool for_each_text(Key key, const RequestAttributes& attributes, Visit visit) {
    if (key == Key::kGroup && attributes.groups.size() > 1) {
        return std::ranges::all_of(attributes.groups, visit);
    }
    Digits digits;
    return visit(text_of(key, attributes, digits));
}

// Writes the client's id as 32 hexadecimal digits.
std::string_view hex_of_client(const ClientId& client, Digits& digits);

// The host of "tcp://10.0.0.1:4711", "[::1]:4711" or "host:1", and the scheme in front.
std::string_view host_of(std::string_view peer);
std::string_view scheme_of(std::string_view peer);

}  // namespace fopd::lrs

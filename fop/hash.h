#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <string_view>

#include "fop/key.h"

namespace fopd::fop {

// BLAKE2b with 32 bytes of output over the concatenated parts.
using Hash = std::array<std::byte, 32>;
using HashParts = std::initializer_list<std::span<const std::byte>>;

Hash hash(HashParts parts);
Hash keyed_hash(const Key& key, HashParts parts);

// Derives a key for one purpose, identified by its label: the first bytes of BLAKE2b, keyed with
// `from`, over the label. Different labels give independent keys, and `from` cannot be computed
// from them.
template <typename Secret>
Secret derive(const Key& from, std::string_view label) {
    static_assert(Secret::kSizeBytes <= std::tuple_size_v<Hash>);
    Hash made = keyed_hash(from, {std::as_bytes(std::span(label))});
    const Secret secret(std::span<const std::byte>(made).template first<Secret::kSizeBytes>());
    wipe(made);
    return secret;
}

}  // namespace fopd::fop

#include "fop/hash.h"

#include <sodium.h>

#include "core/ensure.h"
#include "fop/unsigned_bytes.h"

namespace fopd::fop {
namespace {

Hash blake2b(std::span<const std::byte> key, HashParts parts) {
    // Selects the fastest implementation for this processor, once.
    static const bool kIsReady = sodium_init() >= 0;
    ENSURE(kIsReady);
    crypto_generichash_blake2b_state state;
    Hash made;
    crypto_generichash_blake2b_init(&state, in(key), key.size(), made.size());
    for (const auto part : parts) crypto_generichash_blake2b_update(&state, in(part), part.size());
    crypto_generichash_blake2b_final(&state, out(made), made.size());
    // The hash state contains the key as its first block.
    sodium_memzero(&state, sizeof state);
    return made;
}

}  // namespace

Hash hash(HashParts parts) {
    return blake2b({}, parts);
}

Hash keyed_hash(const Key& key, HashParts parts) {
    return blake2b(key.bytes(), parts);
}

}  // namespace fopd::fop

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "fop/secret.h"
#include "fop/sip_state.h"

namespace fopd::fop {

// SipHash-2-4 with 128 bits of output, fed in pieces of any length: the same as libsodium's
// crypto_shorthash_siphashx24 over all of them, which takes one piece only.
class SipHash {
public:
    explicit SipHash(const SecretBytes<16>& key);
    ~SipHash();
    SipHash(const SipHash&) = delete;
    SipHash& operator=(const SipHash&) = delete;

    void add(std::span<const std::byte> bytes);
    // Once, at the end.
    std::array<std::byte, 16> finish();

private:
    SipState state_;
    std::uint64_t waiting_ = 0;  // The bytes that do not fill a word yet, the first one lowest.
    std::uint64_t size_bytes_ = 0;
};

}  // namespace fopd::fop

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "fop/secret.h"
#include "fop/sip_state.h"

namespace fopd::fop {

// SipHash-2-4 with 128 bits of output, over data given in parts of any length. Equal to
// libsodium's crypto_shorthash_siphashx24 over the concatenated parts; that function takes only
// one.
class SipHash {
public:
    explicit SipHash(const SecretBytes<16>& key);
    ~SipHash();
    SipHash(const SipHash&) = delete;
    SipHash& operator=(const SipHash&) = delete;

    void add(std::span<const std::byte> bytes);
    // Returns the hash. Called once, after the last part.
    std::array<std::byte, 16> finish();

private:
    SipState state_;
    std::uint64_t waiting_ = 0;  // The bytes of an incomplete word, the first one lowest.
    std::uint64_t size_bytes_ = 0;
};

}  // namespace fopd::fop

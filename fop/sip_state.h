#pragma once

#include <bit>
#include <cstdint>

namespace fopd::fop {

// The state of SipHash with 128 bits of output: `c` rounds for each word and `d` at the end give
// SipHash-c-d.
struct SipState {
    std::uint64_t v0 = 0;
    std::uint64_t v1 = 0;
    std::uint64_t v2 = 0;
    std::uint64_t v3 = 0;

    // The initial constants of the SipHash specification: the ASCII text
    // "somepseudorandomlygeneratedbytes". The variant with 128 bits of output also XORs 0xee into
    // v1.
    SipState(std::uint64_t k0, std::uint64_t k1)
        : v0(k0 ^ 0x736f6d6570736575),
          v1(k1 ^ 0x646f72616e646f6d ^ 0xee),
          v2(k0 ^ 0x6c7967656e657261),
          v3(k1 ^ 0x7465646279746573) {}

    void round() {
        v0 += v1;
        v2 += v3;
        v1 = std::rotl(v1, 13) ^ v0;
        v3 = std::rotl(v3, 16) ^ v2;
        v0 = std::rotl(v0, 32) + v3;
        v2 += v1;
        v1 = std::rotl(v1, 17) ^ v2;
        v3 = std::rotl(v3, 21) ^ v0;
        v2 = std::rotl(v2, 32);
    }
    template <int Rounds>
    void absorb(std::uint64_t word) {
        v3 ^= word;
        for (int i = 0; i < Rounds; ++i) round();
        v0 ^= word;
    }
    // The two halves of the output; call first_half() first.
    template <int Rounds>
    std::uint64_t first_half() {
        v2 ^= 0xee;
        return mixed<Rounds>();
    }
    template <int Rounds>
    std::uint64_t second_half() {
        v1 ^= 0xdd;
        return mixed<Rounds>();
    }

private:
    template <int Rounds>
    std::uint64_t mixed() {
        for (int i = 0; i < Rounds; ++i) round();
        return v0 ^ v1 ^ v2 ^ v3;
    }
};

}  // namespace fopd::fop

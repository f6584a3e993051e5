#include "fop/siphash.h"

#include <bit>

#include "fop/bytes.h"

namespace fopd::fop {

SipHash::SipHash(const SecretBytes<16>& key) {
    const auto k0 = load_little<std::uint64_t>(key.bytes().data());
    const auto k1 = load_little<std::uint64_t>(key.bytes().data() + 8);
    // "somepseudorandomlygeneratedbytes"; 0xee marks the output of 128 bits.
    state_ = {.v0 = k0 ^ 0x736f6d6570736575,
              .v1 = k1 ^ 0x646f72616e646f6d ^ 0xee,
              .v2 = k0 ^ 0x6c7967656e657261,
              .v3 = k1 ^ 0x7465646279746573};
}

SipHash::~SipHash() {
    wipe(std::as_writable_bytes(std::span(&state_, 1)));
}

inline void SipHash::round(State& state) {
    state.v0 += state.v1;
    state.v2 += state.v3;
    state.v1 = std::rotl(state.v1, 13) ^ state.v0;
    state.v3 = std::rotl(state.v3, 16) ^ state.v2;
    state.v0 = std::rotl(state.v0, 32) + state.v3;
    state.v2 += state.v1;
    state.v1 = std::rotl(state.v1, 17) ^ state.v2;
    state.v3 = std::rotl(state.v3, 21) ^ state.v0;
    state.v2 = std::rotl(state.v2, 32);
}

inline void SipHash::absorb(State& state, std::uint64_t word) {
    state.v3 ^= word;
    round(state);
    round(state);
    state.v0 ^= word;
}

void SipHash::add(std::span<const std::byte> bytes) {
    // A piece starts `shift` bits into a word: each word of it completes the one that waits and
    // leaves its own upper part waiting.
    const unsigned shift = 8 * static_cast<unsigned>(size_bytes_ & 7);
    size_bytes_ += bytes.size();
    State state = state_;
    const std::byte* at = bytes.data();
    const std::byte* const words_end = at + (bytes.size() & ~std::size_t{7});
    if (shift == 0) {
        for (; at != words_end; at += 8) absorb(state, load_little<std::uint64_t>(at));
    } else {
        for (; at != words_end; at += 8) {
            const auto word = load_little<std::uint64_t>(at);
            absorb(state, waiting_ | (word << shift));
            waiting_ = word >> (64 - shift);
        }
    }
    unsigned filled = shift;
    for (const std::byte byte : bytes.last(bytes.size() & 7)) {
        waiting_ |= std::to_integer<std::uint64_t>(byte) << filled;
        filled += 8;
        if (filled == 64) {
            absorb(state, waiting_);
            waiting_ = 0;
            filled = 0;
        }
    }
    state_ = state;
}

std::array<std::byte, 16> SipHash::finish() {
    State state = state_;
    absorb(state, waiting_ | (size_bytes_ << 56));
    std::array<std::byte, 16> out;
    state.v2 ^= 0xee;
    for (int i = 0; i < 4; ++i) round(state);
    store_little(out.data(), state.v0 ^ state.v1 ^ state.v2 ^ state.v3);
    state.v1 ^= 0xdd;
    for (int i = 0; i < 4; ++i) round(state);
    store_little(out.data() + 8, state.v0 ^ state.v1 ^ state.v2 ^ state.v3);
    return out;
}

}  // namespace fopd::fop

#include "fop/siphash.h"

#include "fop/bytes.h"

namespace fopd::fop {

namespace {

constexpr int kRoundsAWord = 2;
constexpr int kRoundsAtEnd = 4;

void absorb(SipState& state, std::uint64_t word) {
    state.absorb<kRoundsAWord>(word);
}

}  // namespace

SipHash::SipHash(const SecretBytes<16>& key)
    : state_(load_little<std::uint64_t>(key.bytes().data()),
             load_little<std::uint64_t>(key.bytes().data() + 8)) {}

SipHash::~SipHash() {
    wipe(std::as_writable_bytes(std::span(&state_, 1)));
}

void SipHash::add(std::span<const std::byte> bytes) {
    // The data start `shift` bits into a word: each of their words completes the pending one, and
    // its upper part becomes the new pending one.
    const unsigned shift = 8 * static_cast<unsigned>(size_bytes_ & 7);
    size_bytes_ += bytes.size();
    SipState state = state_;
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
    SipState state = state_;
    absorb(state, waiting_ | (size_bytes_ << 56));
    std::array<std::byte, 16> out;
    store_little(out.data(), state.first_half<kRoundsAtEnd>());
    store_little(out.data() + 8, state.second_half<kRoundsAtEnd>());
    return out;
}

}  // namespace fopd::fop

#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace fopd::lrs {

// What tables of classes are indexed by: whoever does not know the key finds no two that are the
// same.
struct ClassHash {
    std::uint64_t high = 0;
    std::uint64_t low = 0;

    friend bool operator==(const ClassHash&, const ClassHash&) = default;
};

struct HashKey {
    std::uint64_t first = 0;
    std::uint64_t second = 0;
};

// In the manner of SipHash-1-3, with a result of 128 bits, over the numbers and texts it is given
// one by one. Each text counts with its length, so that "a","bc" differs from "ab","c".
class KeyedHash {
public:
    explicit KeyedHash(const HashKey& key)
        : state_{0x736f6d6570736575U ^ key.first, 0x646f72616e646f6dU ^ key.second ^ 0xeeU,
                 0x6c7967656e657261U ^ key.first, 0x7465646279746573U ^ key.second} {}

    void add(std::uint64_t word) {
        ++word_count_;
        state_[3] ^= word;
        round();
        state_[0] ^= word;
    }
    void add(std::string_view text) {
        add(std::uint64_t{text.size()});
        while (text.size() >= sizeof(std::uint64_t)) {
            add(word_of(text.data(), sizeof(std::uint64_t)));
            text.remove_prefix(sizeof(std::uint64_t));
        }
        if (!text.empty()) add(word_of(text.data(), text.size()));
    }

    ClassHash result() {
        add(word_count_ << 56);
        ClassHash hash;
        hash.low = finish(state_[2], 0xeeU);
        hash.high = finish(state_[1], 0xddU);
        return hash;
    }

private:
    static std::uint64_t word_of(const char* bytes, std::size_t count) {
        std::uint64_t word = 0;
        std::memcpy(&word, bytes, count);
        return word;
    }

    std::uint64_t finish(std::uint64_t& marked, std::uint64_t mark) {
        marked ^= mark;
        for (int i = 0; i < 3; ++i) round();
        return state_[0] ^ state_[1] ^ state_[2] ^ state_[3];
    }

    void round() {
        auto& [a, b, c, d] = state_;
        a += b;
        c += d;
        b = std::rotl(b, 13) ^ a;
        d = std::rotl(d, 16) ^ c;
        a = std::rotl(a, 32);
        c += b;
        a += d;
        b = std::rotl(b, 17) ^ c;
        d = std::rotl(d, 21) ^ a;
        c = std::rotl(c, 32);
    }

    std::array<std::uint64_t, 4> state_;
    std::uint64_t word_count_ = 0;
};

}  // namespace fopd::lrs

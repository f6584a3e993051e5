#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include "fop/sip_state.h"

namespace fopd::lrs {

// The hash by which tables of classes are indexed. A client that does not know the key cannot
// construct two classes with the same hash.
struct ClassHash {
    std::uint64_t high = 0;
    std::uint64_t low = 0;

    friend bool operator==(const ClassHash&, const ClassHash&) = default;
};

struct HashKey {
    std::uint64_t first = 0;
    std::uint64_t second = 0;

    friend bool operator==(const HashKey&, const HashKey&) = default;
};

// A hash similar to SipHash-1-3, with a result of 128 bits, of the numbers and texts added one by
// one. Each text includes its length, so that "a","bc" differs from "ab","c".
class KeyedHash {
public:
    explicit KeyedHash(const HashKey& key) : state_(key.first, key.second) {}

    void add(std::uint64_t word) {
        ++word_count_;
        state_.absorb<1>(word);
    }
    void add(std::string_view text) {
        add(std::uint64_t{text.size()});
        while (text.size() >= sizeof(std::uint64_t)) {
            add(word_of(text.substr(0, sizeof(std::uint64_t))));
            text.remove_prefix(sizeof(std::uint64_t));
        }
        if (!text.empty()) add(word_of(text));
    }

    ClassHash result() {
        add(word_count_ << 56);
        ClassHash hash;
        hash.low = state_.first_half<3>();
        hash.high = state_.second_half<3>();
        return hash;
    }

private:
    // REQUIRES: no more bytes than a word has.
    static std::uint64_t word_of(std::string_view bytes) {
        std::uint64_t word = 0;
        std::memcpy(&word, bytes.data(), bytes.size());
        return word;
    }

    fop::SipState state_;
    std::uint64_t word_count_ = 0;
};

}  // namespace fopd::lrs

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "fop/key.h"

struct evp_cipher_ctx_st;  // Of libcrypto.

namespace fopd::fop {

// Encrypts or decrypts one direction of a connection: a sequence of records, each with AES-256-GCM.
// A record that was changed, repeated, left out or moved does not open. docs/formats/tcp.md has the
// details.
class RecordCipher {
public:
    enum class Way : std::uint8_t { kSeal, kOpen };
    static constexpr std::size_t kTagBytes = 16;
    // After this number of records both sides change to the next key: the more one key encrypts,
    // the less it hides.
    static constexpr std::uint64_t kRecordsPerKey = 1U << 20;

    // Whether libcrypto has the cipher; its configuration can disable it. The other functions
    // REQUIRE it.
    static bool is_available();

    RecordCipher(const Key& key, Way way, std::uint64_t records_per_key = kRecordsPerKey);
    ~RecordCipher();
    RecordCipher(const RecordCipher&) = delete;
    RecordCipher& operator=(const RecordCipher&) = delete;

    using Parts = std::span<const std::span<const std::byte>>;
    // Encrypts the parts, one after the other, into `sealed`, which is longer by kTagBytes. `label`
    // is not encrypted, but open() needs the same. REQUIRES: kSeal.
    void seal(std::span<const std::byte> label, Parts parts, std::span<std::byte> sealed);
    // Decrypts the next record. False: it is not authentic, `plain` has undefined content, and no
    // later record will open. REQUIRES: kOpen; `plain` is shorter than `sealed` by kTagBytes, and
    // does not overlap it.
    [[nodiscard]] bool open(std::span<const std::byte> label, std::span<const std::byte> sealed,
                            std::span<std::byte> plain);

private:
    struct Free {
        void operator()(evp_cipher_ctx_st* context) const;
    };
    void use_key();
    // Prepares the context for the next record.
    void begin_record(std::span<const std::byte> label);

    Key key_;
    const Way way_;
    const std::uint64_t records_per_key_;
    std::uint64_t next_ = 0;  // Number of the next record; never repeats.
    std::unique_ptr<evp_cipher_ctx_st, Free> context_;
};

}  // namespace fopd::fop

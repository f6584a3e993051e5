#include "fop/record_cipher.h"

#include <array>

#include <openssl/evp.h>

#include "core/byte_order.h"
#include "core/ensure.h"
#include "fop/hash.h"
#include "fop/unsigned_bytes.h"

namespace fopd::fop {

namespace {

int length_of(std::span<const std::byte> bytes) {
    return static_cast<int>(bytes.size());
}

}  // namespace

void RecordCipher::Free::operator()(evp_cipher_ctx_st* context) const {
    EVP_CIPHER_CTX_free(context);
}

bool RecordCipher::is_available() {
    EVP_CIPHER* const cipher = EVP_CIPHER_fetch(nullptr, "AES-256-GCM", nullptr);
    EVP_CIPHER_free(cipher);
    return cipher != nullptr;
}

RecordCipher::RecordCipher(const Key& key, Way way, std::uint64_t records_per_key)
    : key_(key), way_(way), records_per_key_(records_per_key), context_(EVP_CIPHER_CTX_new()) {
    ENSURE(context_ != nullptr);
    use_key();
}

RecordCipher::~RecordCipher() = default;

void RecordCipher::use_key() {
    const int begun = EVP_CipherInit_ex(context_.get(), EVP_aes_256_gcm(), nullptr,
                                        in(key_.bytes()), nullptr, way_ == Way::kSeal ? 1 : 0);
    ENSURE(begun == 1);
}

void RecordCipher::begin_record(std::span<const std::byte> label) {
    if (next_ > 0 && next_ % records_per_key_ == 0) {
        key_ = derive<Key>(key_, "fopd next record key");
        use_key();
    }
    // The number of the record, little-endian, and zeros.
    std::array<std::byte, 12> nonce{};
    store_little(nonce.data(), next_);
    ++next_;
    ENSURE(EVP_CipherInit_ex(context_.get(), nullptr, nullptr, nullptr, in(nonce), -1) == 1);
    int count = 0;
    ENSURE(EVP_CipherUpdate(context_.get(), nullptr, &count, in(label), length_of(label)) == 1);
}

void RecordCipher::seal(std::span<const std::byte> label, Parts parts,
                        std::span<std::byte> sealed) {
    ENSURE(way_ == Way::kSeal);
    begin_record(label);
    std::span<std::byte> left = sealed;
    for (const std::span<const std::byte> part : parts) {
        ENSURE(part.size() + kTagBytes <= left.size());
        int count = 0;
        ENSURE(EVP_CipherUpdate(context_.get(), out(left), &count, in(part), length_of(part)) == 1);
        left = left.subspan(part.size());
    }
    ENSURE(left.size() == kTagBytes);
    int count = 0;
    ENSURE(EVP_CipherFinal_ex(context_.get(), out(left), &count) == 1);
    ENSURE(EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_AEAD_GET_TAG, int{kTagBytes},
                               left.data()) == 1);
}

bool RecordCipher::open(std::span<const std::byte> label, std::span<const std::byte> sealed,
                        std::span<std::byte> plain) {
    ENSURE(way_ == Way::kOpen);
    ENSURE(sealed.size() == plain.size() + kTagBytes);
    begin_record(label);
    const std::span<const std::byte> text = sealed.first(plain.size());
    std::array<std::byte, kTagBytes> tag;
    std::ranges::copy(sealed.last(kTagBytes), tag.begin());
    int count = 0;
    ENSURE(EVP_CipherUpdate(context_.get(), out(plain), &count, in(text), length_of(text)) == 1);
    ENSURE(EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_AEAD_SET_TAG, int{kTagBytes}, tag.data()) ==
           1);
    return EVP_CipherFinal_ex(context_.get(), out(plain.last(0)), &count) == 1;
}

}  // namespace fopd::fop

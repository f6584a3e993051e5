// Whatever bytes or text somebody shows as a token: what can be read is signed again to the same
// body, what the issuer did not sign is refused, and a verdict follows from what the token says.
//
//     build/fuzz/bin/fuzz_token -max_len=400 tests/fuzz/corpus/token
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/ensure.h"
#include "tests/fop/sealed_examples.h"

using namespace fopd::fop;

namespace {

constexpr fopd::WallTime kNow{.unix_ns = 1'700'000'000'000'000'000};
constexpr std::int64_t kNowSeconds = 1'700'000'000;
constexpr std::size_t kSignatureBytes = 64;

void check_bytes(std::span<const std::byte> bytes) {
    static const Issuer kIssuer(kIssuerSeed);
    static const TokenChecker kChecker({.issuer = kIssuer.public_half(),
                                        .generation_min = 3,
                                        .revoked = {counting_bytes<16>(0x99)}});
    const TokenChecker::Shown shown{.now = kNow, .principal = "ann"};
    const auto shown_so = kChecker.check(bytes, shown);
    const auto read = read_unverified(bytes);
    if (!read) {
        ENSURE(!shown_so.has_value());
        return;
    }

    if (const auto fid = fid_of(read->object)) ENSURE(token_object(*fid) == read->object);
    const auto signed_again = kIssuer.sign(*read);
    ENSURE(signed_again.size() == bytes.size());
    const auto body_bytes = bytes.size() - kSignatureBytes;
    ENSURE(std::ranges::equal(std::span(signed_again).first(body_bytes), bytes.first(body_bytes)));
    // Ed25519 as we use it gives a token one signature.
    ENSURE(!shown_so.has_value() || std::ranges::equal(signed_again, bytes));

    const bool is_good = read->not_after >= kNowSeconds && read->generation >= 3 &&
                         read->id != counting_bytes<16>(0x99) &&
                         (read->principal.empty() || read->principal == "ann");
    const auto verdict = kChecker.check(signed_again, shown);
    ENSURE(verdict.has_value() == is_good);
    if (verdict) ENSURE(*verdict == *read);
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it so.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size_bytes) {
    const auto bytes = std::as_bytes(std::span(data, size_bytes));
    check_bytes(bytes);
    const std::string_view text(reinterpret_cast<const char*>(data), size_bytes);
    if (const auto token = parse_token_text(text); token) {
        ENSURE(text.find(token_to_text(*token)) != std::string_view::npos);
        check_bytes(*token);
    }
    return 0;
}

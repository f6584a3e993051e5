#include "fop/descriptor.h"

#include <string>
#include <vector>

#include "fop/hex.h"
#include "fop/mac.h"
#include "tests/catch.h"
#include "tests/fop/sealed_examples.h"

namespace fopd::fop {
namespace {

Errc refusal(const Descriptor& descriptor, const DescriptorNeed& need = kDescriptorNeed) {
    const auto checked = check_descriptor(seal(descriptor, kDescriptorKey), kDescriptorKey, need);
    REQUIRE_FALSE(checked.has_value());
    return checked.error().code;
}

Descriptor changed(auto change) {
    Descriptor descriptor = kDescriptor;
    change(descriptor);
    return descriptor;
}

// With a right MAC, whatever the bytes say.
Descriptor::Bytes sealed_again(Descriptor::Bytes bytes) {
    const auto made = mac(kDescriptorKey, std::span(bytes).first<48>());
    std::ranges::copy(made.bytes, bytes.begin() + 48);
    return bytes;
}

}  // namespace

TEST_CASE("fop descriptor: a sealed descriptor is decoded to its fields", "[fop]") {
    const auto bytes = seal(kDescriptor, kDescriptorKey);

    REQUIRE(check_descriptor(bytes, kDescriptorKey, kDescriptorNeed).value() == kDescriptor);
}

// struct.pack("<BBHIQQQQQ", 1, 2, 0, 0, 7, 41, 0x7f0000001000, 0x1122334455667788, 1 << 20), and
// crypto_shorthash_siphashx24 over it with the key bytes(range(0x30, 0x40)), from Python.
TEST_CASE("fop descriptor: its bytes are the same on every machine", "[fop]") {
    REQUIRE(to_hex(seal(kDescriptor, kDescriptorKey)) ==
            "010200000000000007000000000000002900000000000000"
            "00100000007f000088776655443322110000100000000000"
            "8e4e5a12c4d4965743a0328e9d548dfa");
}

TEST_CASE("fop descriptor: any changed bit and any other key is refused", "[fop]") {
    auto bytes = seal(kDescriptor, kDescriptorKey);
    for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
        const auto flip = static_cast<std::byte>(1 << (bit % 8));
        bytes[bit / 8] ^= flip;
        REQUIRE(check_descriptor(bytes, kDescriptorKey, kDescriptorNeed).error().code ==
                Errc::kDenied);
        bytes[bit / 8] ^= flip;
    }
    const MacKey other(counting_bytes<16>(0x31));
    REQUIRE(check_descriptor(bytes, other, kDescriptorNeed).error().code == Errc::kDenied);
}

TEST_CASE("fop descriptor: only its 64 bytes are one", "[fop]") {
    const auto bytes = seal(kDescriptor, kDescriptorKey);
    std::vector<std::byte> any(bytes.begin(), bytes.end());
    for (std::size_t size = 0; size <= 80; ++size) {
        any.resize(size);
        if (size == bytes.size()) continue;
        REQUIRE(check_descriptor(any, kDescriptorKey, kDescriptorNeed).error().code ==
                Errc::kInvalid);
    }
}

TEST_CASE("fop descriptor: it serves its session, operation, direction and length only", "[fop]") {
    REQUIRE(refusal(changed([](Descriptor& d) { d.session = 8; })) == Errc::kDenied);
    REQUIRE(refusal(changed([](Descriptor& d) { d.operation = 42; })) == Errc::kDenied);
    REQUIRE(refusal(changed([](Descriptor& d) { d.use = DescriptorUse::kPeerReads; })) ==
            Errc::kDenied);
    REQUIRE(refusal(changed([](Descriptor& d) { d.bytes -= 1; })) == Errc::kDenied);

    const auto larger = changed([](Descriptor& d) { d.bytes += 1; });
    REQUIRE(check_descriptor(seal(larger, kDescriptorKey), kDescriptorKey, kDescriptorNeed)
                .has_value());
}

TEST_CASE("fop descriptor: memory that goes round the end of all addresses is refused", "[fop]") {
    REQUIRE(refusal(changed([](Descriptor& d) { d.address = UINT64_MAX - (1 << 20) + 1; })) ==
            Errc::kInvalid);
    const auto last = changed([](Descriptor& d) { d.address = UINT64_MAX - (1 << 20); });
    REQUIRE(
        check_descriptor(seal(last, kDescriptorKey), kDescriptorKey, kDescriptorNeed).has_value());
}

TEST_CASE("fop descriptor: a sealed one of an unknown layout is refused", "[fop]") {
    for (const std::size_t at : {0U, 1U, 2U, 3U, 4U, 7U}) {
        auto bytes = seal(kDescriptor, kDescriptorKey);
        bytes[at] = std::byte{9};
        REQUIRE(
            check_descriptor(sealed_again(bytes), kDescriptorKey, kDescriptorNeed).error().code ==
            Errc::kInvalid);
    }
}

}  // namespace fopd::fop

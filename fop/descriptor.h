#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/result.h"
#include "fop/key.h"

namespace fopd::fop {

// How the peer may access the memory.
enum class DescriptorUse : std::uint8_t {
    kPeerReads = 1,
    kPeerWrites = 2,
};

// A region of client memory that the daemon may access for one operation of one session.
struct Descriptor {
    static constexpr std::size_t kSizeBytes = 64;
    using Bytes = std::array<std::byte, kSizeBytes>;

    DescriptorUse use = DescriptorUse::kPeerReads;
    std::uint64_t session = 0;
    std::uint64_t operation = 0;  // The id of the request.
    std::uint64_t address = 0;    // Its meaning depends on the transport.
    std::uint64_t key = 0;        // The transport's random access key.
    std::uint64_t bytes = 0;

    friend bool operator==(const Descriptor&, const Descriptor&) = default;
};

Descriptor::Bytes seal(const Descriptor& descriptor, const MacKey& key);

// The access that the daemon needs.
struct DescriptorNeed {
    DescriptorUse use = DescriptorUse::kPeerReads;
    std::uint64_t session = 0;
    std::uint64_t operation = 0;
    std::uint64_t bytes = 0;  // At least this many.
};

// The descriptor, if it was sealed with this key and allows the needed access. kInvalid if it is
// malformed, kDenied if the seal or the access does not match; the reason is the context.
Result<Descriptor> check_descriptor(std::span<const std::byte> bytes, const MacKey& key,
                                    const DescriptorNeed& need);

}  // namespace fopd::fop

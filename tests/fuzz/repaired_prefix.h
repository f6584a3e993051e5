#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "fop/bytes.h"
#include "fop/prefix.h"

// Makes the prefix of a message of any bytes tell the truth, so that what changes the length is not
// refused for that alone. REQUIRES: more bytes than a prefix has.
inline void repair_prefix(std::span<std::byte> message) {
    using namespace fopd;
    using namespace fopd::fop;
    const std::size_t envelope_max = message.size() - kPrefixBytes;
    const std::size_t envelope_said = load_little<std::uint32_t>(message.data() + 28);
    const std::size_t start = kPrefixBytes + envelope_max - std::min(envelope_said, envelope_max);
    const std::size_t envelope_bytes = message.size() - start / 8 * 8;
    store_little(message.data(), kMagic);
    store_little(message.data() + 4, kMajorVersion);
    // There are four kinds; what is one stays as it is.
    message[6] = static_cast<std::byte>(1 + (static_cast<unsigned>(message[6]) + 3) % 4);
    store_little(message.data() + 24, static_cast<std::uint32_t>(message.size()));
    store_little(message.data() + 28, static_cast<std::uint32_t>(envelope_bytes));
}

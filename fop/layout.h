#pragma once

#include <cstddef>
#include <span>

#include "fop/prefix.h"

// The layout of a message, for its writer and readers only.
namespace fopd::fop {

// The next offset at which a payload or the envelope may start.
constexpr std::size_t aligned(std::size_t offset) {
    return (offset + kMessageAlignment - 1) / kMessageAlignment * kMessageAlignment;
}

// Writes the prefix including the MAC, which is set to zero. The envelope is at the end of
// `message`.
void write_prefix(std::span<std::byte> message, MessageKind kind, const PrefixFields& fields,
                  std::size_t envelope_bytes);

// REQUIRES: read_prefix() accepted the message.
std::span<const std::byte> envelope_of(std::span<const std::byte> message);

}  // namespace fopd::fop

#pragma once

#include <cstddef>
#include <span>

#include "fop/prefix.h"

// Where things lie in a message, for its writer and readers alone.
namespace fopd::fop {

// The next place where a payload or the envelope may start.
constexpr std::size_t aligned(std::size_t offset) {
    return (offset + kMessageAlignment - 1) / kMessageAlignment * kMessageAlignment;
}

// Everything up to and including the MAC, which is zero. The envelope is at the end of `message`.
void write_prefix(std::span<std::byte> message, MessageKind kind, const PrefixFields& fields,
                  std::size_t envelope_bytes);

// Requires: read_prefix() took the message.
std::span<const std::byte> envelope_of(std::span<const std::byte> message);

}  // namespace fopd::fop

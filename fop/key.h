#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "core/result.h"
#include "fop/secret.h"

namespace fopd::fop {

// The secret that a principal or the peers share with the daemon; also the seed of an issuer.
using Key = SecretBytes<32>;

// A key for one session and one purpose.
using MacKey = SecretBytes<16>;

// Identifies a key without revealing it: sent in the clear, written to logs.
using KeyId = std::array<std::byte, 8>;

KeyId key_id(const Key& key);
std::string to_text(const KeyId& id);

// 64 hexadecimal digits. The caller wipes the text.
std::string to_text(const Key& key);
// 64 hexadecimal digits in either case, optionally followed by one newline, as in a key file.
// kInvalid with the reason as context, which quotes nothing of the text.
Result<Key> parse_key(std::string_view text);

}  // namespace fopd::fop

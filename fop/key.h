#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "core/result.h"
#include "fop/secret.h"

namespace fopd::fop {

// What a principal or the peers share with the daemon, and the seed of an issuer.
using Key = SecretBytes<32>;

// Of one session and one purpose.
using MacKey = SecretBytes<16>;

// Names a key without giving it away: sent in the clear, written in logs.
using KeyId = std::array<std::byte, 8>;

KeyId key_id(const Key& key);
std::string to_text(const KeyId& id);

// 64 hexadecimal digits. The caller wipes the text.
std::string to_text(const Key& key);
// 64 hexadecimal digits in either case, perhaps with one newline behind, as a file has it. kInvalid
// with the reason as its context, which quotes nothing of the text.
Result<Key> parse_key(std::string_view text);

}  // namespace fopd::fop

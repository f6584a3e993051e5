#include "fop/key.h"

#include <algorithm>
#include <span>

#include "fop/hash.h"
#include "fop/hex.h"

namespace fopd::fop {

KeyId key_id(const Key& key) {
    static constexpr std::string_view kLabel = "fopd key id";
    const Hash made = keyed_hash(key, {std::as_bytes(std::span(kLabel))});
    KeyId id;
    std::copy_n(made.begin(), id.size(), id.begin());
    return id;
}

std::string to_text(const KeyId& id) {
    return to_hex(id);
}

std::string to_text(const Key& key) {
    return to_hex(key.bytes());
}

Result<Key> parse_key(std::string_view text) {
    Key key;
    const auto parsed = parse_hex(text, key.writable());
    if (!parsed) return std::unexpected(parsed.error());
    if (key == Key{}) {
        return std::unexpected(Error{.code = Errc::kInvalid,
                                     .context = "a key is 64 hexadecimal digits, not only zeros"});
    }
    return key;
}

}  // namespace fopd::fop

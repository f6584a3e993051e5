#include "fop/principal.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/utf8.h"
#include "fop/reserved_names.h"

namespace fopd::fop {

bool is_name(std::string_view text) {
    return text.size() <= kNameBytesMax && core::is_utf8(text) && !core::has_control(text);
}

std::string share_name(const Identity& identity) {
    switch (identity.kind) {
        case AuthKind::kPrincipal: return "principal " + identity.name;
        case AuthKind::kPeer: return std::string(kPeers);
        case AuthKind::kNone: break;
    }
    return std::string(kUnauthenticated);
}

std::expected<KeyRing, std::string> KeyRing::make(Contents contents) {
    KeyRing ring;
    std::set<std::string_view> names;
    for (const Principal& principal : contents.principals) {
        const std::string& name = principal.name;
        if (name.empty()) return std::unexpected("a principal has no name");
        if (!is_name(name)) {
            return std::unexpected("a principal's name is longer than 64 bytes or not plain text");
        }
        if (is_reserved_name(name)) {
            return std::unexpected("no principal may be called " + name +
                                   ": reports use this name for other clients");
        }
        if (!names.insert(name).second) {
            return std::unexpected("there are two principals " + name);
        }
        if (!std::ranges::all_of(principal.groups, is_name)) {
            return std::unexpected("a group of principal " + name +
                                   " is longer than 64 bytes or not plain text");
        }
        if (principal.keys.empty()) return std::unexpected("principal " + name + " has no key");
        const Identity identity{.kind = AuthKind::kPrincipal,
                                .name = name,
                                .user = name,
                                .groups = principal.groups,
                                .rights = principal.rights};
        for (const Key& key : principal.keys) {
            if (!ring.add(key, identity, principal.delegation)) {
                return std::unexpected("a key of principal " + name + " is there twice");
            }
        }
    }
    for (const Key& key : contents.peer_keys) {
        if (!ring.add(key, {.kind = AuthKind::kPeer}, Delegation::kNone)) {
            return std::unexpected("a key of the peers is there twice");
        }
    }
    return ring;
}

bool KeyRing::add(const Key& key, Identity identity, Delegation delegation) {
    const KeyId id = key_id(key);
    identity.key_id = id;
    return keys_.emplace(id, KnownKey{key, std::move(identity), delegation}).second;
}

std::optional<KnownKey> KeyRing::find(AuthKind kind, const KeyId& id) const {
    const auto found = keys_.find(id);
    if (found == keys_.end() || found->second.identity.kind != kind) return std::nullopt;
    return found->second;
}

}  // namespace fopd::fop

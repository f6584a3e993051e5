#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fop/key.h"
#include "fop/rights.h"

namespace fopd::fop {

// How a client proves its identity.
enum class AuthKind : std::uint8_t {
    kNone = 0,       // Not at all.
    kPrincipal = 1,  // With the key of a principal.
    kPeer = 2,       // With the key that the daemons share.
};

inline constexpr std::size_t kNameBytesMax = 64;

// Whether `text` may be the name of a principal, peer, user, group or pool: UTF-8 of at most 64
// bytes without control characters. Empty means unnamed.
bool is_name(std::string_view text);

enum class Delegation : std::uint8_t { kNone, kAllowed };

// A user or program that may use the daemon.
struct Principal {
    std::string name = {};
    std::vector<Key> keys = {};  // The current one first, then older ones still accepted.
    Rights rights = {};
    std::vector<std::string> groups = {};
    Delegation delegation = Delegation::kNone;  // Whether it may act for another user.
};

// The identity of a session's client. All of it comes from the proved key, except the user and the
// name of a peer or unauthenticated client, which the client states.
struct Identity {
    AuthKind kind = AuthKind::kNone;
    std::string name = {};
    std::string user = {};  // The user it acts for; equal to `name` if it acts for itself.
    std::vector<std::string> groups = {};
    Rights rights = {};
    KeyId key_id{};  // To check later whether the key is still accepted.

    friend bool operator==(const Identity&, const Identity&) = default;
};

// The name of the share that a client uses of a node's limited resources: "principal ann". Only a
// principal has proved its name; peers and unauthenticated clients choose their names freely, so
// each of these two kinds has a single share.
std::string share_name(const Identity& identity);

struct KnownKey {
    Key key = {};
    Identity identity = {};
    Delegation delegation = Delegation::kNone;
};

// Finds the keys that clients name.
class KeyFinder {
public:
    virtual ~KeyFinder() = default;
    virtual std::optional<KnownKey> find(AuthKind kind, const KeyId& id) const = 0;
};

// The keys of a daemon. Immutable, replaced as a whole.
class KeyRing final : public KeyFinder {
public:
    struct Contents {
        std::vector<Principal> principals = {};
        std::vector<Key> peer_keys = {};  // The current one first, then older ones still accepted.
    };

    // Fails with a message for people: an invalid name, two principals with one name, a principal
    // without a key, a duplicate key.
    static std::expected<KeyRing, std::string> make(Contents contents);

    std::optional<KnownKey> find(AuthKind kind, const KeyId& id) const override;
    std::size_t size() const { return keys_.size(); }

private:
    // Returns false if the key exists already.
    bool add(const Key& key, Identity identity, Delegation delegation);

    // By id alone, which refuses the same key for a principal and the peers: it would make one the
    // other.
    std::map<KeyId, KnownKey> keys_;
};

}  // namespace fopd::fop

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

// How a client proves who it is.
enum class AuthKind : std::uint8_t {
    kNone = 0,       // Not at all.
    kPrincipal = 1,  // With the key of a principal.
    kPeer = 2,       // With the key the daemons share.
};

inline constexpr std::size_t kNameBytesMax = 64;

// A name of a principal, peer, user, group or pool: UTF-8 of at most 64 bytes without control
// characters. An empty one is "nobody said".
bool is_name(std::string_view text);

enum class Delegation : std::uint8_t { kNone, kAllowed };

// Somebody who may use the daemon.
struct Principal {
    std::string name = {};
    std::vector<Key> keys = {};  // The current one first, then those still accepted.
    Rights rights = {};
    std::vector<std::string> groups = {};
    Delegation delegation = Delegation::kNone;  // Whether it may act for another user.
};

// Whom a session belongs to. All of it comes from the key that was proved, but for the name of a
// peer or of an unauthenticated client and the user, which the client says.
struct Identity {
    AuthKind kind = AuthKind::kNone;
    std::string name = {};
    std::string user = {};  // For whom it acts: the name again when for itself.
    std::vector<std::string> groups = {};
    Rights rights = {};
    KeyId key_id{};  // To look again whether the key is still accepted.

    friend bool operator==(const Identity&, const Identity&) = default;
};

// Whose share of what a node has only so much of: "principal ann". Only a principal has proved its
// name; peers, and clients that do not authenticate, name themselves as they like, so that each of
// these two kinds has one share.
std::string share_name(const Identity& identity);

struct KnownKey {
    Key key = {};
    Identity identity = {};
    Delegation delegation = Delegation::kNone;
};

// Where a server looks for the key a client names.
class KeyFinder {
public:
    virtual ~KeyFinder() = default;
    virtual std::optional<KnownKey> find(AuthKind kind, const KeyId& id) const = 0;
};

// The keys of a daemon: never changed, only replaced as a whole.
class KeyRing final : public KeyFinder {
public:
    struct Contents {
        std::vector<Principal> principals = {};
        std::vector<Key> peer_keys = {};  // The current one first, then those still accepted.
    };

    // Otherwise what is wrong: no name, two principals of one name, a principal without a key, a
    // key that is there twice.
    static std::expected<KeyRing, std::string> make(Contents contents);

    std::optional<KnownKey> find(AuthKind kind, const KeyId& id) const override;
    std::size_t size() const { return keys_.size(); }

private:
    // Otherwise false: the key is there already.
    bool add(const Key& key, Identity identity, Delegation delegation);

    // By id alone: the same key for a principal and the peers would make one the other.
    std::map<KeyId, KnownKey> keys_;
};

}  // namespace fopd::fop

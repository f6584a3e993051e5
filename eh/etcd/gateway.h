#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace fopd::eh::etcd {

// The requests to etcd's gateway /v3/, and its answers: JSON in which numbers are strings, keys and
// values base64, and fields that are zero or false are absent. Pure functions. Answers are not
// trusted: kCorrupt if one is not what etcd sends.

inline constexpr std::string_view kRangePath = "/v3/kv/range";
inline constexpr std::string_view kTxnPath = "/v3/kv/txn";
inline constexpr std::string_view kCompactPath = "/v3/kv/compaction";
inline constexpr std::string_view kAuthenticatePath = "/v3/auth/authenticate";

// A key's value, and the revision of etcd in which it was put.
struct KeyValue {
    std::vector<std::byte> value{};
    std::int64_t revision = 0;
};

// Reads one key, linearizably.
std::string read_body(std::string_view key);
// Puts the value if the key's present one was put in `revision`, 0 if there is none; otherwise
// reads the key.
std::string swap_body(std::string_view key, std::int64_t revision,
                      std::span<const std::byte> value);
// Lets etcd forget what was replaced before `revision`.
std::string compact_body(std::int64_t revision);
std::string authenticate_body(std::string_view user, std::string_view password);

// Nothing: there is no such key.
Result<std::optional<KeyValue>> parse_read(std::string_view text);

struct SwapAnswer {
    bool is_put = false;
    std::int64_t revision = 0;        // Of etcd, after the transaction.
    std::optional<KeyValue> found{};  // If nothing was put: what the key has, if it exists.
};
Result<SwapAnswer> parse_swap(std::string_view text);

// The token, which goes into the header Authorization.
Result<std::string> parse_token(std::string_view text);

// What etcd says to a request that it refuses, or that failed.
struct Refusal {
    std::string message{};       // As etcd words it; empty: this is no answer of etcd.
    bool wants_token = false;    // It wants a token, or a new one.
    bool has_no_auth = false;    // Authentication is off.
    bool is_full = false;        // Its quota is used up.
    bool is_denied = false;      // User, password or permission is wrong.
    bool is_compacted = false;   // The revision has been compacted already.
    bool has_no_leader = false;  // Most members of etcd are away, or elect one just now.
};
Refusal parse_refusal(std::string_view text);

}  // namespace fopd::eh::etcd

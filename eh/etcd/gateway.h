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

// The value of a key, and the revision of etcd that wrote it.
struct KeyValue {
    std::vector<std::byte> value{};
    std::int64_t revision = 0;
};

// Reads one key, linearizably.
std::string read_body(std::string_view key);
// Writes the value if the key's present value was written in `revision`; 0: if there is no such
// key. Otherwise reads the key.
std::string swap_body(std::string_view key, std::int64_t revision,
                      std::span<const std::byte> value);
// Lets etcd forget the values that were replaced before `revision`.
std::string compact_body(std::int64_t revision);
std::string authenticate_body(std::string_view user, std::string_view password);

// Nothing: there is no such key.
Result<std::optional<KeyValue>> parse_read(std::string_view text);

struct SwapAnswer {
    bool is_put = false;
    std::int64_t revision = 0;  // The revision of etcd after the transaction.
    // If nothing was written: the key's present value, if the key exists.
    std::optional<KeyValue> found{};
};
Result<SwapAnswer> parse_swap(std::string_view text);

// The token, which goes into the header Authorization.
Result<std::string> parse_token(std::string_view text);

// etcd's answer to a request that it refuses, or that failed.
struct Refusal {
    std::string message{};       // The text from etcd; empty: the answer is not from etcd.
    bool wants_token = false;    // It wants a token, or a new one.
    bool has_no_auth = false;    // Authentication is off.
    bool is_full = false;        // Its quota is used up.
    bool is_denied = false;      // User, password or permission is wrong.
    bool is_compacted = false;   // The revision has been compacted already.
    bool has_no_leader = false;  // Most members of etcd do not answer, or they elect a leader.
};
Refusal parse_refusal(std::string_view text);

}  // namespace fopd::eh::etcd

#include "eh/etcd/gateway.h"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "core/printable.h"
#include "core/whole_number.h"
#include "fop/base64.h"

namespace fopd::eh::etcd {

namespace {

using fop::Base64;
using fop::from_base64;
using fop::to_base64;
using Json = nlohmann::json;

// Answers of etcd have at most 5 levels. Deeper values are dropped, and take no memory.
constexpr int kDepthMax = 8;
constexpr std::size_t kMessageMax = 200;
constexpr std::size_t kTokenMax = 8192;

Error no_answer(const char* context) {
    return {.code = Errc::kCorrupt, .context = context};
}

std::string base64_of(std::string_view text) {
    return to_base64(std::as_bytes(std::span(text)), Base64::kPadded);
}

// Null if it is no JSON object.
Json parse_object(std::string_view text) {
    const auto is_shallow = [](int depth, Json::parse_event_t, Json&) {
        return depth <= kDepthMax;
    };
    Json json = Json::parse(text, is_shallow, false);
    return json.is_object() ? std::move(json) : Json();
}

// Null if there is none.
const Json* field(const Json& object, const char* name) {
    if (!object.is_object()) return nullptr;
    const auto found = object.find(name);
    return found == object.end() ? nullptr : &*found;
}

// A string, or empty.
std::string_view text_of(const Json& object, const char* name) {
    const Json* const found = field(object, name);
    if (found == nullptr || !found->is_string()) return {};
    return found->get_ref<const std::string&>();
}

// Absent numbers are 0.
std::optional<std::int64_t> number_of(const Json& object, const char* name) {
    const Json* const found = field(object, name);
    if (found == nullptr) return 0;
    if (!found->is_string()) return std::nullopt;
    return core::whole_number<std::int64_t>(found->get_ref<const std::string&>());
}

Result<std::optional<KeyValue>> key_value_in(const Json& range) {
    const Json* const found = field(range, "kvs");
    if (found == nullptr) return std::nullopt;
    if (!found->is_array() || found->size() != 1)
        return std::unexpected(no_answer("etcd: an answer with other than one key"));
    const Json& first = found->front();
    const auto revision = number_of(first, "mod_revision");
    auto value = from_base64(text_of(first, "value"), Base64::kPadded);
    if (!first.is_object() || !revision || *revision <= 0 || !value)
        return std::unexpected(no_answer("etcd: a key without value or revision"));
    return KeyValue{.value = *std::move(value), .revision = *revision};
}

bool has_any(std::string_view text, std::span<const std::string_view> parts) {
    return std::ranges::any_of(parts, [&](std::string_view part) { return text.contains(part); });
}

constexpr std::array<std::string_view, 3> kWantsToken = {"invalid auth token", "user name is empty",
                                                         "revision of auth store is old"};
constexpr std::array<std::string_view, 3> kDenied = {"permission denied", "authentication failed",
                                                     "user name is empty"};
constexpr std::array<std::string_view, 3> kNoLeader = {"no leader", "leader changed",
                                                       "request timed out"};

}  // namespace

std::string read_body(std::string_view key) {
    return Json{{"key", base64_of(key)}}.dump();
}

std::string swap_body(std::string_view key, std::int64_t revision,
                      std::span<const std::byte> value) {
    const std::string name = base64_of(key);
    const Json compare = {{"target", "MOD"},
                          {"result", "EQUAL"},
                          {"key", name},
                          {"mod_revision", std::to_string(revision)}};
    const Json put = {
        {"request_put", {{"key", name}, {"value", to_base64(value, Base64::kPadded)}}}};
    const Json read = {{"request_range", {{"key", name}}}};
    return Json{{"compare", Json::array({compare})},
                {"success", Json::array({put})},
                {"failure", Json::array({read})}}
        .dump();
}

std::string compact_body(std::int64_t revision) {
    return Json{{"revision", std::to_string(revision)}}.dump();
}

std::string authenticate_body(std::string_view user, std::string_view password) {
    // A password that is no UTF-8 cannot be one of etcd's.
    return Json{{"name", user}, {"password", password}}.dump(-1, ' ', false,
                                                             Json::error_handler_t::replace);
}

Result<std::optional<KeyValue>> parse_read(std::string_view text) {
    const Json answer = parse_object(text);
    // etcd puts a header into every answer. An answer without one comes from another server, and
    // does not show whether the key exists.
    if (field(answer, "header") == nullptr)
        return std::unexpected(no_answer("etcd: an answer that is not etcd's"));
    return key_value_in(answer);
}

Result<SwapAnswer> parse_swap(std::string_view text) {
    const Json answer = parse_object(text);
    const Json* const header = field(answer, "header");
    const auto revision = header == nullptr ? std::nullopt : number_of(*header, "revision");
    if (!revision || *revision <= 0)
        return std::unexpected(no_answer("etcd: an answer that is not etcd's"));
    SwapAnswer swap{.revision = *revision};
    const Json* const succeeded = field(answer, "succeeded");
    if (succeeded != nullptr && !succeeded->is_boolean())
        return std::unexpected(
            no_answer("etcd: the answer does not say whether the transaction succeeded"));
    swap.is_put = succeeded != nullptr && succeeded->get<bool>();
    if (swap.is_put) return swap;
    const Json* const responses = field(answer, "responses");
    if (responses == nullptr || !responses->is_array() || responses->size() != 1)
        return std::unexpected(
            no_answer("etcd: the answer does not say whether the transaction succeeded"));
    const Json* const range = field(responses->front(), "response_range");
    if (range == nullptr)
        return std::unexpected(
            no_answer("etcd: the answer does not say whether the transaction succeeded"));
    auto found = key_value_in(*range);
    if (!found) return std::unexpected(found.error());
    swap.found = *std::move(found);
    return swap;
}

Result<std::string> parse_token(std::string_view text) {
    const Json answer = parse_object(text);
    const std::string_view token = text_of(answer, "token");
    const auto is_visible = [](char character) { return character > ' ' && character < 0x7f; };
    if (token.empty() || token.size() > kTokenMax || !std::ranges::all_of(token, is_visible))
        return std::unexpected(no_answer("etcd: an answer without a token"));
    return std::string(token);
}

Refusal parse_refusal(std::string_view text) {
    const Json answer = parse_object(text);
    std::string_view message = text_of(answer, "message");
    if (message.empty()) message = text_of(answer, "error");
    Refusal refusal{.message = core::printable(message.substr(0, kMessageMax))};
    refusal.wants_token = has_any(message, kWantsToken);
    refusal.has_no_auth = message.contains("authentication is not enabled");
    refusal.is_full = message.contains("space exceeded");
    refusal.is_denied = has_any(message, kDenied);
    refusal.is_compacted = message.contains("has been compacted");
    refusal.has_no_leader = has_any(message, kNoLeader);
    return refusal;
}

}  // namespace fopd::eh::etcd

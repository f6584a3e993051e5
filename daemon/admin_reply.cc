#include "daemon/admin_reply.h"

#include <utility>

#include "config/units.h"
#include "core/whole_number.h"

namespace fopd::daemon {

AdminReply json_reply(int status, std::string body) {
    return {.status = status, .content_type = "application/json", .body = std::move(body)};
}

AdminReply object_reply(JsonWriter& json) {
    return json_reply(kOk, json.end_object().text());
}

AdminReply failure(int status, std::string_view message) {
    JsonWriter json;
    json.begin_object().field("error", message).end_object();
    AdminReply reply = json_reply(status, json.text());
    reply.reason = message;
    return reply;
}

namespace {

AdminReply failure_with(int status, std::string_view message,
                        const std::vector<std::string>& problems) {
    JsonWriter json;
    json.begin_object().field("error", message);
    json.list("problems", problems);
    json.end_object();
    AdminReply reply = json_reply(status, json.text());
    reply.reason = problems.empty() ? std::string(message) : problems.front();
    return reply;
}

}  // namespace

AdminReply not_valid(std::string_view message, const std::vector<std::string>& problems) {
    return failure_with(kUnprocessable, message, problems);
}

AdminReply not_found(std::string_view message, const std::vector<std::string>& problems) {
    return failure_with(kNotFound, message, problems);
}

std::optional<std::uint64_t> number_in(const AdminRequest& request, const std::string& key) {
    const auto word = request.query.find(key);
    if (word == request.query.end()) return std::nullopt;
    return core::whole_number(word->second);
}

bool is_yes(const AdminRequest& request, const std::string& key) {
    const auto word = request.query.find(key);
    return word != request.query.end() && word->second == "yes";
}

AdminReply not_changed(const Configuration::Refused& refused) {
    if (refused.busy) return failure(kUnavailable, "not changed: " + refused.problems.front());
    return not_valid("not valid; nothing was changed", refused.problems);
}

void write_setting_value(JsonWriter& json, std::string_view text) {
    const char* unit = "";
    json.key("value");
    if (const auto count = core::whole_number(text)) {
        json.value(*count);
    } else if (const auto span = config::parse_duration(text)) {
        json.value(in_seconds(*span));
        unit = "seconds";
    } else if (const auto size = config::parse_size(text)) {
        json.value(*size);
        unit = "bytes";
    } else if (const auto rate = config::parse_rate(text)) {
        json.value(rate->per_second);
        unit = rate->unit == config::Rate::Unit::kBytes ? "bytes per second" : "per second";
    } else if (text == "none") {
        json.null();
    } else {
        json.value(text);
    }
    json.field("unit", unit);
}

}  // namespace fopd::daemon

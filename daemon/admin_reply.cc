#include "daemon/admin_reply.h"

#include <charconv>
#include <utility>

#include "daemon/json_writer.h"

namespace fopd::daemon {

AdminReply json_reply(int status, std::string body) {
    return {.status = status, .content_type = "application/json", .body = std::move(body)};
}

AdminReply failure(int status, std::string_view message) {
    JsonWriter json;
    json.begin_object().field("error", message).end_object();
    return json_reply(status, json.text());
}

AdminReply not_valid(std::string_view message, const std::vector<std::string>& problems) {
    JsonWriter json;
    json.begin_object().field("error", message);
    json.list("problems", problems);
    json.end_object();
    return json_reply(kUnprocessable, json.text());
}

std::optional<std::uint64_t> number_in(const AdminRequest& request, const std::string& key) {
    const auto word = request.query.find(key);
    if (word == request.query.end()) return std::nullopt;
    std::uint64_t number = 0;
    const char* const end = word->second.data() + word->second.size();
    const auto parsed = std::from_chars(word->second.data(), end, number);
    if (parsed.ec != std::errc{} || parsed.ptr != end) return std::nullopt;
    return number;
}

}  // namespace fopd::daemon

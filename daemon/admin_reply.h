#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/admin_server.h"
#include "daemon/configuration.h"
#include "daemon/json_writer.h"

namespace fopd::daemon {

inline constexpr int kOk = 200;
inline constexpr int kBadRequest = 400;
inline constexpr int kNotFound = 404;
inline constexpr int kConflict = 409;
inline constexpr int kUnprocessable = 422;
inline constexpr int kUnavailable = 503;
inline constexpr int kTimeout = 504;

AdminReply json_reply(int status, std::string body);
// Ends the object.
AdminReply object_reply(JsonWriter& json);
AdminReply failure(int status, std::string_view message);
AdminReply not_valid(std::string_view message, const std::vector<std::string>& problems);
AdminReply not_found(std::string_view message, const std::vector<std::string>& problems);

// Settings that were refused as a whole.
AdminReply not_changed(const Configuration::Refused& refused);

// A value of the configuration as a number with its unit. Its text has a unit unless it is a count
// or a word: see config::size().
void write_setting_value(JsonWriter& json, std::string_view text);

// The query parameter as a number; nothing if it is missing or not a number.
std::optional<std::uint64_t> number_in(const AdminRequest& request, const std::string& key);
// Whether the query parameter is `yes`.
bool is_yes(const AdminRequest& request, const std::string& key);

}  // namespace fopd::daemon

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/admin_server.h"

namespace fopd::daemon {

inline constexpr int kOk = 200;
inline constexpr int kBadRequest = 400;
inline constexpr int kNotFound = 404;
inline constexpr int kConflict = 409;
inline constexpr int kUnprocessable = 422;
inline constexpr int kUnavailable = 503;
inline constexpr int kTimeout = 504;

AdminReply json_reply(int status, std::string body);
AdminReply failure(int status, std::string_view message);
AdminReply not_valid(std::string_view message, const std::vector<std::string>& problems);
AdminReply not_found(std::string_view message, const std::vector<std::string>& problems);

// The query parameter as a number; nothing if it is missing or not a number.
std::optional<std::uint64_t> number_in(const AdminRequest& request, const std::string& key);

}  // namespace fopd::daemon

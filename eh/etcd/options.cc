#include "eh/etcd/options.h"

#include <algorithm>
#include <string_view>

namespace fopd::eh {

namespace {

constexpr std::size_t kEndpointsMax = 16;
constexpr Duration kTimeoutMin = 50ms;
constexpr Duration kTimeoutMax = 60s;

std::string problem_of_endpoint(std::string_view endpoint) {
    const bool is_tls = endpoint.starts_with("https://");
    if (!is_tls && !endpoint.starts_with("http://"))
        return "an endpoint must begin with http:// or https://";
    const std::string_view host = endpoint.substr(is_tls ? 8 : 7);
    const auto is_visible = [](char character) { return character > ' ' && character < 0x7f; };
    if (host.empty() || host.starts_with(':') || !std::ranges::all_of(host, is_visible))
        return "an endpoint needs a host";
    if (host.contains('@')) return "an endpoint must not have a user or password";
    if (host.find_first_of("/?#") != std::string_view::npos)
        return "an endpoint must end with its host and port, such as https://10.0.1.1:2379";
    return {};
}

}  // namespace

std::string problem_of(const EtcdStoreOptions& options) {
    if (options.endpoints.empty()) return "etcd needs an endpoint";
    if (options.endpoints.size() > kEndpointsMax) return "etcd has at most 16 endpoints";
    for (const std::string& endpoint : options.endpoints) {
        std::string problem = problem_of_endpoint(endpoint);
        if (!problem.empty()) return problem;
    }
    const auto is_tls = [](const std::string& endpoint) { return endpoint.starts_with("https:"); };
    const bool has_files = !options.ca.empty() || !options.cert.empty() || !options.key.empty();
    if (has_files && !std::ranges::all_of(options.endpoints, is_tls))
        return "with certificates, all endpoints must begin with https://";
    if (options.cert.empty() != options.key.empty())
        return "a client certificate needs its key, and a key its certificate";
    if (options.user.empty() != options.password.empty())
        return "a user needs a password, and a password a user";
    if (options.prefix.empty() || options.prefix.ends_with('/'))
        return "the prefix must not be empty or end with /";
    if (options.timeout < kTimeoutMin || options.timeout > kTimeoutMax)
        return "the timeout must be 50 ms to 60 s";
    return {};
}

}  // namespace fopd::eh

// SPDX-License-Identifier: BSD-2-Clause
#include "client/endpoint.h"

#include <array>
#include <utility>

#include <arpa/inet.h>
#include <netdb.h>

#include "client/secret_file.h"
#include "core/printable.h"
#include "fabric/network_transport.h"
#include "fop/principal.h"

namespace fopd::client {

namespace {

// There is a receive buffer for every possible reply, so that the server never waits for one.
constexpr std::uint16_t kMessageCredits = 70;

std::unexpected<std::string> unusable(std::string_view words) {
    std::string safe;
    core::append_printable(safe, words);
    return std::unexpected(std::move(safe));
}

}  // namespace

std::expected<Endpoint, std::string> read_endpoint(const EndpointText& text) {
    const auto address = fabric::parse_address(text.server);
    if (!address) return unusable(text.server + ": " + address.error().context);
    if (!fabric::is_network_scheme(address->scheme)) {
        return unusable(text.server + ": an address begins with tcp://, verbs:// or ofi+tcp://");
    }
    Endpoint made{.server = *address};
    if (text.protect == "encrypt") {
        if (address->scheme != fabric::kTcpScheme) {
            return unusable(text.server + ": only tcp:// can be encrypted");
        }
        made.protection = fop::Protection::kEncrypt;
    } else if (!text.protect.empty() && text.protect != "seal") {
        return unusable("protect is seal or encrypt, not " + text.protect);
    }
    made.credentials.user = text.user;
    if (!fop::is_name(made.credentials.user)) return unusable("the user is not a valid name");
    if (!text.token.empty()) {
        auto token = read_token(text.token);
        if (!token) return unusable("token: " + token.error());
        made.token = std::move(*token);
    }
    if (text.key_file.empty()) return made;
    const auto key = read_key_file(text.key_file);
    if (!key) return unusable("key file " + key.error());
    made.credentials.kind = fop::AuthKind::kPrincipal;
    made.credentials.key = *key;
    return made;
}

bool is_numeric(const std::string& host) {
    in6_addr address{};
    return inet_pton(AF_INET, host.c_str(), &address) == 1 ||
           inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

std::expected<std::vector<std::string>, std::string> resolve_host(const std::string& host) {
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (const int code = getaddrinfo(host.c_str(), nullptr, &hints, &found); code != 0) {
        return std::unexpected(gai_strerror(code));
    }
    const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owned(found, &freeaddrinfo);
    std::vector<std::string> numeric;
    for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
        std::array<char, NI_MAXHOST> text{};
        if (getnameinfo(each->ai_addr, each->ai_addrlen, text.data(), text.size(), nullptr, 0,
                        NI_NUMERICHOST) == 0) {
            numeric.emplace_back(text.data());
        }
    }
    if (numeric.empty()) return std::unexpected("the name has no address");
    return numeric;
}

std::unique_ptr<fabric::Transport> make_transport(const std::string& scheme,
                                                  core::EventSink& events, core::Entropy& entropy) {
    return fabric::make_network_transport(scheme, events, [&entropy] { return entropy.number(); });
}

fabric::HostOptions client_host_options(fop::Protection protection) {
    fabric::HostOptions options;
    options.machine = {.receive_buffer_count = kMessageCredits + 2,
                       .receive_buffer_bytes = 36U << 10,
                       .host = "client"};
    options.send_buffer_count = 64;
    options.send_buffer_bytes = 16U << 10;
    options.message_credits_floor = options.message_credits_max = kMessageCredits;
    options.protection = protection;
    return options;
}

}  // namespace fopd::client

// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstddef>
#include <expected>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/entropy.h"
#include "core/events.h"
#include "fabric/address.h"
#include "fabric/session/session_host.h"
#include "fabric/transport.h"
#include "fop/hello.h"
#include "fop/protection.h"

namespace fopd::client {

// The address of a server, and the identity of the client.
struct Endpoint {
    fabric::Address server{};  // The host may be a name.
    fop::Credentials credentials{};
    std::vector<std::byte> token{};  // Sent with each fop; empty: none.
    fop::Protection protection = fop::Protection::kSeal;
};

struct EndpointText {
    std::string server{};    // "tcp://host:port", or "tcp://host:port/locality".
    std::string key_file{};  // Empty: the client is anonymous.
    std::string user{};      // On whose behalf the client acts; empty: the key's principal.
    std::string token{};     // A token or the name of its file; empty: none.
    std::string protect{};   // "seal" or "encrypt"; empty: seal.
    friend bool operator==(const EndpointText&, const EndpointText&) = default;
};

// Also reads the key and the token. An error is the reason for people, safe for a terminal.
std::expected<Endpoint, std::string> read_endpoint(const EndpointText& text);

// Whether the host is an IP address.
bool is_numeric(const std::string& host);
// The IP addresses of a host name, at least one, or the reason for people. Blocks.
std::expected<std::vector<std::string>, std::string> resolve_host(const std::string& host);

// A transport over the real network.
std::unique_ptr<fabric::Transport> make_transport(const std::string& scheme,
                                                  core::EventSink& events, core::Entropy& entropy);

// The buffers and message credits of a client's sessions.
fabric::HostOptions client_host_options(fop::Protection protection);

}  // namespace fopd::client

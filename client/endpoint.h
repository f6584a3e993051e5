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

namespace fopd::client {

// Where a server is, and who asks it.
struct Endpoint {
    fabric::Address server{};  // Its host may be a name.
    fop::Credentials credentials{};
    std::vector<std::byte> token{};  // Goes with each fop; empty: none.
};

struct EndpointText {
    std::string server{};    // "tcp://host:port", or "tcp://host:port/locality".
    std::string key_file{};  // Empty: nobody in particular asks.
    std::string user{};      // For whom; empty: for oneself.
    std::string token{};     // A token, or the file it is in; empty: none.
};

// Reads the key and the token, too. An error is what makes no sense, safe for a terminal.
std::expected<Endpoint, std::string> read_endpoint(const EndpointText& text);

// Whether the address can be connected to as it is.
bool is_numeric(const std::string& host);
// The numeric hosts of a name, at least one, or why there is none. Blocks.
std::expected<std::vector<std::string>, std::string> resolve_host(const std::string& host);

// The real network.
std::unique_ptr<fabric::Transport> make_transport(const std::string& scheme,
                                                  core::EventSink& events, core::Entropy& entropy);

// How much memory and how many messages a client's sessions have.
fabric::HostOptions client_host_options();

}  // namespace fopd::client

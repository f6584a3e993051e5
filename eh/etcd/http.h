#pragma once

#include <cstddef>
#include <expected>
#include <string>

#include "core/result.h"
#include "core/time.h"

namespace fopd::eh::etcd {

struct HttpRequest {
    std::string url{};
    std::string body{};   // JSON.
    std::string token{};  // For the header Authorization; empty: none.
    Duration time{};      // How long it may take.
};

struct HttpAnswer {
    int status = 0;
    std::string body{};
};

// Why there is no answer.
struct HttpFailure {
    Errc code = Errc::kIo;          // Or kTimedOut, kCancelled.
    bool may_have_arrived = false;  // At least a part of the request was sent.
    std::string reason{};           // For people.
};

// Sends one request at a time and waits for its answer.
class Http {
public:
    virtual ~Http() = default;

    // Blocks until there is an answer, or the time is over, whatever the server does.
    virtual std::expected<HttpAnswer, HttpFailure> post(const HttpRequest& request) = 0;
    // Ends the present call soon, and all later ones. Thread-safe.
    virtual void cancel() = 0;
};

}  // namespace fopd::eh::etcd

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
    Duration time{};      // The longest time that the call may take.
};

struct HttpAnswer {
    int status = 0;
    std::string body{};
};

// Why there is no answer.
struct HttpFailure {
    Errc code = Errc::kIo;          // One of kIo, kTimedOut, kCancelled.
    bool may_have_arrived = false;  // At least a part of the request was sent.
    std::string reason{};           // For people.
};

// Sends one request at a time and waits for its answer.
class Http {
public:
    virtual ~Http() = default;

    // Blocks until the answer has come or the time is over.
    virtual std::expected<HttpAnswer, HttpFailure> post(const HttpRequest& request) = 0;
    // Makes the present call and all later ones end soon as cancelled. Thread-safe.
    virtual void cancel() = 0;
};

}  // namespace fopd::eh::etcd

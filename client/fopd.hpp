// SPDX-License-Identifier: BSD-2-Clause
#pragma once

// libfopd for C++17 and later: what fopd.h says, with values and functions in place of structs and
// pointers. All of it is inline, so that nothing but C crosses the border of the library.

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "client/fopd.h"

namespace libfopd {

enum class Status : int {
    kOk = FOPD_OK,
    kInvalid = FOPD_INVALID,
    kUnreachable = FOPD_UNREACHABLE,
    kDenied = FOPD_DENIED,
    kTryAgain = FOPD_TRY_AGAIN,
    kTimedOut = FOPD_TIMED_OUT,
    kClosed = FOPD_CLOSED,
    kCancelled = FOPD_CANCELLED,
    kCorrupt = FOPD_CORRUPT,
    kNoSpace = FOPD_NO_SPACE,
    kNotFound = FOPD_NOT_FOUND,
    kOutcomeUnknown = FOPD_OUTCOME_UNKNOWN,
    kUnsupported = FOPD_UNSUPPORTED,
    kFailed = FOPD_FAILED,
    kExists = FOPD_EXISTS,
    kQuota = FOPD_QUOTA,
    kReadOnly = FOPD_READ_ONLY,
    kMediumMissing = FOPD_MEDIUM_MISSING,
    kLost = FOPD_LOST,
};

inline const char* to_string(Status status) {
    return fopd_status_name(static_cast<int>(status));
}

struct Outcome {
    Status status = Status::kOk;
    std::size_t bytes = 0;  // How many came back.
    std::string words;      // Why it failed, for people: one line, safe for a terminal.

    explicit operator bool() const { return status == Status::kOk; }
};

struct Options {
    std::string server;    // "tcp://host:port", or "tcp://host:port/locality".
    std::string key_file;  // Empty: the server has to let in those who do not say who they are.
    std::string user;      // For whom this client acts; empty for itself.
    std::string job;
    std::chrono::microseconds timeout = std::chrono::seconds(30);  // Of calls that do not say.
};

inline constexpr std::chrono::microseconds kAsLongAsItTakes = std::chrono::microseconds::max();

struct Call {
    std::chrono::microseconds timeout{0};  // 0: as the client's options say.
    std::string job;                       // Empty: likewise.
};

// Called once, on the library's thread: does not block and does not throw.
using Done = std::function<void(const Outcome&)>;

// Two functions for each call: one that takes a Done, and one that waits.
class Client {
public:
    // Makes `client` one that begins to connect, or says why not.
    static Outcome open(const Options& options, Client& client) {
        fopd_options asked;
        fopd_options_init(&asked);
        asked.server = options.server.c_str();
        asked.key_file = options.key_file.empty() ? nullptr : options.key_file.c_str();
        asked.user = options.user.empty() ? nullptr : options.user.c_str();
        asked.job = options.job.empty() ? nullptr : options.job.c_str();
        asked.timeout_us = in_microseconds(options.timeout);
        fopd_client* made = nullptr;
        fopd_result why;
        fopd_open(&asked, &made, &why);
        client.handle_.reset(made);
        return outcome(why);
    }
    // Ends what is under way. Idempotent; the destructor does it too.
    void close() { handle_.reset(); }

    // There is a session. Fails when the server refuses it, and as soon as a try to connect fails.
    Outcome connected(const Call& call = {}) const {
        return waited(call, [this](const fopd_call* asked, fopd_result* result) {
            fopd_connected_wait(handle_.get(), asked, result);
        });
    }
    void connected(const Call& call, Done done) const {
        begun(call, std::move(done), [this](const fopd_call* asked, fopd_done then, void* context) {
            fopd_connected(handle_.get(), asked, then, context);
        });
    }

    // The server answers.
    Outcome ping(const Call& call = {}) const {
        return waited(call, [this](const fopd_call* asked, fopd_result* result) {
            fopd_ping_wait(handle_.get(), asked, result);
        });
    }
    void ping(const Call& call, Done done) const {
        begun(call, std::move(done), [this](const fopd_call* asked, fopd_done then, void* context) {
            fopd_ping(handle_.get(), asked, then, context);
        });
    }

    // `bytes` bytes go to the server with the request and come back with the reply.
    Outcome echo(const void* data, void* into, std::size_t bytes, const Call& call = {}) const {
        return waited(call, [&](const fopd_call* asked, fopd_result* result) {
            fopd_echo_wait(handle_.get(), asked, data, into, bytes, result);
        });
    }
    void echo(const void* data, void* into, std::size_t bytes, const Call& call, Done done) const {
        begun(call, std::move(done), [&](const fopd_call* asked, fopd_done then, void* context) {
            fopd_echo(handle_.get(), asked, data, into, bytes, then, context);
        });
    }

    // The same for any size: the server fetches them from memory, and writes them to memory.
    Outcome bulk_echo(const void* data, void* into, std::size_t bytes,
                      const Call& call = {}) const {
        return waited(call, [&](const fopd_call* asked, fopd_result* result) {
            fopd_bulk_echo_wait(handle_.get(), asked, data, into, bytes, result);
        });
    }
    void bulk_echo(const void* data, void* into, std::size_t bytes, const Call& call,
                   Done done) const {
        begun(call, std::move(done), [&](const fopd_call* asked, fopd_done then, void* context) {
            fopd_bulk_echo(handle_.get(), asked, data, into, bytes, then, context);
        });
    }

private:
    struct Close {
        void operator()(fopd_client* client) const { fopd_close(client); }
    };

    static std::uint64_t in_microseconds(std::chrono::microseconds span) {
        if (span == kAsLongAsItTakes) return FOPD_TIMEOUT_NEVER;
        return span.count() > 0 ? static_cast<std::uint64_t>(span.count()) : FOPD_TIMEOUT_DEFAULT;
    }
    static Outcome outcome(const fopd_result& result) {
        return {static_cast<Status>(result.status), result.bytes, result.words};
    }
    static fopd_call in_c(const Call& call) {
        fopd_call asked;
        fopd_call_init(&asked);
        asked.timeout_us = in_microseconds(call.timeout);
        asked.job = call.job.empty() ? nullptr : call.job.c_str();
        return asked;
    }
    template <typename Wait>
    static Outcome waited(const Call& call, Wait&& wait) {
        const fopd_call asked = in_c(call);
        fopd_result result;
        wait(&asked, &result);
        return outcome(result);
    }
    template <typename Begin>
    static void begun(const Call& call, Done done, Begin&& begin) {
        const fopd_call asked = in_c(call);
        auto kept = std::make_unique<Done>(std::move(done));
        begin(
            &asked,
            [](const fopd_result* result, void* context) {
                const std::unique_ptr<Done> then(static_cast<Done*>(context));
                (*then)(outcome(*result));
            },
            kept.release());
    }

    std::unique_ptr<fopd_client, Close> handle_;
};

}  // namespace libfopd

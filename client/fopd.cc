// SPDX-License-Identifier: BSD-2-Clause
#include "client/fopd.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <expected>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/endpoint.h"
#include "client/session_thread.h"
#include "core/printable.h"
#include "fop/fop_type.h"
#include "fop/principal.h"

using fopd::Duration;
using fopd::client::Ended;
using fopd::client::Operation;
using fopd::client::SessionThread;

// NOLINTNEXTLINE(readability-identifier-naming): C.
struct fopd_client {
    std::shared_ptr<SessionThread> thread;
    std::string job;
    Duration timeout;
};

namespace {

namespace fop = fopd::fop;

constexpr std::uint64_t kTimeoutDefaultUs = 30'000'000;
constexpr const char* kBadJob = "a job is at most 64 bytes of UTF-8 without control characters";

struct StatusName {
    fopd_status status;
    const char* name;
};
constexpr std::array kNames{
    StatusName{FOPD_OK, "ok"},
    StatusName{FOPD_INVALID, "invalid"},
    StatusName{FOPD_UNREACHABLE, "unreachable"},
    StatusName{FOPD_DENIED, "denied"},
    StatusName{FOPD_TRY_AGAIN, "try_again"},
    StatusName{FOPD_TIMED_OUT, "timed_out"},
    StatusName{FOPD_CLOSED, "closed"},
    StatusName{FOPD_CANCELLED, "cancelled"},
    StatusName{FOPD_CORRUPT, "corrupt"},
    StatusName{FOPD_NO_SPACE, "no_space"},
    StatusName{FOPD_NOT_FOUND, "not_found"},
    StatusName{FOPD_OUTCOME_UNKNOWN, "outcome_unknown"},
    StatusName{FOPD_UNSUPPORTED, "unsupported"},
    StatusName{FOPD_FAILED, "failed"},
    StatusName{FOPD_EXISTS, "exists"},
    StatusName{FOPD_QUOTA, "quota"},
    StatusName{FOPD_READ_ONLY, "read_only"},
    StatusName{FOPD_MEDIUM_MISSING, "medium_missing"},
    StatusName{FOPD_LOST, "lost"},
};

fopd_status status_of(const Ended& ended) {
    if (ended.kind == Ended::Kind::kUnreachable) return FOPD_UNREACHABLE;
    if (ended.kind == Ended::Kind::kClosed) return FOPD_CLOSED;
    switch (ended.status) {
        case fop::Status::kDone: return FOPD_OK;
        case fop::Status::kUnknownFop:
        case fop::Status::kVersion: return FOPD_UNSUPPORTED;
        case fop::Status::kMalformed:
        case fop::Status::kWrongPool:
        case fop::Status::kTooLarge: return FOPD_INVALID;
        case fop::Status::kDenied: return FOPD_DENIED;
        case fop::Status::kTryAgain:
        case fop::Status::kBusy: return FOPD_TRY_AGAIN;
        case fop::Status::kTimedOut: return FOPD_TIMED_OUT;
        case fop::Status::kCancelled: return FOPD_CANCELLED;
        case fop::Status::kCorrupt: return FOPD_CORRUPT;
        case fop::Status::kNoSpace: return FOPD_NO_SPACE;
        case fop::Status::kNotFound: return FOPD_NOT_FOUND;
        case fop::Status::kOutcomeUnknown: return FOPD_OUTCOME_UNKNOWN;
        case fop::Status::kInternal: return FOPD_FAILED;
        case fop::Status::kExists: return FOPD_EXISTS;
        case fop::Status::kQuota: return FOPD_QUOTA;
        case fop::Status::kReadOnly: return FOPD_READ_ONLY;
        case fop::Status::kMediumMissing: return FOPD_MEDIUM_MISSING;
        case fop::Status::kLost: return FOPD_LOST;
    }
    return FOPD_FAILED;  // A status that a newer server has added.
}

int fill(fopd_result* result, fopd_status status, std::string_view words, std::size_t bytes = 0) {
    if (result == nullptr) return status;
    result->status = status;
    result->bytes = bytes;
    const std::size_t length = std::min(words.size(), std::size_t{FOPD_WORDS_MAX - 1});
    std::ranges::copy_n(words.begin(), static_cast<std::ptrdiff_t>(length), result->words);
    result->words[length] = '\0';
    return status;
}

int fill(fopd_result* result, const Ended& ended) {
    const bool silent = ended.words.empty() && ended.status != fop::Status::kDone;
    return fill(result, status_of(ended),
                silent ? fop::status_row(ended.status).summary : std::string_view(ended.words),
                ended.bytes);
}

// -- operations --

class WithCallback final : public Operation {
public:
    WithCallback(fopd_done then, void* context) : then_(then), context_(context) {}

    void done(Ended ended) noexcept override {
        fopd_result result;
        fill(&result, ended);
        const fopd_done then = then_;
        void* const context = context_;
        delete this;
        then(&result, context);
    }

private:
    const fopd_done then_;
    void* const context_;
};

class Awaited final : public Operation {
public:
    // Notified under the lock: the waiting thread destroys this as soon as it can.
    void done(Ended ended) noexcept override {
        const std::lock_guard lock(mutex_);
        ended_ = std::move(ended);
        changed_.notify_one();
    }
    Ended wait() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return ended_.has_value(); });
        return std::move(*ended_);
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::optional<Ended> ended_;
};

Duration duration_of(std::uint64_t microseconds) {
    constexpr auto kMax = static_cast<std::uint64_t>(Duration::max().count() / 1000);
    if (microseconds > kMax) return Duration::max();
    return std::chrono::microseconds(microseconds);
}

// What a program built against an older header does not know stays as it is by default.
template <typename Struct>
Struct known_part(const Struct& given, const Struct& defaults) {
    Struct known = defaults;
    std::memcpy(&known, &given, std::min(given.size, sizeof(Struct)));
    return known;
}

// What is asked, and its memory.
struct Asked {
    fop::RequestBody body;  // monostate: that there is a session.
    const void* data = nullptr;
    void* into = nullptr;
    std::size_t bytes = 0;
};

const fop::FopType* type_of(const fop::RequestBody& body) {
    return body.index() == 0 ? nullptr : &fop::kFopTypes[body.index() - 1];
}

// Why it cannot be asked, or null.
const char* fault_of(const fopd_client* client, const fopd_call* call, const Asked& asked) {
    if (client == nullptr) return "no client was given";
    if (call != nullptr && call->size < sizeof(std::size_t)) {
        return "fopd_call_init() was not called";
    }
    const fop::FopType* const type = type_of(asked.body);
    if (type == nullptr || type->payload == fop::Payload::kNone) return nullptr;
    if (type->payload == fop::Payload::kBulk && asked.bytes == 0) return "there are no bytes";
    if (asked.bytes > 0 && (asked.data == nullptr || asked.into == nullptr)) {
        return "no memory was given";
    }
    return nullptr;
}

// Why it cannot be asked, or null.
const char* set_up(Operation& operation, const fopd_client* client, const fopd_call* given,
                   const Asked& asked) {
    if (const char* const fault = fault_of(client, given, asked)) return fault;
    fopd_call call;
    fopd_call_init(&call);
    if (given != nullptr) call = known_part(*given, call);
    operation.timeout =
        call.timeout_us == FOPD_TIMEOUT_DEFAULT ? client->timeout : duration_of(call.timeout_us);
    operation.job = call.job != nullptr ? call.job : client->job;
    if (!fop::is_name(operation.job)) return kBadJob;
    operation.body = asked.body;
    operation.type = type_of(asked.body);
    if (operation.type == nullptr) return nullptr;
    // The server only reads what is opened to it for reading.
    const std::span data(static_cast<std::byte*>(const_cast<void*>(asked.data)), asked.bytes);
    const std::span into(static_cast<std::byte*>(asked.into), asked.bytes);
    if (operation.type->payload == fop::Payload::kInline) {
        operation.payload = data;
        operation.reply_into = into;
    } else if (operation.type->payload == fop::Payload::kBulk) {
        operation.source = data;
        operation.target = into;
    }
    return nullptr;
}

void begin(fopd_client* client, const fopd_call* call, const Asked& asked, fopd_done done,
           void* context) noexcept {
    fopd_result failed;
    try {
        auto operation = std::make_unique<WithCallback>(done, context);
        const char* const fault = set_up(*operation, client, call, asked);
        // From here on the operation owns itself.
        if (fault == nullptr) return client->thread->submit(*operation.release());
        fill(&failed, FOPD_INVALID, fault);
    } catch (const std::exception& problem) {
        fill(&failed, FOPD_NO_SPACE, problem.what());
    }
    done(&failed, context);
}

int wait(fopd_client* client, const fopd_call* call, const Asked& asked,
         fopd_result* result) noexcept try {
    Awaited operation;
    if (const char* const fault = set_up(operation, client, call, asked)) {
        return fill(result, FOPD_INVALID, fault);
    }
    if (client->thread->is_this_thread()) {
        return fill(result, FOPD_INVALID, "the library's thread must not wait");
    }
    client->thread->submit(operation);
    return fill(result, operation.wait());
} catch (const std::exception& problem) {
    return fill(result, FOPD_NO_SPACE, problem.what());
}

Asked echo_of(const void* data, void* into, std::size_t bytes) {
    return {.body = fop::Echo{}, .data = data, .into = into, .bytes = bytes};
}

Asked bulk_echo_of(const void* data, void* into, std::size_t bytes) {
    return {.body = fop::BulkEcho{.source = {}, .target = {}, .bytes = bytes},
            .data = data,
            .into = into,
            .bytes = bytes};
}

// -- how a client is made --

struct Refusal {
    fopd_status status;
    std::string words;
};

std::unexpected<Refusal> refused(fopd_status status, std::string_view words) {
    std::string safe;
    fopd::core::append_printable(safe, words);
    return std::unexpected(Refusal{.status = status, .words = std::move(safe)});
}

std::expected<SessionThread::Options, Refusal> read_options(const fopd_options& options) {
    if (options.server == nullptr) return refused(FOPD_INVALID, "no server is named");
    const auto text = [](const char* given) { return std::string(given == nullptr ? "" : given); };
    auto read = fopd::client::read_endpoint(
        {.server = options.server, .key_file = text(options.key_file), .user = text(options.user)});
    if (!read) return refused(FOPD_INVALID, read.error());
    if (!fop::is_name(text(options.job))) return refused(FOPD_INVALID, kBadJob);
    return std::move(*read);
}

SessionThread::World world_for(const fopd::fabric::Address& server) {
    SessionThread::World world;
    if (!fopd::client::is_numeric(server.host)) world.resolve = &fopd::client::resolve_host;
    world.make_transport = [scheme = server.scheme](fopd::core::EventSink& events,
                                                    fopd::core::Entropy& entropy) {
        return fopd::client::make_transport(scheme, events, entropy);
    };
    return world;
}

}  // namespace

const char* fopd_status_name(int status) {
    const auto* const row = std::ranges::find(kNames, status, &StatusName::status);
    return row == kNames.end() ? "unknown" : row->name;
}

void fopd_options_init(fopd_options* options) {
    *options = {};
    options->size = sizeof(fopd_options);
    options->timeout_us = kTimeoutDefaultUs;
}

void fopd_call_init(fopd_call* call) {
    *call = {};
    call->size = sizeof(fopd_call);
}

int fopd_open(const fopd_options* options, fopd_client** client, fopd_result* why) try {
    *client = nullptr;
    if (options == nullptr || options->size < sizeof(std::size_t)) {
        return fill(why, FOPD_INVALID, "fopd_options_init() was not called");
    }
    fopd_options known;
    fopd_options_init(&known);
    known = known_part(*options, known);
    const auto read = read_options(known);
    if (!read) return fill(why, read.error().status, read.error().words);
    auto made = std::make_unique<fopd_client>();
    made->timeout = duration_of(known.timeout_us == FOPD_TIMEOUT_DEFAULT ? kTimeoutDefaultUs
                                                                         : known.timeout_us);
    if (known.job != nullptr) made->job = known.job;
    auto thread = SessionThread::start(*read, world_for(read->server));
    if (!thread) return fill(why, FOPD_NO_SPACE, fopd::describe(thread.error()));
    made->thread = std::move(*thread);
    *client = made.release();
    return fill(why, FOPD_OK, {});
} catch (const std::exception& problem) {
    return fill(why, FOPD_NO_SPACE, problem.what());
}

void fopd_close(fopd_client* client) {
    const std::unique_ptr<fopd_client> owned(client);
    if (owned != nullptr) SessionThread::stop(owned->thread);
}

void fopd_connected(fopd_client* client, const fopd_call* call, fopd_done done, void* context) {
    begin(client, call, {}, done, context);
}
int fopd_connected_wait(fopd_client* client, const fopd_call* call, fopd_result* result) {
    return wait(client, call, {}, result);
}

void fopd_ping(fopd_client* client, const fopd_call* call, fopd_done done, void* context) {
    begin(client, call, {.body = fop::Ping{}}, done, context);
}
int fopd_ping_wait(fopd_client* client, const fopd_call* call, fopd_result* result) {
    return wait(client, call, {.body = fop::Ping{}}, result);
}

void fopd_echo(fopd_client* client, const fopd_call* call, const void* data, void* into,
               size_t bytes, fopd_done done, void* context) {
    begin(client, call, echo_of(data, into, bytes), done, context);
}
int fopd_echo_wait(fopd_client* client, const fopd_call* call, const void* data, void* into,
                   size_t bytes, fopd_result* result) {
    return wait(client, call, echo_of(data, into, bytes), result);
}

void fopd_bulk_echo(fopd_client* client, const fopd_call* call, const void* data, void* into,
                    size_t bytes, fopd_done done, void* context) {
    begin(client, call, bulk_echo_of(data, into, bytes), done, context);
}
int fopd_bulk_echo_wait(fopd_client* client, const fopd_call* call, const void* data, void* into,
                        size_t bytes, fopd_result* result) {
    return wait(client, call, bulk_echo_of(data, into, bytes), result);
}

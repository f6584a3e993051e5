// SPDX-License-Identifier: BSD-2-Clause
#include "client/c_call.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

#include "client/request_fault.h"
#include "fop/fop_type.h"

namespace fopd::client {

namespace {

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
        case fop::Status::kBusy:
        case fop::Status::kStaging:
        case fop::Status::kStagingFull: return FOPD_TRY_AGAIN;
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

int fill_ended(fopd_result* result, const Ended& ended) {
    const bool silent = ended.words.empty() && ended.status != fop::Status::kDone;
    return fill(result, status_of(ended),
                silent ? fop::status_row(ended.status).summary : std::string_view(ended.words),
                ended.bytes);
}

class WithCallback final : public Operation {
public:
    WithCallback(fopd_done then, void* context) : then_(then), context_(context) {}

    void done(Ended ended) noexcept override {
        fopd_result result;
        fill_ended(&result, ended);
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
    // Notifies under the lock: as soon as it is free, the waiting thread destroys this.
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

const fop::FopType* type_of(const fop::RequestBody& body) {
    return body.index() == 0 ? nullptr : &fop::kFopTypes[body.index() - 1];
}

// The reason why the call is invalid; empty if it is valid.
std::string fault_of(const fopd_client* client, const fopd_call* call, const Asked& asked) {
    if (client == nullptr) return "no client was given";
    if (call != nullptr && !is_set_up(call)) {
        return "fopd_call_init() was not called";
    }
    if (!asked.fault.empty()) return asked.fault;
    const fop::FopType* const type = type_of(asked.body);
    if (type == nullptr || type->payload == fop::Payload::kNone) return {};
    if (type->payload == fop::Payload::kBulk && asked.bytes == 0) return "there are no bytes";
    if (asked.bytes > 0 && (asked.data == nullptr || asked.into == nullptr)) {
        return "no memory was given";
    }
    return {};
}

// Prepares the operation. Returns the reason why the call is invalid; empty if it is valid.
std::string set_up(Operation& operation, const fopd_client* client, const fopd_call* given,
                   Asked asked) {
    if (auto fault = fault_of(client, given, asked); !fault.empty()) return fault;
    fopd_call call;
    fopd_call_init(&call);
    if (given != nullptr) call = known_part(*given, &fopd_call_init);
    operation.timeout =
        call.timeout_us == FOPD_TIMEOUT_DEFAULT ? client->timeout : duration_of(call.timeout_us);
    operation.job = call.job != nullptr ? call.job : client->job;
    if (auto fault = fault_of_name("job", operation.job); !fault.empty()) {
        return fault;
    }
    operation.work = std::move(asked.work);
    operation.body = asked.body;
    operation.type = type_of(asked.body);
    if (operation.type == nullptr) return {};
    // The server only reads memory that is opened to it as a source.
    const std::span data(static_cast<std::byte*>(const_cast<void*>(asked.data)), asked.bytes);
    const std::span into(static_cast<std::byte*>(asked.into), asked.bytes);
    if (operation.type->payload == fop::Payload::kInline) {
        operation.payload = data;
        operation.reply_into = into;
    } else if (operation.type->payload == fop::Payload::kBulk) {
        operation.source = data;
        operation.target = into;
    }
    return {};
}

}  // namespace

void begin_call(fopd_client* client, const fopd_call* call, fopd_done done, void* context,
                const MakeAsked& make) noexcept {
    fopd_result failed;
    try {
        auto operation = std::make_unique<WithCallback>(done, context);
        const std::string fault = set_up(*operation, client, call, make());
        // From here on the operation owns itself.
        if (fault.empty()) return client->thread->submit(*operation.release());
        fill(&failed, FOPD_INVALID, fault);
    } catch (const std::exception& problem) {
        fill(&failed, FOPD_NO_SPACE, problem.what());
    }
    done(&failed, context);
}

int wait_for_call(fopd_client* client, const fopd_call* call, fopd_result* result,
                  const MakeAsked& make) noexcept try {
    Awaited operation;
    if (const auto fault = set_up(operation, client, call, make()); !fault.empty()) {
        return fill(result, FOPD_INVALID, fault);
    }
    if (client->thread->is_this_thread()) {
        return fill(result, FOPD_INVALID, "the library's thread must not wait");
    }
    client->thread->submit(operation);
    return fill_ended(result, operation.wait());
} catch (const std::exception& problem) {
    return fill(result, FOPD_NO_SPACE, problem.what());
}

int fill(fopd_result* result, fopd_status status, std::string_view words, std::size_t bytes) {
    if (result == nullptr) return status;
    result->status = status;
    result->bytes = bytes;
    const std::size_t length = std::min(words.size(), std::size_t{FOPD_WORDS_MAX - 1});
    std::ranges::copy_n(words.begin(), static_cast<std::ptrdiff_t>(length), result->words);
    result->words[length] = '\0';
    return status;
}

Duration duration_of(std::uint64_t microseconds) {
    constexpr auto kMax = static_cast<std::uint64_t>(Duration::max().count() / 1000);
    if (microseconds > kMax) return Duration::max();
    return std::chrono::microseconds(microseconds);
}

std::string c_text(const char* given) {
    return given == nullptr ? std::string() : std::string(given);
}

}  // namespace fopd::client

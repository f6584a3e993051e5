// SPDX-License-Identifier: BSD-2-Clause
#include "client/fopd.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <exception>
#include <expected>
#include <memory>
#include <string>
#include <utility>

#include "client/c_call.h"
#include "client/client_times.h"
#include "client/endpoint.h"
#include "client/request_fault.h"
#include "client/session_thread.h"
#include "core/printable.h"

namespace fopd::client {

namespace {

constexpr std::uint64_t kTimeoutDefaultUs = 30'000'000;

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

Asked echo_of(const void* data, void* into, std::size_t bytes) {
    return {.body = fop::Echo{}, .data = data, .into = into, .bytes = bytes};
}

Asked bulk_echo_of(const void* data, void* into, std::size_t bytes) {
    return {.body = fop::BulkEcho{.source = {}, .target = {}, .bytes = bytes},
            .data = data,
            .into = into,
            .bytes = bytes};
}

// An error is the reason for people, safe for a terminal.
std::expected<SessionThread::Options, std::string> read_options(const fopd_options& options) {
    if (options.server == nullptr) return std::unexpected("no server is named");
    auto read = read_endpoint({.server = options.server,
                               .key_file = c_text(options.key_file),
                               .user = c_text(options.user),
                               .token = c_text(options.token),
                               .protect = c_text(options.protect)});
    if (!read) return std::unexpected(core::printable(read.error()));
    if (auto fault = fault_of_name("job", c_text(options.job)); !fault.empty()) {
        return std::unexpected(core::printable(fault));
    }
    return SessionThread::Options{std::move(*read), options.explain != 0};
}

SessionThread::World world_for(const fabric::Address& server) {
    SessionThread::World world;
    if (!is_numeric(server.host)) world.resolve = &resolve_host;
    world.make_transport = [scheme = server.scheme](core::EventSink& events,
                                                    core::Entropy& entropy) {
        return client::make_transport(scheme, events, entropy);
    };
    return world;
}

}  // namespace

void pass_times_on(fopd_client* client, fabric::TimesUser& to) {
    client->thread->pass_times_on(to);
}

}  // namespace fopd::client

const char* fopd_status_name(int status) {
    const auto* const row =
        std::ranges::find(fopd::client::kNames, status, &fopd::client::StatusName::status);
    return row == fopd::client::kNames.end() ? "unknown" : row->name;
}

void fopd_options_init_sized(fopd_options* options, size_t size) {
    fopd_options defaults{};
    defaults.size = std::min(size, sizeof(fopd_options));
    defaults.timeout_us = fopd::client::kTimeoutDefaultUs;
    std::memcpy(options, &defaults, defaults.size);
}

// The parentheses keep the macro of this name away.
void(fopd_options_init)(fopd_options* options) {
    fopd_options_init_sized(options, offsetof(fopd_options, explain));
}

void fopd_call_init(fopd_call* call) {
    *call = {};
    call->size = sizeof(fopd_call);
}

int fopd_open(const fopd_options* options, fopd_client** client, fopd_result* why) try {
    using namespace fopd::client;
    *client = nullptr;
    if (!is_set_up(options)) {
        return fill(why, FOPD_INVALID, "fopd_options_init() was not called");
    }
    fopd_options known = known_part(*options, &fopd_options_init);
    const auto read = read_options(known);
    if (!read) return fill(why, FOPD_INVALID, read.error());
    auto made = std::make_unique<fopd_client>();
    if (known.timeout_us == FOPD_TIMEOUT_DEFAULT) known.timeout_us = kTimeoutDefaultUs;
    made->timeout = duration_of(known.timeout_us);
    made->job = c_text(known.job);
    auto thread = SessionThread::start(*read, world_for(read->server));
    if (!thread) return fill(why, FOPD_NO_SPACE, fopd::describe(thread.error()));
    made->thread = std::move(*thread);
    *client = made.release();
    return fill(why, FOPD_OK, {});
} catch (const std::exception& problem) {
    return fopd::client::fill(why, FOPD_NO_SPACE, problem.what());
}

void fopd_get_times(fopd_client* client, fopd_times* times, size_t size) {
    using namespace fopd::client;
    using fopd::fop::SpentOn;
    const TimeLedger::Figures figures = client->thread->times();
    const CallTimes& sum = figures.sum;
    const auto ns = [](fopd::Duration time) { return static_cast<std::uint64_t>(time.count()); };
    const fopd_times all{.fops = figures.calls,
                         .total_ns = ns(sum.total),
                         .unsent_ns = ns(sum.unsent),
                         .network_ns = ns(sum.network()),
                         .policy_ns = ns(sum.of(SpentOn::kPolicy)),
                         .buffer_ns = ns(sum.of(SpentOn::kBuffer)),
                         .lock_ns = ns(sum.of(SpentOn::kLock)),
                         .client_ns = ns(sum.of(SpentOn::kClient)),
                         .room_ns = ns(sum.of(SpentOn::kRoom)),
                         .disk_queue_ns = ns(sum.of(SpentOn::kDiskQueue)),
                         .disk_ns = ns(sum.of(SpentOn::kDisk)),
                         .log_ns = ns(sum.of(SpentOn::kLog)),
                         .locality_ns = ns(sum.of(SpentOn::kLocality)),
                         .server_ns = ns(sum.computed())};
    std::memcpy(times, &all, std::min(size, sizeof(fopd_times)));
}

void fopd_close(fopd_client* client) {
    const std::unique_ptr<fopd_client> owned(client);
    if (owned != nullptr) fopd::client::SessionThread::stop(owned->thread);
}

FOPD_CALL(connected, Asked{})
FOPD_CALL(ping, (Asked{.body = fopd::fop::Ping{}}))
FOPD_CALL(echo, echo_of(data, into, bytes), const void* data, void* into, size_t bytes)
FOPD_CALL(bulk_echo, bulk_echo_of(data, into, bytes), const void* data, void* into, size_t bytes)

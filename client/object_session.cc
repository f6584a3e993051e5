// SPDX-License-Identifier: BSD-2-Clause
#include "client/object_session.h"

#include <utility>

#include "client/interrupts.h"
#include "core/poll_backend.h"
#include "core/printable.h"

namespace fopd::client {

namespace {

using Failure = ObjectSession::Failure;

std::unexpected<Failure> failed(Failure::Kind kind, std::string words) {
    return std::unexpected(Failure{.kind = kind, .words = std::move(words)});
}

Failure::Kind kind_of(Errc code) {
    switch (code) {
        case Errc::kDenied: return Failure::Kind::kDenied;
        case Errc::kBusy: return Failure::Kind::kTryAgain;
        case Errc::kNoSpace: return Failure::Kind::kFailed;
        default: return Failure::Kind::kUnreachable;
    }
}

}  // namespace

std::expected<std::unique_ptr<ObjectSession>, Failure> ObjectSession::open(const Options& options) {
    std::unique_ptr<ObjectSession> session(new ObjectSession());
    if (auto connected = session->connect(options); !connected) {
        return std::unexpected(std::move(connected.error()));
    }
    return session;
}

ObjectSession::~ObjectSession() {
    close_objects();
    if (host_ != nullptr) run(host_->close());
}

std::expected<void, Failure> ObjectSession::connect(const Options& options) {
    auto endpoint = read_endpoint(options.endpoint);
    if (!endpoint) return failed(Failure::Kind::kUsage, std::move(endpoint.error()));
    auto backend = core::make_poll_backend(clock_);
    if (!backend) return failed(Failure::Kind::kFailed, describe(backend.error()));
    reactor_ = std::make_unique<core::Reactor>(std::move(*backend));
    transport_ = make_transport(endpoint->server.scheme, events_, entropy_);
    auto host = std::make_unique<fabric::SessionHost>(*reactor_, events_, entropy_,
                                                      client_host_options(endpoint->protection));
    if (const auto opened = host->open(*transport_); !opened) {
        return failed(Failure::Kind::kFailed, describe(opened.error()));
    }
    host_ = std::move(host);

    std::vector<std::string> hosts{endpoint->server.host};
    if (!is_numeric(endpoint->server.host)) {
        auto found = resolve_host(endpoint->server.host);
        if (!found) {
            return failed(Failure::Kind::kUnreachable,
                          fabric::format_address(endpoint->server) + ": " + found.error());
        }
        hosts = std::move(*found);
    }
    const Instant deadline = after(clock_.now(), options.connect_max);
    std::expected<void, Failure> connected;
    for (const std::string& each : hosts) {
        endpoint->server.host = each;
        connected = try_host(options, *endpoint, deadline);
        if (connected || connected.error().kind == Failure::Kind::kDenied) break;
    }
    return connected;
}

std::expected<void, Failure> ObjectSession::try_host(const Options& options,
                                                     const Endpoint& endpoint, Instant deadline) {
    objects_ = std::make_unique<ObjectClient>(
        *host_, ObjectClientOptions{.server = endpoint.server,
                                    .credentials = endpoint.credentials,
                                    .token = endpoint.token,
                                    .job = options.job,
                                    .times = options.times});
    objects_->start();
    const auto open = run(connected(deadline, options.interrupt_fd));
    if (open) return {};
    std::string words = fabric::format_address(endpoint.server) + ": ";
    const std::string& problem = objects_->home().last_problem();
    core::append_printable(words, problem.empty() ? describe(open.error()) : problem);
    const auto kind =
        objects_->home().lacks_locality() ? Failure::Kind::kNotFound : kind_of(open.error().code);
    close_objects();
    return failed(kind, std::move(words));
}

Task<Result<void>> ObjectSession::connected(Instant deadline, int interrupt_fd) {
    core::CancelSource cancel;
    CancelledBy interrupt(*reactor_, interrupt_fd, cancel);
    const auto open =
        co_await objects_->home().connected(deadline, fabric::Client::Tries::kFirst, &cancel);
    co_await interrupt.close();
    co_return open;
}

void ObjectSession::close_objects() {
    if (objects_ == nullptr) return;
    run(objects_->close());
    objects_.reset();
}

}  // namespace fopd::client

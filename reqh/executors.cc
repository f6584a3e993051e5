#include "reqh/executors.h"

#include <algorithm>
#include <array>
#include <variant>

#include "core/buffer_pool.h"
#include "core/crc32c.h"

namespace fopd::reqh {

namespace {

// Nothing here has changed, so that the same request may come again when the session is another.
fop::Reply failed_without_trace(const Error& error) {
    const bool has_lost_session = error.code == Errc::kClosed;
    return {.status = has_lost_session ? fop::Status::kTryAgain : fop::status_of(error.code),
            .words = error.context};
}

Task<fop::Reply> run_ping(Execution /*execution*/) {
    co_return fop::Reply{.body = fop::PingReply{}};
}

Task<fop::Reply> run_echo(Execution execution) {
    const fop::Request& request = execution.fop->request();
    co_return fop::Reply{
        .payload = request.payload, .payload_crc = request.payload_crc, .body = fop::EchoReply{}};
}

Task<fop::Reply> run_bulk_echo(Execution execution) {
    const auto& request = std::get<fop::BulkEcho>(execution.fop->request().body);
    fop::BulkEchoReply done;
    while (done.bytes < request.bytes) {
        core::Buffer piece = execution.piece;
        piece.size_bytes = std::min<std::uint64_t>(piece.size_bytes, request.bytes - done.bytes);
        const auto pulled = co_await execution.fop->pull(&request.source, done.bytes, piece);
        if (!pulled) co_return failed_without_trace(pulled.error());

        done.crc = core::crc32c(piece.span(), done.crc);
        const auto pushed = co_await execution.fop->push(&request.target, done.bytes, piece);
        if (!pushed) co_return failed_without_trace(pushed.error());

        done.bytes += piece.size_bytes;
        co_await execution.reactor->maybe_yield();
    }
    co_return fop::Reply{.body = done};
}

std::uint64_t no_bulk(const fop::Request& /*request*/) {
    return 0;
}

std::uint64_t bulk_of_bulk_echo(const fop::Request& request) {
    return std::get<fop::BulkEcho>(request.body).bytes;
}

// In the order of fop::kFopTypes. To add a type: write its step, add its row.
constexpr std::array kExecutors{
    Executor{.type = 1, .run = &run_ping, .bulk_bytes = &no_bulk},
    Executor{.type = 2, .run = &run_echo, .bulk_bytes = &no_bulk},
    Executor{.type = 3, .run = &run_bulk_echo, .bulk_bytes = &bulk_of_bulk_echo},
};
static_assert(std::ranges::equal(kExecutors, fop::kFopTypes, {}, &Executor::type,
                                 &fop::FopType::number),
              "each type of fop has its executor, at the same index");

}  // namespace

const Executor& executor_of(const fop::FopType& type) {
    return kExecutors[static_cast<std::size_t>(&type - fop::kFopTypes.data())];
}

}  // namespace fopd::reqh

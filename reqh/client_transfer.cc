#include "reqh/client_transfer.h"

#include "core/remote_task.h"

namespace fopd::reqh {

Task<Result<void>> ClientTransfer::pull(const fop::SealedDescriptor* source, std::uint64_t offset,
                                        core::Buffer into) const {
    return move({.memory = source,
                 .offset = offset,
                 .buffer = into,
                 .direction = ClientMemory::Direction::kPull});
}

Task<Result<void>> ClientTransfer::push(const fop::SealedDescriptor* target, std::uint64_t offset,
                                        core::Buffer from) const {
    return move({.memory = target,
                 .offset = offset,
                 .buffer = from,
                 .direction = ClientMemory::Direction::kPush});
}

Task<Result<void>> ClientTransfer::move(ClientMemory::Move what) const {
    ClientMemory* const client = fop_.origin().client;
    const bool is_pull = what.direction == ClientMemory::Direction::kPull;
    const Waiting waiting =
        fop_.waits_for({.what = is_pull ? WaitsFor::kClientSends : WaitsFor::kClientTakes});
    if (fop_.origin().reactor == fop_.site().reactor) co_return co_await client->move(what);
    auto job = [client, what] { return client->move(what); };
    const auto moved = co_await core::run_task_on<Result<void>>(
        fop_.reactor(), *fop_.origin().reactor, fop_.origin().stores->duties(), job);
    if (moved) co_return *moved;
    co_return std::unexpected(Error{.code = Errc::kClosed, .context = "the server is stopping"});
}

}  // namespace fopd::reqh

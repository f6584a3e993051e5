#pragma once

#include <cstdint>

#include "io_sched/awaited_request.h"

namespace fopd::io_sched::testing {

// Requests of one part, for coroutines: `co_await io.read(…)` gives a Result<void>.
class AwaitedIo {
public:
    using Options = AwaitedRequest::Options;

    AwaitedIo(core::Reactor& reactor, MainScheduler& scheduler)
        : scheduler_{.reactor = reactor, .main = scheduler} {}

    AwaitedRequest read(MediumId medium, core::Buffer into, std::uint64_t offset,
                        Options options = {}) {
        return request(IoType::kRead, medium, into, offset, options);
    }
    AwaitedRequest write(MediumId medium, core::Buffer from, std::uint64_t offset,
                         Options options = {}) {
        return request(IoType::kWrite, medium, from, offset, options);
    }
    AwaitedRequest format(MediumId medium, std::uint64_t offset, std::uint64_t size_bytes,
                          Options options = {}) {
        return request(IoType::kFormat, medium, {.size_bytes = size_bytes}, offset, options);
    }
    MainScheduler& scheduler() { return scheduler_.main; }

private:
    AwaitedRequest request(IoType type, MediumId medium, core::Buffer buffer, std::uint64_t offset,
                           const Options& options) {
        return {scheduler_, type, {.medium = medium, .buffer = buffer, .offset = offset}, options};
    }

    const AwaitedRequest::Scheduler scheduler_;
};

}  // namespace fopd::io_sched::testing

#include "daemon/locality.h"

namespace fopd::daemon {

Task<std::uint64_t> Locality::drain(Instant deadline) {
    const auto closed = co_await work_.close_by(reactor_, deadline);
    if (closed) co_return 0;
    co_return work_.count();
}

Task<std::uint64_t> Locality::close() {
    const std::uint64_t left = work_.count();
    cut_off_.cancel();
    co_await work_.close(reactor_);
    buffers_.close();
    co_return left;
}

}  // namespace fopd::daemon

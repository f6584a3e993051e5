#pragma once

#include <cstdint>

#include "core/io.h"
#include "core/reactor.h"
#include "core/task.h"
#include "fabric/rpc/incoming.h"
#include "fop/fop_type.h"
#include "fop/message.h"

namespace fopd::reqh {

// What the execute step of a fop works with; all of it stays until the step has ended.
struct Execution {
    fabric::IncomingFop* fop;
    core::Reactor* reactor;
    core::Buffer piece;  // Of fops with bulk data; else empty.
};

// The execute step of a type of fop. The reply may borrow from the request.
struct Executor {
    std::uint16_t type;
    Task<fop::Reply> (*run)(Execution execution);
    // How many bytes of bulk data the fop is about.
    std::uint64_t (*bulk_bytes)(const fop::Request& request);
};

const Executor& executor_of(const fop::FopType& type);

}  // namespace fopd::reqh

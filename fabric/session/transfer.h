#pragma once

#include <cstdint>

#include "core/intrusive_list.h"
#include "fabric/transport.h"

namespace fopd::fabric {

class Session;

// A part of a transfer from or to memory that a session's peer has opened. The caller fills it in
// and starts it at the session, which calls `done` once. Until then it must not be moved or
// destroyed, like every TransferOp.
struct Transfer : TransferOp, core::ListNode {
    enum class Direction : std::uint8_t { kPull, kPush };
    using Done = void (*)(Transfer&);

    explicit Transfer(Done on_done) : TransferOp(&on_complete), done(on_done) {}

    Direction direction = Direction::kPull;
    Done done;

private:
    friend Session;
    static void on_complete(TransferOp& op);
    Session* session_ = nullptr;
};

}  // namespace fopd::fabric

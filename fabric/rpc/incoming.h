#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/cancel.h"
#include "core/io.h"
#include "core/result.h"
#include "core/task.h"
#include "core/time.h"
#include "fop/bodies.h"
#include "fop/message.h"
#include "fop/principal.h"
#include "fop/rights.h"

namespace fopd::fabric {

// Identifies the client of a remembered request. Computed from the client's id and its principal,
// because the id is no secret: another principal that uses the same id is a different owner. So is
// a peer, or a client without a key, that calls itself by the principal's name.
using RequestOwner = std::array<std::byte, 15>;
RequestOwner request_owner(std::span<const std::byte, 16> client, fop::AuthKind kind,
                           std::string_view principal);

// The other end of a session, as it has proven itself.
struct Caller {
    std::uint64_t session = 0;
    std::array<std::byte, 16> client{};  // The same on all sessions of a client.
    // What the principal's name was proved with: without a key, and with the peers', it is only
    // what the other side calls itself.
    fop::AuthKind kind = fop::AuthKind::kPrincipal;
    std::string principal{};
    RequestOwner owner{};               // Of the client, the kind and the name.
    std::string share{};                // fop::share_name().
    std::string user{};                 // For whom it acts: itself, unless it may say another.
    std::vector<std::string> groups{};  // Its own.
    fop::Rights rights{};
    std::string address{};  // For logs.
};

// A fop from its arrival to its reply. Made and owned by the server side of RPC; all of it lives on
// one reactor and stays until reply() was called, also when the session ends before. It holds no
// receive buffer: what it says was copied out of the message.
class IncomingFop {
public:
    // The payload was compared with its checksum, and the body is that of the type, unless
    // request().fault says otherwise.
    virtual const fop::Request& request() const = 0;
    virtual const fop::RequestHeader& header() const = 0;
    virtual const Caller& caller() const = 0;
    // kNever: none.
    virtual Instant deadline() const = 0;

    // Cancelled when the client gives the fop up. Also cancelled when the session ends, unless the
    // fop has started and only this server remembers it. reply() may be called from within; the fop
    // then stays until cancel() has returned.
    virtual core::CancelSource& cancel_source() = 0;

    // The fop begins to execute: its changes may stay even if its session ends. Called once, before
    // the fop changes anything. A fop that is answered without this call has changed nothing: it is
    // not remembered, and a resend of it is a new fop.
    virtual void started() = 0;

    // Moves client memory, from `offset` of what the descriptor opens, into the piece, or a piece
    // there. Fails by the deadline, the cancel source and the session's end, and as kDenied or
    // kInvalid when the descriptor is not good for that; the piece is the caller's again when the
    // wait is over, in any case. The descriptor stays as long as the fop.
    virtual Task<Result<void>> pull(const fop::SealedDescriptor* source, std::uint64_t offset,
                                    core::Buffer into) = 0;
    virtual Task<Result<void>> push(const fop::SealedDescriptor* target, std::uint64_t offset,
                                    core::Buffer from) = 0;

    // The end of the fop, exactly once; what the reply borrows is copied. Never fails: a client
    // that is gone does not hear it.
    virtual void reply(const fop::Reply& reply) = 0;

protected:
    ~IncomingFop() = default;
};

// Who runs the fops that arrive.
class IncomingUser {
public:
    // The fop is the user's until it calls reply(), perhaps within this call. Never refused: the
    // session's credits bound how many there are.
    virtual void on_incoming(IncomingFop& fop) = 0;

protected:
    ~IncomingUser() = default;
};

}  // namespace fopd::fabric

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
// because the id is no secret: another principal that uses the same id is a different owner. A
// peer, or a client without a key, that claims the principal's name is a different owner as well.
using RequestOwner = std::array<std::byte, 15>;
RequestOwner request_owner(std::span<const std::byte, 16> client, fop::AuthKind kind,
                           std::string_view principal);

// The proved identity of the client at the other end of a session.
struct Caller {
    std::uint64_t session = 0;
    std::array<std::byte, 16> client{};  // The same on all sessions of a client.
    // How the name was proved. Clients without a key, and peers, only claim their name.
    fop::AuthKind kind = fop::AuthKind::kPrincipal;
    std::string principal{};
    RequestOwner owner{};  // Made from the client, the kind and the name.
    std::string share{};   // fop::share_name().
    // The user for whom the client acts: the principal itself, or another user if it may act for
    // others.
    std::string user{};
    std::vector<std::string> groups{};  // The groups of the principal.
    fop::Rights rights{};
    std::string address{};  // For logs.
};

// The memory that counts for a fop from its arrival on, besides its content: kServerFopBytes for
// the records of the server, and the rest for the user's state of a fop that waits, including its
// place in the request scheduler.
inline constexpr std::uint64_t kFopBytes = 2048;
inline constexpr std::uint64_t kServerFopBytes = 704;
// What a client is told of whose request there is no memory for.
inline constexpr std::string_view kRequestMemoryUsedUp =
    "the principal's share of the memory for requests is used up";

// A fop from its arrival to its reply. The server side of RPC makes and owns it. It lives on one
// reactor and exists until reply() was called, even if the session ends before. It uses no receive
// buffer: its content was copied out of the message.
class IncomingFop {
public:
    // The payload matches its checksum, and the body has the type's form, unless request().fault
    // says otherwise.
    virtual const fop::Request& request() const = 0;
    virtual const fop::RequestHeader& header() const = 0;
    virtual const Caller& caller() const = 0;
    // kNever: it has no deadline.
    virtual Instant deadline() const = 0;

    // Cancelled when the client gives the fop up. Also cancelled when the session ends, unless the
    // fop has started and only this server remembers it; such a fop is cancelled when its client's
    // record expires, or its key is revoked. reply() may be called from within; the fop
    // then stays until cancel() has returned.
    virtual core::CancelSource& cancel_source() = 0;

    // The fop begins to execute: its changes may stay even if its session ends. Called once, before
    // the fop changes anything. A fop that is answered without this call has changed nothing: it is
    // not remembered, and a resend of it is a new fop.
    virtual void started() = 0;

    // The fop takes so much more memory until its reply, besides kFopBytes. It counts in the share
    // of its principal, which may have no further requests when that is used up.
    virtual void takes_memory(std::uint64_t bytes) = 0;
    // Whether the share has room for so much more. If not, the fop counts as put off. There is room
    // for the only fop of a principal, unless all principals together use half more than the
    // memory.
    virtual bool may_take_memory(std::uint64_t bytes) = 0;

    // Copies client memory, from `offset` in the memory of the descriptor, into a buffer; push()
    // copies the other way. Fails at the deadline, when the cancel source is cancelled, or when the
    // session ends; kDenied, kInvalid: the descriptor does not permit it. When it returns, the
    // buffer is no longer in use, in any case. REQUIRES: the descriptor is part of the fop's
    // request.
    virtual Task<Result<void>> pull(const fop::SealedDescriptor* source, std::uint64_t offset,
                                    core::Buffer into) = 0;
    virtual Task<Result<void>> push(const fop::SealedDescriptor* target, std::uint64_t offset,
                                    core::Buffer from) = 0;

    // Ends the fop. Called exactly once; the reply is copied. Never fails: if the client is gone,
    // the reply is dropped or kept.
    virtual void reply(const fop::Reply& reply) = 0;

protected:
    ~IncomingFop() = default;
};

// Receives the fops that arrive.
class IncomingUser {
public:
    // The user keeps the fop until it calls reply(), which it may do within this call. It must
    // accept every fop: the credits of sessions limit their number.
    virtual void on_incoming(IncomingFop& fop) = 0;

protected:
    ~IncomingUser() = default;
};

}  // namespace fopd::fabric

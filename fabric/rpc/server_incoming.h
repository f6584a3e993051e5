#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/cancel.h"
#include "core/intrusive_list.h"
#include "core/reused_objects.h"
#include "fabric/rpc/client_records.h"
#include "fabric/rpc/incoming.h"
#include "fabric/rpc/server.h"
#include "fabric/session/transfer.h"

namespace fopd::fabric {

// A fop that has arrived, from its arrival until it has been answered. The server reuses it for
// later fops.
class Server::Incoming final : public IncomingFop,
                               public RememberedRun,
                               public core::ListNode,
                               public core::ReusedObject {
public:
    // So many bytes of a waiting fop do not count against the loan. A fop that only reads has
    // fewer.
    static constexpr std::size_t kUncountedBytes = 512;
    // How many of the `kept` bytes of a request count against the loan while it waits. `kept`: the
    // bytes that are in memory as long as the fop exists.
    static std::uint32_t waiting_bytes(std::size_t kept);
    static std::size_t kept_bytes(const fop::RequestHeader& header, const fop::Request& request);
    // The memory that a request with so many kept bytes counts in its principal's share.
    static std::uint64_t counted_bytes(std::size_t kept) { return kept + kFopBytes; }
    // `type` is null for a fop of unknown type.
    static fop::Lane lane_of(const fop::FopType* type);

    explicit Incoming(Server& server) : server_(server) {}

    // `share` is that of the peer's principal.
    void begin(Peer& peer, PrincipalShare& share, const fop::RequestHeader& header,
               const fop::Request& request, const fop::FopType* type);

    const fop::Request& request() const override { return request_; }
    const fop::RequestHeader& header() const override { return header_; }
    const Caller& caller() const override;
    Instant deadline() const override { return deadline_; }
    core::CancelSource& cancel_source() override { return *cancel_; }
    void started() override;
    void takes_memory(std::uint64_t bytes) override;
    bool may_take_memory(std::uint64_t bytes) override;
    // Called after arrival: a fop that has neither started nor been answered waits for its turn.
    void begin_to_wait();
    Task<Result<void>> pull(const fop::SealedDescriptor* source, std::uint64_t offset,
                            core::Buffer into) override {
        return transfer(Transfer::Direction::kPull, source, offset, into);
    }
    Task<Result<void>> push(const fop::SealedDescriptor* target, std::uint64_t offset,
                            core::Buffer from) override {
        return transfer(Transfer::Direction::kPush, target, offset, from);
    }
    void reply(const fop::Reply& reply) override;
    // Cancels the fop; it may be released on return.
    void abandon() override;

    Peer* peer() { return peer_; }
    RememberedFop* remembered = nullptr;
    const fop::FopType* type = nullptr;  // Null: unknown.
    fop::Lane lane = fop::Lane::kData;

private:
    friend Server;
    Task<Result<void>> transfer(Transfer::Direction direction,
                                const fop::SealedDescriptor* descriptor, std::uint64_t offset,
                                core::Buffer buffer);
    // Cancels the fop. True: it was answered within this call, and is released.
    // REQUIRES: it is not being cancelled.
    bool is_released_by_cancel();
    // If the client has given up the fop and no transfer is in flight: tells the client that its
    // memory is no longer in use.
    void let_go_if_idle();
    template <typename Bytes>
    Bytes keep(Bytes bytes);
    void end_waiting();

    Server& server_;
    Peer* peer_ = nullptr;
    // The share in which counted_bytes_ count. Null between fops.
    PrincipalShare* share_ = nullptr;
    std::uint64_t counted_bytes_ = 0;
    fop::Request request_;
    fop::RequestHeader header_;
    Instant deadline_ = kNever;
    std::optional<core::CancelSource> cancel_;
    bool cancelling_ = false;
    bool started_ = false;
    bool waits_ = false;
    bool is_given_up_ = false;  // The client gave it up: no further transfer begins.
    bool replied_ = false;
    std::uint32_t transfers_ = 0;     // The number of transfers in flight.
    std::vector<std::byte> storage_;  // The memory of request_ and header_.
};

}  // namespace fopd::fabric

#pragma once

#include <string>

#include "core/intrusive_list.h"
#include "fabric/ofi/ofi_provider.h"
#include "fabric/ofi/ofi_silent_sockets.h"
#include "fabric/transport.h"

namespace fopd::fabric {

class OfiMachine;

// One connection over an endpoint of libfabric. When the connection ends, it passes the endpoint to
// the machine, which closes it later; this object may be destroyed before that.
class OfiConnection final : public Connection, public core::ListNode {
public:
    OfiConnection(OfiMachine& machine, ConnectionUser& user, std::string peer);
    ~OfiConnection() override;

    void send(TransferOp& op) override { start(op, TransferOp::Kind::kSend); }
    void read(TransferOp& op) override { start(op, TransferOp::Kind::kRead); }
    void write(TransferOp& op) override { start(op, TransferOp::Kind::kWrite); }
    void close() override;
    std::uint32_t in_flight() const override { return in_flight_; }
    std::string peer() const override { return peer_; }

private:
    friend OfiMachine;
    enum class State : std::uint8_t { kConnecting, kConnected, kEnded };

    void start(TransferOp& op, TransferOp::Kind kind);
    void park(TransferOp& op);
    void mark_tail(TransferOp& op);
    // False: the provider has no room.
    bool post(TransferOp& op);
    void post_parked();
    // The provider has finished the operation.
    void complete_posted(TransferOp& op, Result<void> result);
    void complete(TransferOp& op, Result<void> result);
    void end(const Error& reason, std::string words = {});
    void end_transfers();
    bool hang_up_socket();

    OfiMachine& machine_;
    ConnectionUser* user_;  // Null after on_closed() or close().
    const std::string peer_;
    std::uint64_t id_ = 0;
    State state_ = State::kConnecting;
    Error reason_{.code = Errc::kClosed};
    std::string words_;
    OwnedFid<fid_ep> endpoint_;
    SilentSockets::Visit visit_;
    std::uint32_t in_flight_ = 0;
    std::uint32_t posted_ = 0;
    std::uint32_t reads_posted_ = 0;
    std::uint32_t posted_max_ = 0;
    TransferOp* parked_head_ = nullptr;  // Operations not started yet, oldest first.
    TransferOp* parked_tail_ = nullptr;
};

}  // namespace fopd::fabric

#pragma once

#include "fabric/tcp/sockets.h"

namespace fopd::fabric {

// The sockets of the operating system.
class KernelSockets final : public Sockets {
public:
    bool is_simulated() const override { return false; }
    void abandon(core::IoOp& poll) override;
    Result<Listening> listen(const Address& address, int backlog) override;
    int accept(int listening, SocketAddress& peer) override;
    Result<OwnedSocket> connect(const std::string& host, const SocketAddress& peer) override;
    int connect_error(int fd) override;
    ssize_t receive(int fd, std::span<iovec> parts) override;
    ssize_t send(int fd, std::span<iovec> parts, Follows follows) override;
    void end(int fd) override;
    void close(int fd) override;
};

}  // namespace fopd::fabric

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <sys/socket.h>

#include "core/ensure.h"
#include "core/events.h"
#include "core/result.h"
#include "fabric/address.h"
#include "fabric/ofi_library.h"
#include "fabric/ofi_transport.h"

namespace fopd::fabric {

struct CloseFid {
    template <typename Fid>
    void operator()(Fid* object) const {
        // Busy means that something made from it is still open.
        ENSURE(fi_close(&object->fid) != -FI_EBUSY);
    }
};
// An object of libfabric, closed by its owner, after those that were made from it.
template <typename Fid>
using OwnedFid = std::unique_ptr<Fid, CloseFid>;

struct FreeInfo {
    void operator()(fi_info* info) const { ofi().freeinfo(info); }
};
using OwnedInfo = std::unique_ptr<fi_info, FreeInfo>;

struct SocketAddress {
    sockaddr_storage storage{};
    socklen_t size = sizeof(sockaddr_storage);

    sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
    const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

// An event of a connection, with what the peer gave along.
struct ConnectionEvent {
    std::uint32_t kind = 0;
    fi_eq_cm_entry entry() const;
    std::span<const std::byte> data() const;

    // The next one of a queue: its size, -FI_EAGAIN, or -FI_EAVAIL for an error to be read.
    ssize_t read(fid_eq& queue);

private:
    // More than any provider carries.
    std::array<std::byte, sizeof(fi_eq_cm_entry) + 512> bytes_;
    std::size_t size_bytes_ = 0;
};

// What all machines and acceptors of a transport have in common. Not changed once it is open, and
// libfabric locks what is behind it.
struct Provider {
    core::EventSink& events;
    OfiOptions options;
    OwnedInfo info;  // As the provider offers it, without addresses.
    OwnedFid<fid_fabric> fabric;
    // When it is told to end a connection in the middle of the answer to a read. It does so right
    // when it finds the end of the stream by itself.
    bool frees_reads_twice = false;

    Result<void> open();
    bool registers_local_memory() const { return (info->domain_attr->mr_mode & FI_MR_LOCAL) != 0; }

    // kInvalid when the scheme is another's or the host is not numeric.
    Result<SocketAddress> socket_address(const Address& address) const;
    Address address_of(const sockaddr* address, std::size_t size_bytes) const;
    std::string text_of(const sockaddr* address, std::size_t size_bytes) const {
        return format_address(address_of(address, size_bytes));
    }
    // How to make an endpoint that listens at `source` or connects to `target`; null when there is
    // no memory.
    OwnedInfo info_from(const SocketAddress& source) const;
    OwnedInfo info_to(const SocketAddress& target) const;
};

// `code` as libfabric's calls return it, negative or not.
Error provider_error(long code, const char* context);

}  // namespace fopd::fabric

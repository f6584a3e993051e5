#include "fabric/ofi/ofi_provider.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <rdma/fi_errno.h>

namespace fopd::fabric {

namespace {

// Later libraries keep the rules of this version.
constexpr std::uint32_t kApiVersion = FI_VERSION(1, 17);

// freeinfo() frees addresses with free(), so they are allocated with malloc().
bool put_address(const SocketAddress& address, void*& target, std::size_t& target_bytes) {
    std::free(target);
    target = std::malloc(address.size);
    target_bytes = target == nullptr ? 0 : address.size;
    if (target == nullptr) return false;
    std::memcpy(target, &address.storage, address.size);
    return true;
}

void drop_addresses(fi_info& info) {
    std::free(std::exchange(info.src_addr, nullptr));
    std::free(std::exchange(info.dest_addr, nullptr));
    info.src_addrlen = info.dest_addrlen = 0;
}

std::uint32_t format_of(const SocketAddress& address) {
    return address.storage.ss_family == AF_INET6 ? FI_SOCKADDR_IN6 : FI_SOCKADDR_IN;
}

}  // namespace

Error provider_error(long code, const char* context) {
    const int positive = static_cast<int>(code < 0 ? -code : code);
    // Codes of the operating system come first, and have its texts; libfabric has texts for its
    // own.
    if (positive < FI_ERRNO_OFFSET) return os_error(positive, context);
    return Error{.code = Errc::kIo, .os_errno = positive, .context = context};
}

Result<void> Provider::open() {
    if (options.scheme != kOfiTcpScheme && options.scheme != kVerbsScheme) {
        return std::unexpected(Error{.code = Errc::kInvalid, .context = "unknown fabric provider"});
    }
    // libfabric's cache of registrations registers memory for all that peers can do, whatever it is
    // asked for, and leaves it registered when it is closed. The library reads this variable when
    // it is used for the first time. Each machine checks that the cache is off
    // (OfiMachine::check_cache).
    if (!is_tcp()) ::setenv("FI_MR_CACHE_MAX_COUNT", "0", 1);
    // An empty one.
    const OwnedInfo hints(::fi_dupinfo(nullptr));
    if (!hints) return std::unexpected(Error{.code = Errc::kNoSpace, .context = "fi_dupinfo"});
    hints->caps = FI_MSG | FI_RMA;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = FI_EP_MSG;
    hints->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
    hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
    // Not FI_MR_ENDPOINT: memory is opened to the peers of all connections of a machine.
    hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    hints->fabric_attr->prov_name = ::strdup(is_tcp() ? "tcp" : "verbs");

    fi_info* found = nullptr;
    if (const int failed = ::fi_getinfo(kApiVersion, nullptr, nullptr, 0, hints.get(), &found);
        failed != 0) {
        return std::unexpected(
            Error{.code = Errc::kUnsupported,
                  .os_errno = -failed,
                  .context = is_tcp() ? "find fabric provider"
                                      : "find an RDMA adapter with an address and an active port"});
    }
    const OwnedInfo all(found);
    if (const auto chosen = choose(*all); !chosen) return chosen;
    drop_addresses(*info);

    fid_fabric* opened = nullptr;
    if (const int failed = ::fi_fabric(info->fabric_attr, &opened, nullptr); failed != 0) {
        return std::unexpected(provider_error(failed, "fi_fabric"));
    }
    fabric.reset(opened);
    frees_reads_twice = is_tcp() && FI_VERSION_LT(::fi_version(), FI_VERSION(1, 18));
    return {};
}

// With verbs there is an offer for each address of each adapter. The offers considered here differ
// only in the adapter.
Result<void> Provider::choose(const fi_info& offers) {
    const fi_info* chosen = nullptr;
    for (const fi_info* each = &offers; each != nullptr; each = each->next) {
        // iWARP lets peers write to all memory that is read into, and only RDMA over InfiniBand or
        // Ethernet has shared receive contexts that belong to no connection.
        if (!is_tcp() && each->ep_attr->protocol != FI_PROTO_RDMA_CM_IB_RC) continue;
        if (chosen == nullptr) chosen = each;
        if (is_tcp()) break;
        // A machine belongs to one adapter, and does not learn by which one a peer is reached.
        if (std::strcmp(chosen->domain_attr->name, each->domain_attr->name) == 0) continue;
        return std::unexpected(
            Error{.code = Errc::kUnsupported,
                  .context = "this host has several RDMA adapters, and only one can be used: name "
                             "it in the environment, FI_VERBS_DEVICE_NAME"});
    }
    if (chosen == nullptr) {
        return std::unexpected(Error{
            .code = Errc::kUnsupported,
            .context = "find an RDMA adapter for InfiniBand or RoCE; iWARP is not supported"});
    }
    info.reset(::fi_dupinfo(chosen));
    if (!info) return std::unexpected(Error{.code = Errc::kNoSpace, .context = "fi_dupinfo"});
    return {};
}

OwnedInfo Provider::info_from(const SocketAddress& source) const {
    OwnedInfo copy(::fi_dupinfo(info.get()));
    if (!copy) return copy;
    copy->addr_format = format_of(source);
    if (!put_address(source, copy->src_addr, copy->src_addrlen)) copy.reset();
    return copy;
}

OwnedInfo Provider::info_to(const SocketAddress& target) const {
    OwnedInfo copy(::fi_dupinfo(info.get()));
    if (!copy) return copy;
    copy->addr_format = format_of(target);
    if (!put_address(target, copy->dest_addr, copy->dest_addrlen)) copy.reset();
    return copy;
}

fi_eq_cm_entry ConnectionEvent::entry() const {
    fi_eq_cm_entry entry;
    std::memcpy(&entry, bytes_.data(), sizeof entry);
    return entry;
}

std::span<const std::byte> ConnectionEvent::data() const {
    return std::span(bytes_).first(size_bytes_).subspan(sizeof(fi_eq_cm_entry));
}

ssize_t ConnectionEvent::read(fid_eq& queue) {
    // If a peer hangs up during its handshake, the tcp provider reads errno without setting it: an
    // old EAGAIN would make it wait for that peer forever.
    errno = 0;
    const ssize_t size = fi_eq_read(&queue, &kind, bytes_.data(), bytes_.size(), 0);
    if (size >= 0 && size < static_cast<ssize_t>(sizeof(fi_eq_cm_entry))) return -FI_EAGAIN;
    size_bytes_ = size < 0 ? 0 : static_cast<std::size_t>(size);
    return size;
}

}  // namespace fopd::fabric

#include "fabric/ofi/ofi_connection.h"

#include <algorithm>
#include <cstring>

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "fabric/ofi/ofi_machine.h"

namespace fopd::fabric {

static_assert(offsetof(TransferOp, provider_space) == 0);
static_assert(sizeof(TransferOp::provider_space) == sizeof(fi_context2));

OfiConnection::OfiConnection(OfiMachine& machine, ConnectionUser& user, std::string peer)
    : machine_(machine), user_(&user), peer_(std::move(peer)), id_(++machine.last_id_) {
    machine_.connections_.emplace(id_, this);
    ++machine_.connecting_;
}

OfiConnection::~OfiConnection() {
    ENSURE(state_ == State::kEnded);
    ENSURE(in_flight_ == 0);
    machine_.connections_.erase(id_);
    if (visit_) visit_->store(false, std::memory_order_release);
    if (endpoint_) machine_.closing_.emplace(id_, std::move(endpoint_));
}

void OfiConnection::start(TransferOp& op, TransferOp::Kind kind) {
    ENSURE(!op.in_flight);
    ENSURE(state_ != State::kConnecting);
    op.in_flight = true;
    op.kind = kind;
    op.connection = this;
    op.next = nullptr;
    ++in_flight_;
    ++machine_.in_flight_;
    if (op.kind != TransferOp::Kind::kSend) ++machine_.transfers_in_flight_;
    if (op.kind == TransferOp::Kind::kRead && machine_.provider_.is_tcp()) mark_tail(op);
    // Operations of an ended connection are completed from that list, too.
    if (state_ == State::kEnded || parked_head_ != nullptr || !post(op)) park(op);
}

void OfiConnection::park(TransferOp& op) {
    (parked_head_ == nullptr ? parked_head_ : parked_tail_->next) = &op;
    parked_tail_ = &op;
    if (state_ == State::kEnded) {
        machine_.ended_.push_back(id_);
    } else if (!linked()) {
        machine_.parked_.push_back(*this);
    }
}

// The tcp provider reports success for a read that the peer answered with fewer bytes, and does not
// report the length. So a read first fills the last bytes of its memory with a random mark. Bytes
// arrive in order: after a short answer the mark is still there, whole or in part. If it is whole,
// the read fails; if only a part is left, the missing bytes are the mark's, and no older data.
void OfiConnection::mark_tail(TransferOp& op) {
    const std::span<std::byte> bytes = op.local.bytes;
    for (std::size_t at = 0; at < op.tail.size(); at += sizeof(std::uint64_t)) {
        const std::uint64_t number = machine_.tails_.next();
        std::memcpy(op.tail.data() + at, &number, sizeof number);
    }
    const std::size_t count = std::min(bytes.size(), op.tail.size());
    std::ranges::copy_n(op.tail.begin(), static_cast<std::ptrdiff_t>(count),
                        bytes.last(count).begin());
}

bool OfiConnection::post(TransferOp& op) {
    // The tcp provider only advises a limit, and accepts more.
    if (posted_ >= posted_max_ || machine_.posted_ >= machine_.posted_max_) return false;
    iovec local{.iov_base = op.local.bytes.data(), .iov_len = op.local.bytes.size()};
    void* descriptor = op.local.registration;
    ENSURE(descriptor != nullptr || op.local.bytes.empty() ||
           !machine_.provider_.registers_local_memory());
    const fi_rma_iov remote{
        .addr = op.remote.address, .len = op.local.bytes.size(), .key = op.remote.key};
    // The verbs provider follows the pointer of a write without looking whether it is null.
    const bool has_descriptors = descriptor != nullptr || op.kind == TransferOp::Kind::kRead;
    const fi_msg_rma transfer{.msg_iov = &local,
                              .desc = has_descriptors ? &descriptor : nullptr,
                              .iov_count = 1,
                              .addr = FI_ADDR_UNSPEC,
                              .rma_iov = &remote,
                              .rma_iov_count = 1,
                              .context = &op.provider_space,
                              .data = 0};
    ssize_t failed = 0;
    switch (op.kind) {
        case TransferOp::Kind::kSend:
            failed = fi_send(endpoint_.get(), local.iov_base, local.iov_len, descriptor,
                             FI_ADDR_UNSPEC, &op.provider_space);
            break;
        case TransferOp::Kind::kRead:
            failed = fi_readmsg(endpoint_.get(), &transfer, FI_COMPLETION);
            break;
        case TransferOp::Kind::kWrite:
            // Otherwise a write would complete when its bytes have left this side.
            failed = fi_writemsg(endpoint_.get(), &transfer, FI_COMPLETION | FI_DELIVERY_COMPLETE);
            break;
    }
    if (failed == -FI_EAGAIN) return false;
    ++posted_;
    ++machine_.posted_;
    if (op.kind == TransferOp::Kind::kRead) ++reads_posted_;
    // An operation that the provider refuses for another reason completes as failed.
    if (failed != 0) machine_.failed_.push_back(&op);
    return true;
}

void OfiConnection::post_parked() {
    while (parked_head_ != nullptr) {
        TransferOp& op = *parked_head_;
        TransferOp* const next = op.next;
        if (!post(op)) return;
        parked_head_ = next;
    }
    unlink();
}

void OfiConnection::complete_posted(TransferOp& op, Result<void> result) {
    --posted_;
    --machine_.posted_;
    if (op.kind == TransferOp::Kind::kRead) --reads_posted_;
    if (state_ == State::kEnded && posted_ == 0) machine_.ended_.push_back(id_);
    complete(op, result);
}

void OfiConnection::complete(TransferOp& op, Result<void> result) {
    ENSURE(op.in_flight);
    --in_flight_;
    --machine_.in_flight_;
    if (op.kind != TransferOp::Kind::kSend) --machine_.transfers_in_flight_;
    op.in_flight = false;
    op.result = result;
    op.complete(op);  // This may destroy the connection.
}

void OfiConnection::close() {
    user_ = nullptr;
    end(Error{.code = Errc::kClosed, .context = "closed by this side"});
}

void OfiConnection::end(const Error& reason, std::string words) {
    if (state_ == State::kEnded) return;
    const bool connected = state_ == State::kConnected;
    if (!connected) --machine_.connecting_;
    state_ = State::kEnded;
    reason_ = reason;
    words_ = std::move(words);
    unlink();
    machine_.ended_.push_back(id_);
    if (connected) end_transfers();
}

void OfiConnection::end_transfers() {
    if (reads_posted_ > 0 && machine_.provider_.frees_reads_twice && hang_up_socket()) return;
    if (const int failed = fi_shutdown(endpoint_.get(), 0); failed != 0) {
        core::emit(machine_.provider_.events, core::Level::kDebug, "fabric.shutdown_failed",
                   {{"peer", std::string_view(peer_)},
                    {"reason", std::string_view(::fi_strerror(-failed))}});
    }
}

bool OfiConnection::hang_up_socket() {
    SocketAddress own;
    SocketAddress other;
    std::size_t own_bytes = own.size;
    std::size_t other_bytes = other.size;
    return fi_getname(&endpoint_->fid, own.get(), &own_bytes) == 0 &&
           fi_getpeer(endpoint_.get(), other.get(), &other_bytes) == 0 &&
           hang_up(*own.get(), *other.get());
}

}  // namespace fopd::fabric

#include "fabric/rpc/server_incoming.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "fabric/rpc/server_peer.h"
#include "fabric/rpc/transfer_wait.h"
#include "fop/borrowed.h"
#include "fop/descriptor.h"

namespace fopd::fabric {

fop::Lane Server::Incoming::lane_of(const fop::FopType* type) {
    return type != nullptr ? type->lane : fop::Lane::kData;
}

std::size_t Server::Incoming::kept_bytes(const fop::RequestHeader& header,
                                         const fop::Request& request) {
    return fop::borrowed_bytes(request.body) + header.job.size() + header.pool.size() +
           header.user.size() + request.token.size() + request.payload.size();
}

std::uint32_t Server::Incoming::waiting_bytes(std::size_t kept) {
    return static_cast<std::uint32_t>(kept - std::min(kept, kUncountedBytes));
}

template <typename Bytes>
Bytes Server::Incoming::keep(Bytes bytes) {
    if (bytes.empty()) return {};
    const auto* const from = reinterpret_cast<const std::byte*>(bytes.data());
    const std::size_t at = storage_.size();
    storage_.insert(storage_.end(), from, from + bytes.size());
    using Element = std::remove_reference_t<decltype(*bytes.data())>;
    return Bytes(reinterpret_cast<Element*>(storage_.data() + at), bytes.size());
}

void Server::Incoming::begin(Peer& peer, PrincipalShare& share, const fop::RequestHeader& header,
                             const fop::Request& request, const fop::FopType* known) {
    static_assert(sizeof(Incoming) <= kServerFopBytes);
    peer_ = &peer;
    share_ = &share;
    type = known;
    lane = lane_of(type);
    started_ = waits_ = replied_ = cancelling_ = is_given_up_ = false;
    cancel_.emplace();
    peer.join(*this);
    SessionHost& host = server_.host_;
    deadline_ = request.timeout.count() > 0 ? after(host.reactor().now(), request.timeout) : kNever;

    // Reserved in one step, because the copied body refers to this memory.
    const std::size_t of_body = fop::borrowed_bytes(request.body);
    storage_.clear();
    const std::size_t kept = kept_bytes(header, request);
    storage_.reserve(kept);
    counted_bytes_ = counted_bytes(kept);
    server_.clients_.take_request(share, counted_bytes_);
    request_ = request;
    header_ = header;
    storage_.resize(of_body);
    fop::keep_borrowed(request_.body, storage_);
    request_.payload = keep(request.payload);
    request_.token = keep(request.token);
    header_.job = keep(header.job);
    header_.pool = keep(header.pool);
    header_.user = keep(header.user);
    if (request_.fault != fop::Status::kDone) return;
    if (request_.payload.size() > host.options().inline_max) {
        request_.fault = fop::Status::kTooLarge;
    } else if (!fop::payload_intact(request_)) {
        request_.fault = fop::Status::kCorrupt;
    }
}

const Caller& Server::Incoming::caller() const {
    return peer_->caller;
}

void Server::Incoming::started() {
    ENSURE(!started_);
    started_ = true;
    end_waiting();
    peer_->note_started(*this);
}

void Server::Incoming::takes_memory(std::uint64_t bytes) {
    ENSURE(!replied_);
    counted_bytes_ += bytes;
    server_.clients_.take_request(*share_, bytes);
}

bool Server::Incoming::may_take_memory(std::uint64_t bytes) {
    const bool may = server_.clients_.may_grow_request(
        *share_, {.bytes_before = counted_bytes_, .more_bytes = bytes});
    if (!may) server_.statistics_.lacked_requests.add(1);
    return may;
}

void Server::Incoming::begin_to_wait() {
    if (started_ || replied_ || lane != fop::Lane::kData) return;
    waits_ = true;
    peer_->session->fop_waits(waiting_bytes(storage_.size()));
}

void Server::Incoming::end_waiting() {
    if (std::exchange(waits_, false) && peer_->session != nullptr) {
        peer_->session->fop_waits_no_more(waiting_bytes(storage_.size()));
    }
}

Task<Result<void>> Server::Incoming::transfer(Transfer::Direction direction,
                                              const fop::SealedDescriptor* descriptor,
                                              std::uint64_t offset, core::Buffer buffer) {
    Session* const session = peer_->session;
    if (session == nullptr || session->state() != Session::State::kOpen) {
        co_return std::unexpected(Error{.code = Errc::kClosed, .context = "session"});
    }
    const fop::DescriptorNeed need{.use = direction == Transfer::Direction::kPull
                                              ? fop::DescriptorUse::kPeerReads
                                              : fop::DescriptorUse::kPeerWrites,
                                   .session = session->id(),
                                   .operation = request_.id,
                                   .bytes = offset + buffer.size_bytes};
    const auto opened = fop::check_descriptor(*descriptor, session->descriptor_key(), need);
    if (!opened) co_return std::unexpected(opened.error());
    const TransferWait::What what{
        .direction = direction,
        .local = {.bytes = buffer.span(), .registration = server_.registration_},
        .remote = {.address = opened->address + offset, .key = opened->key}};
    const core::WaitOptions wait{.deadline = deadline_, .cancel = &*cancel_};
    TransferWait waiting(session, what, wait);
    ++transfers_;
    const auto moved = co_await waiting;
    --transfers_;
    let_go_if_idle();
    co_return moved;
}

void Server::Incoming::let_go_if_idle() {
    if (!is_given_up_ || transfers_ > 0 || peer_->session == nullptr) return;
    peer_->session->let_go(request_.id);
}

void Server::Incoming::abandon() {
    if (cancelling_) return;
    [[maybe_unused]] const bool is_released = is_released_by_cancel();
}

bool Server::Incoming::is_released_by_cancel() {
    cancelling_ = true;
    cancel_->cancel();
    cancelling_ = false;
    if (!replied_) return false;
    server_.release(*this);
    return true;
}

void Server::Incoming::reply(const fop::Reply& given) {
    ENSURE(!replied_);
    replied_ = true;
    fop::Reply reply = given;
    reply.id = request_.id;
    end_waiting();
    if (!started_) peer_->forget(*this);
    if (remembered != nullptr) {
        server_.clients_.answered(*std::exchange(remembered, nullptr), reply,
                                  server_.host_.reactor().now());
    } else {
        peer_->reply(reply, lane);
    }
    if (!cancelling_) server_.release(*this);
}

}  // namespace fopd::fabric

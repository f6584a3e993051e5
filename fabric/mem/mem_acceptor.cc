#include "fabric/mem/mem_acceptor.h"

#include <utility>

namespace fopd::fabric {

// -- requests --

MemRequest::~MemRequest() {
    if (packet_ != nullptr && !answered_) refuse({});
}

std::string MemRequest::peer_of(const MemPacket& request) {
    return request.from.station->host() + ':' + std::to_string(request.from.connection);
}

void MemRequest::refuse(std::string_view words) {
    ENSURE(!answered_);
    ENSURE(words.size() <= kRefusalBytesMax);
    answered_ = true;
    const auto bytes = std::as_bytes(std::span(words));
    auto answer = std::make_unique<MemPacket>();
    answer->kind = MemPacket::Kind::kRefuse;
    answer->to = packet_->from;
    answer->way = packet_->back;
    answer->back = packet_->way;
    answer->set_bytes(bytes);
    answer->to.station->push(std::move(answer));
}

std::unique_ptr<MemPacket> MemRequest::take() {
    ENSURE(!answered_);
    answered_ = true;
    return std::move(packet_);
}

// -- the acceptor --

MemAcceptor::MemAcceptor(MemNetwork& network, core::Reactor& reactor, MemStation& station,
                         Address address, RequestUser& requests)
    : network_(network),
      reactor_(reactor),
      station_(station),
      address_(std::move(address)),
      requests_(requests),
      arrivals_(core::Random(station.seed())) {
    reactor_.add_poller(*this);
}

MemAcceptor::~MemAcceptor() {
    close();
}

Task<void> MemAcceptor::stop() {
    close();
    co_return;
}

// Requests that were not handed to the user are returned: nothing listens here, or another acceptor
// may already.
void MemAcceptor::close() {
    if (std::exchange(closed_, true)) return;
    network_.vacate(address_.host, address_.port);
    station_.close();
    for (auto& each : arrivals_.take_all()) MemStation::return_to_sender(std::move(each));
    wake_up_.disarm();
    unlink();
}

bool MemAcceptor::poll() {
    const Instant now = reactor_.now();
    for (auto& each : station_.take()) {
        Instant order = Instant::min();
        arrivals_.add(std::move(each), now, order);
    }
    bool found = false;
    while (!closed_) {
        auto packet = arrivals_.next(now);
        if (packet == nullptr) break;
        found = true;
        if (packet->kind == MemPacket::Kind::kConnect) hand_out(std::move(packet));
    }
    if (!closed_ && arrivals_.next_due() != kNever) {
        reactor_.arm(wake_up_, arrivals_.next_due());
    }
    return found;
}

void MemAcceptor::hand_out(std::unique_ptr<MemPacket> packet) {
    if (packet->way->refuses_connects.load()) {
        packet->kind = MemPacket::Kind::kNobodyThere;
        packet->to = std::exchange(packet->from, {});
        std::swap(packet->way, packet->back);
        packet->to.station->push(std::move(packet));
        return;
    }
    requests_.on_request(std::make_unique<MemRequest>(std::move(packet)));
}

}  // namespace fopd::fabric

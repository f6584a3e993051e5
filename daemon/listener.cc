#include "daemon/listener.h"

#include "fop/hello.h"

namespace fopd::daemon {

namespace {

// How many requests may be in transit to one locality. One whose turns are long accepts at most
// this many in each.
constexpr std::size_t kInTransitMax = 256;

}  // namespace

// A request in transit to its locality. It returns to be freed on the reactor that allocated it.
class Listener::Handover final : public core::Message {
public:
    Handover(Listener& listener, std::size_t index,
             std::unique_ptr<fabric::ConnectionRequest> request)
        : Message(&deliver), listener_(listener), index_(index), request_(std::move(request)) {}

    void send(std::list<Handover>::iterator at) {
        at_ = at;
        ++listener_.in_transit_[index_];
        locality().reactor().post(*this);
    }

private:
    static void deliver(Message& message) {
        auto& self = static_cast<Handover&>(message);
        if (self.request_ != nullptr) {
            self.locality().server().accept(std::move(self.request_));
            self.listener_.localities_.front()->reactor().post(self);
        } else {
            --self.listener_.in_transit_[self.index_];
            self.listener_.handovers_.erase(self.at_);
        }
    }

    Locality& locality() const { return *listener_.localities_[index_]; }

    Listener& listener_;
    const std::size_t index_;  // The index of the locality.
    std::unique_ptr<fabric::ConnectionRequest> request_;
    std::list<Handover>::iterator at_;
};

Listener::Listener(std::vector<Locality*> localities, core::EventSink& events)
    : localities_(std::move(localities)),
      events_(events),
      strangers_(localities_.front()->reactor(), events),
      in_transit_(localities_.size()) {}

Listener::~Listener() = default;

Result<fabric::Address> Listener::listen(fabric::Transport& transport,
                                         const fabric::Address& address,
                                         const fabric::AcceptorOptions& options) {
    auto acceptor = transport.listen(localities_.front()->reactor(), address, *this, options);
    if (!acceptor) return std::unexpected(acceptor.error());
    acceptors_.push_back(std::move(*acceptor));
    return acceptors_.back()->address();
}

Task<void> Listener::stop() {
    for (const auto& acceptor : acceptors_) co_await acceptor->stop();
    acceptors_.clear();
    strangers_.stop();
}

void Listener::on_request(std::unique_ptr<fabric::ConnectionRequest> request) {
    const auto hello = fop::decode_connect_hello(request->hello());
    std::size_t index = next_++ % localities_.size();
    if (hello && hello->locality != fop::kAnyLocality) {
        index = hello->locality;
        if (index >= localities_.size()) {
            return localities_.front()->server().refuse(std::move(request), fop::kNoSuchLocality);
        }
    }
    fabric::Server& first = localities_.front()->server();
    if (index == 0) return first.accept(std::move(request));
    if (in_transit_[index] == kInTransitMax) {
        return first.refuse(std::move(request), "too many connections wait for this locality");
    }
    handovers_.emplace_back(*this, index, std::move(request));
    handovers_.back().send(std::prev(handovers_.end()));
}

void Listener::on_silent(std::uint32_t count) {
    localities_.front()->server().count_silent(count);
    emit(events_, core::Level::kWarn, "fabric.silent_connections",
         {{"ended", static_cast<std::uint64_t>(count)}});
}

void Listener::on_stranger(const fabric::Stranger& stranger) {
    localities_.front()->server().count_stranger(stranger.kind);
    strangers_.add(stranger);
}

}  // namespace fopd::daemon

#include "eh/peers/links.h"

#include <algorithm>

#include "core/ensure.h"
#include "fop/fop_type.h"

namespace fopd::eh::peers {

namespace {

using core::emit;
using core::Level;

// Messages that one link has in flight. A server grants four credits for control fops.
constexpr std::size_t kInFlightMax = 4;
constexpr Duration kBackOffMin = 50ms;
// How often idle links are looked for.
constexpr Duration kSweep = 20s;

const fop::FopType& epoch_type() {
    static_assert(kMessageBytesMax == fop::kEpochMessageBytesMax);
    static constexpr const fop::FopType* kType = fop::find_fop_type("epoch");
    return *kType;
}

// No connection can be made in less.
constexpr Duration kLifeMin = 50ms;

// Epoch messages go to the locality that has the node's epoch handler.
std::optional<fabric::Address> address_of(const Peer& peer) {
    auto address = fabric::parse_address(peer.address);
    if (!address) return std::nullopt;
    address->locality = 0;
    return *address;
}

}  // namespace

// Members repeat what matters at least once in a grace, and act on silence after it. The default
// grace of 500 ms gives the defaults.
void LinkOptions::follow(const MemberOptions& member) {
    const Duration most = std::max(kLifeMin, member.rules.timeout);
    message_life = std::clamp(2 * member.grace, kLifeMin, most);
    back_off_max = std::clamp(4 * member.grace, kLifeMin, most);
    answer_max = 2 * message_life;
}

// The connection to one member. It holds the newest message of each kind, so a member that is away
// costs a bounded amount of memory.
class Links::Link {
public:
    Link(Links& owner, const Peer& peer, fabric::Address address)
        : owner_(owner),
          peer_(peer),
          address_(std::move(address)),
          wake_(owner.reactor_),
          sent_at_(owner.reactor_.now()) {
        make_client();
        owner_.reactor_.spawn(work_, run());
    }

    void send(const Message& message) {
        const std::size_t kind = message.body.index();
        if (!pending_[kind]) order_.push_back(kind);
        const Instant now = owner_.reactor_.now();
        pending_[kind] = Pending{.bytes = encode(message),
                                 .until = after(now, owner_.options_.message_life),
                                 .is_request = std::holds_alternative<Join>(message.body)};
        sent_at_ = now;
        last_sent_ = ++owner_.sent_;
        pump();
        if (!order_.empty() && !client_->open()) wake_.wake_all();
    }

    bool is_idle(Instant now) const {
        return in_flight_ == 0 && after(sent_at_, owner_.options_.idle_max) <= now;
    }

    // The peer is there: the next attempt comes now, if it would be later.
    void heard() {
        const Instant now = owner_.reactor_.now();
        const bool has_failed = !client_->open() && !client_->last_problem().empty();
        if (!has_failed || now < again_not_before_) return;
        again_not_before_ = after(now, owner_.options_.message_life);
        connect_again();
    }

    // Empty: there is none.
    std::string problem() const {
        if (problem_.empty()) return {};
        const char* const what = is_reached_ ? "takes no messages at " : "cannot be reached at ";
        return what + peer_.address + ": " + problem_;
    }
    // The number of the last message sent. Messages are numbered over all links.
    std::uint64_t last_sent() const { return last_sent_; }

    // The next connection uses the first key, and further attempts use the older keys.
    void begin_with_newest_key() { next_key_ = 0; }

    Task<void> close() {
        closing_ = true;
        stop_.cancel();
        if (attempt_) attempt_->cancel();
        wake_.wake_all();
        co_await work_.close(owner_.reactor_);
    }

private:
    struct Pending {
        std::vector<std::byte> bytes{};
        Instant until{};
        bool is_request = false;  // To join.
    };

    void make_client() {
        const std::vector<fop::Key>& keys = owner_.options_.keys;
        const std::size_t key = next_key_ % keys.size();
        next_key_ = key + 1;
        fabric::ClientOptions options{.server = address_,
                                      .credentials = {.kind = fop::AuthKind::kPeer,
                                                      .key = keys[key],
                                                      .name = owner_.options_.name},
                                      .backoff_min = kBackOffMin,
                                      .backoff_max = owner_.options_.back_off_max};
        client_ = std::make_unique<fabric::Client>(owner_.host_, std::move(options));
        client_->start();
    }

    void connect_again() {
        again_ = true;
        if (attempt_) attempt_->cancel();
        wake_.wake_all();
    }

    // Sends pending messages, while the link is open.
    void pump() {
        const Instant now = owner_.reactor_.now();
        while (!order_.empty() && !closing_) {
            auto& next = pending_[order_.front()];
            const bool is_late = next->until <= now;
            if (!is_late && (!client_->open() || in_flight_ == kInFlightMax)) return;
            order_.pop_front();
            if (!is_late) {
                ++in_flight_;
                owner_.reactor_.spawn(work_, carry(std::move(*next)));
            }
            next.reset();
        }
    }

    Task<void> carry(Pending message) {
        const fabric::CallRequest request{
            .type = &epoch_type(),
            .body =
                fop::EpochMessage{
                    .from = owner_.options_.address,
                    .message = {reinterpret_cast<const std::uint8_t*>(message.bytes.data()),
                                message.bytes.size()}},
            .deadline = after(owner_.reactor_.now(), owner_.options_.message_life)};
        if (unanswered_since_ == kNever) unanswered_since_ = owner_.reactor_.now();
        const auto answer = co_await client_->call(request);
        --in_flight_;
        if (answer) unanswered_since_ = kNever;
        // The network may have come back long before the system tries this connection again.
        const Instant patience = after(unanswered_since_, owner_.options_.answer_max);
        if (client_->open() && owner_.reactor_.now() >= patience) connect_again();
        // An undelivered message is no error here, because members repeat important messages.
        if (answer && answer->status == fop::Status::kDone) {
            if (message.is_request) ++owner_.requests_taken_;
            problem_.clear();
            reported_.clear();
        } else if (answer && answer->status == fop::Status::kBusy) {
            // It is reached, and begins to take part, or ends. That is nothing to look into.
            problem_ = answer->words;
            is_reached_ = true;
        } else if (answer) {
            report(answer->words);
            is_reached_ = true;
        }
        pump();
        if (!order_.empty() && !client_->open()) wake_.wake_all();
    }

    // While there is something to send, makes the connection anew whenever the peer has refused it,
    // or does not answer on it.
    Task<void> run() {
        Duration back_off = kBackOffMin;
        while (!closing_) {
            if (std::exchange(again_, false)) {
                co_await client_->close();
                if (closing_) co_return;
                unanswered_since_ = kNever;
                back_off = kBackOffMin;
                begin_with_newest_key();
                make_client();
            }
            pump();
            if (order_.empty() || client_->open()) {
                // No deadline: until there is a message that cannot be sent, or the link closes.
                [[maybe_unused]] const auto woken = co_await wake_.wait({.cancel = &stop_});
                continue;
            }
            attempt_.emplace();
            const Instant until = after(owner_.reactor_.now(), owner_.options_.message_life);
            const auto connected = co_await client_->connected(
                until, fabric::Client::Tries::kUntilDeadline, &*attempt_);
            if (connected) {
                back_off = kBackOffMin;
                unanswered_since_ = kNever;
            }
            if (connected || closing_ || again_) continue;
            report(client_->last_problem());
            if (connected.error().code != Errc::kDenied) continue;
            // A client that was refused tries no more.
            co_await client_->close();
            if (closing_) co_return;
            [[maybe_unused]] const auto slept =
                co_await owner_.reactor_.sleep_for(back_off, &*attempt_);
            if (closing_) co_return;
            again_ = false;
            back_off = std::min(2 * back_off, owner_.options_.back_off_max);
            make_client();
        }
        // Ends the calls in flight.
        co_await client_->close();
    }

    // Each reason once, until a message was delivered.
    void report(const std::string& reason) {
        if (closing_) return;
        problem_ = reason;
        is_reached_ = false;
        if (reason == reported_) return;
        reported_ = reason;
        emit(owner_.events_, Level::kWarn, "eh.peer_unreachable",
             {{"peer", std::string_view(peer_.name)},
              {"address", std::string_view(peer_.address)},
              {"reason", std::string_view(reason)}});
    }

    Links& owner_;
    const Peer peer_;
    const fabric::Address address_;
    std::size_t next_key_ = 0;  // The key of the next connection, as an index into the options.
    std::unique_ptr<fabric::Client> client_;
    std::array<std::optional<Pending>, kKinds> pending_;
    std::deque<std::size_t> order_;  // The kinds of pending messages, the oldest first.
    std::size_t in_flight_ = 0;
    core::WaitQueue wake_;
    core::CancelSource stop_;
    std::optional<core::CancelSource> attempt_;  // Ends the wait for a connection.
    core::Gate work_;
    Instant sent_at_;
    Instant unanswered_since_ = kNever;  // The first message that was sent since the last answer.
    bool again_ = false;                 // The connection is to be made anew.
    Instant again_not_before_{};
    std::uint64_t last_sent_ = 0;
    std::string problem_;  // Why the last messages have not been delivered; empty: none is known.
    bool is_reached_ = false;  // The peer has answered with the problem.
    std::string reported_;     // What the log has of that.
    bool closing_ = false;
};

Links::Links(core::Reactor& reactor, core::EventSink& events, core::Entropy& entropy,
             LinkOptions options)
    : Timer(&on_time),
      reactor_(reactor),
      events_(events),
      options_(std::move(options)),
      host_(reactor, events, entropy, options_.host) {}

Links::~Links() = default;

void Links::send(const Peer& to, const Message& message) {
    if (closing_) return;
    const auto key = std::pair(to.name, to.address);
    auto found = links_.find(key);
    if (found == links_.end()) {
        const auto address = address_of(to);
        if (!address || links_.size() >= kLinksMax) {
            emit(events_, Level::kWarn, "eh.peer_unreachable",
                 {{"peer", std::string_view(to.name)},
                  {"address", std::string_view(to.address)},
                  {"reason", address ? "too many members" : "this is not an address"}});
            return;
        }
        make_room(to.name);
        found = links_.emplace(key, std::make_unique<Link>(*this, to, *address)).first;
        if (!armed()) reactor_.arm(*this, after(reactor_.now(), kSweep));
    }
    found->second->send(message);
}

// Of too many links to one name, the one that was used longest ago ends.
void Links::make_room(const std::string& name) {
    std::size_t count = 0;
    auto oldest = links_.end();
    for (auto each = links_.lower_bound({name, std::string()});
         each != links_.end() && each->first.first == name; ++each) {
        ++count;
        const bool is_older =
            oldest == links_.end() || each->second->last_sent() < oldest->second->last_sent();
        if (is_older) oldest = each;
    }
    if (count >= kAddressesMax) end(std::move(links_.extract(oldest).mapped()));
}

void Links::use_keys(std::vector<fop::Key> keys) {
    ENSURE(!keys.empty());
    options_.keys = std::move(keys);
    for (const auto& [to, link] : links_) link->begin_with_newest_key();
}

// The problem of the link that was used last. One to an earlier address of the peer may not be
// closed yet.
std::string Links::problem_with(const std::string& name) const {
    const Link* last = nullptr;
    for (auto each = links_.lower_bound({name, std::string()});
         each != links_.end() && each->first.first == name; ++each) {
        const Link* const link = each->second.get();
        if (last == nullptr || link->last_sent() > last->last_sent()) last = link;
    }
    return last == nullptr ? std::string() : last->problem();
}

void Links::heard(const std::string& name) {
    // The links of a name, to all of its addresses.
    for (auto each = links_.lower_bound({name, std::string()});
         each != links_.end() && each->first.first == name; ++each) {
        each->second->heard();
    }
}

void Links::on_time(core::Timer& timer) {
    static_cast<Links&>(timer).close_idle();
}

void Links::close_idle() {
    if (closing_) return;
    const Instant now = reactor_.now();
    for (auto each = links_.begin(); each != links_.end();) {
        const auto next = std::next(each);
        if (each->second->is_idle(now)) end(std::move(links_.extract(each).mapped()));
        each = next;
    }
    if (!links_.empty()) reactor_.arm(*this, after(now, kSweep));
}

// The link outlives its coroutines, also when all are dropped at the end of a simulated process.
void Links::end(std::unique_ptr<Link> link) {
    ending_.push_back(std::move(link));
    reactor_.spawn(work_, close_ending(ending_.back().get()));
}

Task<void> Links::close_ending(Link* link) {
    co_await link->close();
    std::erase_if(ending_, [link](const auto& each) { return each.get() == link; });
}

Task<void> Links::close() {
    closing_ = true;
    disarm();
    for (auto& [key, link] : links_) end(std::move(link));
    links_.clear();
    co_await work_.close(reactor_);
    co_await host_.close();
}

}  // namespace fopd::eh::peers

#include "daemon/node_epochs.h"

#include <algorithm>

#include "core/ensure.h"
#include "lrs/epoch_frame.h"

namespace fopd::daemon {

namespace {

// Messages between members are short and few.
constexpr std::uint32_t kLinkBuffers = 64;
// How long close() waits for a file. Shorter than the node's patience with a locality that closes.
constexpr Duration kFilePatience = 2s;

eh::EpochRules rules_of(const eh::EpochSettings& settings) {
    eh::EpochRules rules = lrs::epoch_rules(settings.timeout);
    if (settings.kind == eh::EpochSettings::Kind::kPeers) {
        // A member that does not confirm the start of an epoch is evicted after twice the grace. If
        // the root is silent for `root_silent`, another root may begin the next epoch.
        rules.left_out_after = std::min(2 * settings.grace_in_force(), settings.root_silent);
    }
    return rules;
}

eh::peers::Peer self_of(const eh::EpochSettings& settings, const eh::OwnNode& self) {
    const auto address = eh::own_address(settings, self);
    ENSURE(address.has_value());
    return {.name = self.name, .address = format_address(*address)};
}

std::optional<eh::LocalEpochHandler::Numbers> numbers_of(const NodeEpochs::Parts& parts) {
    if (parts.stores == nullptr) return std::nullopt;
    return eh::LocalEpochHandler::Numbers{
        .reactor = parts.reactor, .events = parts.events, .file = parts.stores->numbers()};
}

}  // namespace

NodeEpochs::Peers::Peers(const Parts& parts, MessageSender& sender)
    : handler({.reactor = parts.reactor,
               .events = parts.events,
               .links = sender,
               .incarnation = parts.stores->incarnation(),
               .views = parts.stores->views(),
               .observer = parts.observer},
              eh::member_options(parts.settings, rules_of(parts.settings), lrs::epoch_parts_hash()),
              self_of(parts.settings, parts.self)) {}

NodeEpochs::NodeEpochs(const Parts& parts)
    : parts_(parts),
      local_(rules_of(parts.settings), numbers_of(parts)),
      peers_(parts.settings.kind == eh::EpochSettings::Kind::kPeers
                 ? std::make_unique<Peers>(parts, static_cast<MessageSender&>(*this))
                 : nullptr),
      fold_(parts.reactor, handler()) {}

eh::EpochHandler& NodeEpochs::handler() {
    if (peers_ != nullptr) return peers_->handler;
    return local_;
}

Result<void> NodeEpochs::open(fabric::Transport& transport, const fabric::HostOptions& host,
                              const Access& access) {
    if (peers_ == nullptr) return {};
    const eh::peers::Peer self = self_of(parts_.settings, parts_.self);
    eh::peers::LinkOptions options{
        .host = host, .name = self.name, .address = self.address, .keys = access.peer_keys};
    options.host.machine.receive_buffer_count = kLinkBuffers;
    options.host.send_buffer_count = kLinkBuffers;
    options.host.inline_max = 0;
    options.follow(peers_->handler.options());
    peers_->links.emplace(parts_.reactor, parts_.events, parts_.entropy, std::move(options));
    return peers_->links->open(transport);
}

void NodeEpochs::begin() {
    if (peers_ != nullptr) peers_->handler.begin();
}

void NodeEpochs::use_keys(const Access& access) {
    const bool has_links = peers_ != nullptr && peers_->links.has_value();
    if (has_links && !access.peer_keys.empty()) peers_->links->use_keys(access.peer_keys);
}

void NodeEpochs::send(const eh::peers::Peer& to, const eh::peers::Message& message) {
    if (!peers_->links) return;
    // The address in the view may be older than the configuration, which is used instead. A second
    // daemon with this node's name is reached only at its own address.
    const bool is_double = to.name == parts_.self.name;
    const auto* const known = is_double ? nullptr : parts_.settings.find(to.name);
    const std::string address = known == nullptr ? to.address : format_address(known->address);
    peers_->links->send({.name = to.name, .address = address}, message);
}

std::uint64_t NodeEpochs::requests_taken() const {
    return peers_->links ? peers_->links->requests_taken() : 0;
}

std::string NodeEpochs::problem_with(const std::string& name) const {
    return peers_->links ? peers_->links->problem_with(name) : std::string();
}

Task<void> NodeEpochs::leave(Instant deadline) {
    if (peers_ == nullptr) co_return;
    const Instant patience = after(parts_.reactor.now(), 2 * parts_.settings.root_silent);
    // Whoever is not heard of is evicted by the others.
    [[maybe_unused]] const bool left = co_await peers_->handler.left(std::min(deadline, patience));
}

Task<void> NodeEpochs::close() {
    local_.stop();
    if (peers_ != nullptr) peers_->handler.stop();
    if (parts_.stores != nullptr) {
        const bool closed =
            co_await parts_.stores->close(after(parts_.reactor.now(), kFilePatience));
        hangs_.store(!closed);
        if (!closed) emit(parts_.events, core::Level::kError, "eh.file_hangs");
    }
    if (peers_ != nullptr && peers_->links) co_await peers_->links->close();
}

void NodeEpochs::on_message(fabric::IncomingFop& fop) {
    const fop::Request& request = fop.request();
    fop::Reply reply{.id = request.id, .status = request.fault, .words = request.fault_words};
    if (reply.status == fop::Status::kDone && fop.caller().kind != fop::AuthKind::kPeer) {
        reply.status = fop::Status::kDenied;
        reply.words = "only daemons with the peer key take part in epochs";
    }
    if (reply.status == fop::Status::kDone && peers_ == nullptr) {
        reply.status = fop::Status::kUnknownFop;
        reply.words = "this daemon has epochs of its own: eh.kind is local";
    }
    if (reply.status != fop::Status::kDone) return fop.reply(reply);
    const auto& body = std::get<fop::EpochMessage>(request.body);
    const auto from = sender(fop.caller().principal, body.from);
    if (!from) {
        reply.status = fop::Status::kDenied;
        reply.words = parts_.settings.is_open() ? "nobody can connect to the sender's address"
                                                : "the sender is not in eh.members";
        return fop.reply(reply);
    }
    if (peers_->links) peers_->links->heard(from->name);
    const bool is_taken = peers_->handler.on_message(
        *from, std::as_bytes(static_cast<const std::span<const std::uint8_t>&>(body.message)));
    if (is_taken) {
        reply.body = fop::EpochMessageReply{};
    } else {
        reply.status = fop::Status::kBusy;
        reply.words = "it is starting or stopping, and takes part in no epochs now";
    }
    fop.reply(reply);
}

std::optional<eh::peers::Peer> NodeEpochs::sender(std::string_view name,
                                                  std::string_view address) const {
    const auto* const known = parts_.settings.find(name);
    if (known != nullptr)
        return eh::peers::Peer{.name = known->name, .address = format_address(known->address)};
    if (!parts_.settings.is_open()) return std::nullopt;
    const auto at = fabric::parse_address(address);
    const auto own = eh::own_address(parts_.settings, parts_.self);
    if (!at || !eh::is_reachable(*at) || at->scheme != own->scheme) return std::nullopt;
    return eh::peers::Peer{.name = std::string(name), .address = format_address(*at)};
}

eh::peers::EpochStatus NodeEpochs::status() const {
    if (peers_ != nullptr) return peers_->handler.status();
    eh::peers::EpochStatus status{.state = eh::peers::EpochState::kWaiting,
                                  .epoch = local_.epoch(),
                                  .root = parts_.self.name};
    status.members.push_back({.name = parts_.self.name});
    return status;
}

std::expected<Duration, std::string> NodeEpochs::waive_majority() {
    if (peers_ != nullptr) return peers_->handler.waive_majority();
    return std::unexpected("this daemon has epochs of its own: eh.kind is local");
}

NodeEpochs::MemberCount NodeEpochs::member_count() const {
    if (peers_ == nullptr) return {};
    const eh::EpochSettings& settings = parts_.settings;
    return {.present = peers_->handler.figures().members.get(),
            .expected = settings.is_open() ? settings.expect : settings.members.size()};
}

void NodeEpochs::collect(core::MetricSink& sink) const {
    const eh::peers::EpochFigures& figures = peers_ == nullptr ? none_ : peers_->handler.figures();
    const auto value = [](const core::Counter& counter) {
        return static_cast<double>(counter.get());
    };
    sink.gauge("fopd_epoch_view", "The number of the view of members of epochs.", {},
               value(figures.view));
    sink.gauge("fopd_epoch_members",
               "Members of epochs, by this daemon's view; 0 while it is not a member itself.", {},
               value(figures.members));
    sink.gauge("fopd_epoch_members_expected",
               "Daemons in eh.members, or without these eh.expect; 0 for a daemon without peers.",
               {}, static_cast<double>(member_count().expected));
    sink.counter("fopd_epoch_failures", "Times at which this daemon got no next epoch.", {},
                 value(figures.failed));
    sink.counter("fopd_evictions", "Members that this daemon, as root, has evicted from epochs.",
                 {}, value(figures.evictions));
    sink.counter("fopd_epoch_messages_dropped", "Messages of other daemons that made no sense.", {},
                 value(figures.dropped));
    sink.counter("fopd_epoch_store_failures",
                 "Calls of the store of the list of members that failed or were refused.", {},
                 value(figures.store_failed));
    sink.time_histogram("fopd_epoch_seconds",
                        "From the time this daemon is ready for an epoch until it begins.", {},
                        figures.seconds, core::Buckets::kTwelve);
}

}  // namespace fopd::daemon

#include "fabric/ofi/ofi_machine.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>

#include <poll.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>

#include "core/zeroed_array.h"
#include "fabric/ofi/ofi_acceptor.h"
#include "fabric/ofi/ofi_read_mark.h"

namespace fopd::fabric {

namespace {

constexpr std::size_t kCompletionsPerRead = 32;
// After this many completions in a poll, coroutines run first.
constexpr std::uint32_t kCompletionsPerPoll = 1024;
// Closing takes system calls.
constexpr std::size_t kEndsPerPoll = 32;
constexpr std::size_t kClosesPerPoll = 16;
// To close an endpoint the library searches the lists of all endpoints. A poll passes at most so
// many list elements, but closes at least one endpoint.
constexpr std::size_t kSearchedPerPoll = 32'768;
// In addition to the receives. The tcp provider's queue grows if necessary; an adapter's does not,
// and its connections are lost when it overflows.
constexpr std::uint32_t kSendsExpected = 4096;
// The event queue is read at least once in so many polls; a read is a system call.
constexpr std::uint32_t kPollsPerEventRead = 64;
// The library may lose wake-ups of its descriptors; these caps limit the delay.
constexpr Duration kBusyCap = 10ms;
constexpr Duration kIdleCap = 100ms;
// To look means to look at every connection, so with many connections it is done less often.
constexpr Duration kIdleCapOfEach = 1ms;
constexpr Duration kIdleCapMax = 1s;
// A random 64-bit key that is in use already is almost impossible.
constexpr int kKeyTries = 4;

}  // namespace

void Unmap::operator()(std::byte* memory) const {
    core::unmap_zeros(memory, size_bytes);
}

OfiMachine::OfiMachine(const Provider& provider, core::Reactor& reactor, MessageUser& messages)
    : provider_(provider),
      reactor_(reactor),
      messages_(messages),
      tails_(provider.options.random_key()) {}

OfiMachine::~OfiMachine() {
    ENSURE(connections_.empty());
    ENSURE(opened_.empty());
}

// -- set-up --

Result<void> OfiMachine::open(const MachineOptions& options) {
    fid_domain* domain = nullptr;
    if (const int failed =
            fi_domain(provider_.fabric.get(), provider_.info.get(), &domain, nullptr);
        failed != 0) {
        return std::unexpected(provider_error(failed, "fi_domain"));
    }
    domain_.reset(domain);

    fi_cq_attr completions_wanted{};
    completions_wanted.size = options.receive_buffer_count + kSendsExpected;
    completions_wanted.format = FI_CQ_FORMAT_DATA;
    completions_wanted.wait_obj = FI_WAIT_FD;
    fid_cq* completions = nullptr;
    if (const int failed = fi_cq_open(domain, &completions_wanted, &completions, nullptr);
        failed != 0) {
        return std::unexpected(provider_error(failed, "fi_cq_open"));
    }
    completions_.reset(completions);
    posted_max_ = provider_.is_tcp() ? std::numeric_limits<std::uint32_t>::max() : kSendsExpected;

    fi_eq_attr events_wanted{};
    events_wanted.wait_obj = FI_WAIT_FD;
    fid_eq* events = nullptr;
    if (const int failed = fi_eq_open(provider_.fabric.get(), &events_wanted, &events, nullptr);
        failed != 0) {
        return std::unexpected(provider_error(failed, "fi_eq_open"));
    }
    events_.reset(events);

    int completion_fd = -1;
    int event_fd = -1;
    if (const int failed = fi_control(&completions->fid, FI_GETWAIT, &completion_fd); failed != 0) {
        return std::unexpected(provider_error(failed, "completion queue descriptor"));
    }
    if (const int failed = fi_control(&events->fid, FI_GETWAIT, &event_fd); failed != 0) {
        return std::unexpected(provider_error(failed, "event queue descriptor"));
    }
    if (const auto ready = check_cache(); !ready) return ready;
    if (const auto ready = open_receives(options); !ready) return ready;
    completion_watch_.emplace(reactor_, completion_fd, POLLIN);
    event_watch_.emplace(reactor_, event_fd, POLLIN);
    reactor_.add_poller(*this);
    return {};
}

Result<void> OfiMachine::open_receives(const MachineOptions& options) {
    fid_ep* shared = nullptr;
    fi_rx_attr attributes = *provider_.info->rx_attr;
    // An adapter's context takes as many receives as it was made for.
    if (!provider_.is_tcp()) attributes.size = options.receive_buffer_count;
    if (const int failed = fi_srx_context(domain_.get(), &attributes, &shared, nullptr);
        failed != 0) {
        return std::unexpected(provider_error(failed, "fi_srx_context"));
    }
    shared_receive_.reset(shared);
    // The verbs provider does not implement this: a received message completes in the queue of the
    // endpoint that has received it.
    if (const int failed = fi_ep_bind(shared, &completions_->fid, FI_RECV);
        failed != 0 && failed != -FI_ENOSYS) {
        return std::unexpected(provider_error(failed, "bind shared receive context"));
    }
    // Neither provider implements this.
    if (const int failed = fi_enable(shared); failed != 0 && failed != -FI_ENOSYS) {
        return std::unexpected(provider_error(failed, "enable shared receive context"));
    }

    // Untouched pages cost nothing: a buffer takes memory when its first message arrives.
    receive_bytes_ = options.receive_buffer_bytes;
    const std::size_t size_bytes = receive_bytes_ * options.receive_buffer_count;
    void* const mapped = core::map_zeros(size_bytes);
    if (mapped == nullptr) return std::unexpected(os_error(errno, "map receive buffers"));
    receive_memory_ = {static_cast<std::byte*>(mapped), Unmap{.size_bytes = size_bytes}};

    const auto registered = register_memory({receive_memory_.get(), size_bytes});
    if (!registered) return std::unexpected(registered.error());
    receive_descriptor_ = *registered;
    receives_.resize(options.receive_buffer_count);
    for (std::size_t i = 0; i < receives_.size(); ++i) {
        receives_[i].bytes = receive_memory_.get() + i * receive_bytes_;
        unposted_.push_back(&receives_[i]);
    }
    // Some providers use the receive posted last first; the buffers at low addresses should be
    // those.
    std::ranges::reverse(unposted_);
    post_receives();
    return {};
}

// -- memory --

Result<OwnedFid<fid_mr>> OfiMachine::open_region(std::span<std::byte> memory, std::uint64_t access,
                                                 std::uint64_t key) {
    fid_mr* region = nullptr;
    if (const int failed = fi_mr_reg(domain_.get(), memory.data(), memory.size(), access, 0, key, 0,
                                     &region, nullptr);
        failed != 0) {
        return std::unexpected(provider_error(failed, "register memory"));
    }
    return OwnedFid<fid_mr>(region);
}

// The cache opens more memory to peers than is opened here. With it, memory that is registered a
// second time is the same region; keys say nothing, as some adapters give none to local memory.
Result<void> OfiMachine::check_cache() {
    if (!provider_.registers_local_memory()) return {};
    std::array<std::byte, 64> memory{};
    const auto first = open_region(memory, FI_SEND, 0);
    if (!first) return std::unexpected(first.error());
    const auto second = open_region(memory, FI_SEND, 0);
    if (!second) return std::unexpected(second.error());
    if (first->get() != second->get()) return {};
    return std::unexpected(Error{
        .code = Errc::kUnsupported,
        .context = "libfabric caches registrations of memory, which opens more of it to peers "
                   "than is needed: it was used before FI_MR_CACHE_MAX_COUNT=0 was set"});
}

Result<void*> OfiMachine::register_memory(std::span<std::byte> memory) {
    if (!provider_.registers_local_memory()) return nullptr;
    auto region = open_region(memory, FI_SEND | FI_RECV | FI_READ | FI_WRITE, 0);
    if (!region) return std::unexpected(region.error());
    registrations_.push_back(std::move(*region));
    return fi_mr_desc(registrations_.back().get());
}

Result<RemoteMemory> OfiMachine::open_memory(std::span<std::byte> memory, Access access) {
    const std::uint64_t right = access == Access::kRead ? FI_REMOTE_READ : FI_REMOTE_WRITE;
    const auto mode = static_cast<std::uint64_t>(provider_.info->domain_attr->mr_mode);
    auto region = open_region(memory, right, provider_.options.random_key());
    for (int i = 1; i < kKeyTries && !region && region.error().os_errno == FI_ENOKEY; ++i) {
        region = open_region(memory, right, provider_.options.random_key());
    }
    if (!region) return std::unexpected(region.error());
    const RemoteMemory remote{.address = (mode & FI_MR_VIRT_ADDR) != 0
                                             ? reinterpret_cast<std::uintptr_t>(memory.data())
                                             : 0,
                              .key = fi_mr_key(region->get())};
    opened_.emplace(remote.key, std::move(*region));
    return remote;
}

void OfiMachine::close_memory(const RemoteMemory& memory) {
    ENSURE(opened_.erase(memory.key) == 1);
}

// -- connections --

Result<void> OfiMachine::open_endpoint(OfiConnection& connection, fi_info& info) {
    fid_ep* opened = nullptr;
    if (const int failed = fi_endpoint(domain_.get(), &info, &opened, nullptr); failed != 0) {
        return std::unexpected(provider_error(failed, "fi_endpoint"));
    }
    OwnedFid<fid_ep> endpoint(opened);
    struct Binding {
        fid* object;
        std::uint64_t flags;
    };
    for (const auto [object, flags] :
         {Binding{&events_->fid, 0}, Binding{&completions_->fid, FI_TRANSMIT | FI_RECV},
          Binding{&shared_receive_->fid, 0}}) {
        if (const int failed = fi_ep_bind(opened, object, flags); failed != 0) {
            return std::unexpected(provider_error(failed, "bind endpoint"));
        }
    }
    if (const int failed = fi_enable(opened); failed != 0) {
        return std::unexpected(provider_error(failed, "enable endpoint"));
    }
    connection.endpoint_ = std::move(endpoint);
    connection.posted_max_ = static_cast<std::uint32_t>(info.tx_attr->size);
    ids_.emplace(&opened->fid, connection.id_);
    return {};
}

std::unique_ptr<Connection> OfiMachine::connect(const Address& peer,
                                                std::span<const std::byte> hello,
                                                ConnectionUser& user) {
    ENSURE(hello.size() <= kHelloBytesMax);
    auto connection = std::make_unique<OfiConnection>(*this, user, format_address(peer));
    const auto target = socket_address(peer, provider_.options.scheme);
    if (!target) {
        connection->end(target.error());
        return connection;
    }
    const OwnedInfo info = provider_.info_to(*target);
    if (!info) {
        connection->end(Error{.code = Errc::kNoSpace, .context = "connect"});
        return connection;
    }
    if (const auto opened = open_endpoint(*connection, *info); !opened) {
        connection->end(opened.error());
        return connection;
    }
    if (const int failed =
            fi_connect(connection->endpoint_.get(), target->get(), hello.data(), hello.size());
        failed != 0) {
        connection->end(provider_error(failed, "connect"));
    }
    return connection;
}

std::unique_ptr<Connection> OfiMachine::accept(std::unique_ptr<ConnectionRequest> request,
                                               std::span<const std::byte> answer,
                                               ConnectionUser& user) {
    ENSURE(answer.size() <= kHelloBytesMax);
    auto connection = std::make_unique<OfiConnection>(*this, user, request->peer());
    OfiArrival& arrival = static_cast<OfiRequest&>(*request).arrival();
    const auto fail = [&](Error reason) {
        // To an adapter's connection manager, the request of a peer that has given up is not valid.
        if (!provider_.is_tcp() && reason.code == Errc::kInvalid) reason.code = Errc::kClosed;
        connection->end(reason);
        return std::move(connection);
    };
    if (const auto opened = open_endpoint(*connection, *arrival.info); !opened) {
        return fail(opened.error());
    }
    if (const int failed = fi_accept(connection->endpoint_.get(), answer.data(), answer.size());
        failed != 0) {
        // The endpoint refers to the request, so it is closed before the request returns.
        close_endpoint(std::move(connection->endpoint_));
        return fail(provider_error(failed, "accept"));
    }
    arrival.taken = true;
    connection->visit_ = arrival.visit;
    // Both sides of an adapter's connection can send as soon as the peer has the answer, and what
    // the peer sends may come before the event that tells this side of it.
    if (!provider_.is_tcp()) {
        connects_.push_back(
            Event{.connection = connection->id_, .reason = {.code = Errc::kClosed}, .data = {}});
    }
    return connection;
}

void OfiMachine::close_endpoint(OwnedFid<fid_ep> endpoint) {
    ids_.erase(&endpoint->fid);
    endpoint.reset();
    // Reads the remaining events of this endpoint, which are ignored, before another endpoint can
    // get its address.
    fetch_events();
}

void OfiMachine::close_endpoints(std::size_t count_max) {
    for (std::size_t i = 0; i < count_max && !closing_.empty(); ++i) {
        auto oldest = closing_.extract(closing_.begin());
        close_endpoint(std::move(oldest.mapped()));
    }
}

Task<void> OfiMachine::stop() {
    ENSURE(connections_.empty());
    ENSURE(opened_.empty());
    reactor_.remove_poller(*this);
    co_await completion_watch_->stop();
    co_await event_watch_->stop();
    close_endpoints(closing_.size());
    shared_receive_.reset();
    registrations_.clear();
    events_.reset();
    completions_.reset();
    domain_.reset();
}

// -- turns --

bool OfiMachine::poll() {
    const bool events_came = event_watch_->take_fired();
    const bool woken = completion_watch_->take_fired() || events_came;
    const bool slept = std::exchange(slept_, false);

    if (++polls_ % kPollsPerEventRead == 0 || connecting_ > 0 || events_came) fetch_events();
    std::uint32_t found = tell_connected();
    // With many connections, a look that will probably find nothing is left to the sleep.
    const bool spared = std::exchange(was_dry_, false) && has_many_connections() &&
                        in_flight_ == 0 && !something_ends();
    if (!spared) found += read_completions();
    was_dry_ = !spared && dry_;
    if (dry_) found += settle();
    parked_.for_each([](OfiConnection& connection) { connection.post_parked(); });
    post_receives();
    if (!closing_.empty()) {
        const std::size_t all = std::max(ids_.size(), closing_.size());
        close_endpoints(std::clamp<std::size_t>(kSearchedPerPoll / all, 1, kClosesPerPoll));
    }

    if (slept && !woken && found > 0 && reactor_.now() >= sleep_end_) {
        completion_watch_->missed_wake();
    }
    // Woken without a completion: the provider serves a transfer of the peer.
    if (found > 0 || woken) busy_since_sleep_ = true;
    return found > 0;
}

Duration OfiMachine::sleep_max() {
    if (something_ends() || !closing_.empty() || !dry_) return Duration{0};
    // Most sends complete at once: their completions are there, so another turn follows.
    if (in_flight_ > 0 && fi_cq_read(completions_.get(), nullptr, 0) != -FI_EAGAIN) {
        return Duration{0};
    }
    fid* waited[] = {&completions_->fid, &events_->fid};
    // fi_trywait() also makes progress, which may bring events.
    if (fi_trywait(provider_.fabric.get(), waited, waits_for_events() ? 2 : 1) != 0) {
        return Duration{0};
    }
    fetch_events();
    if (something_ends()) return Duration{0};
    completion_watch_->arm();
    if (waits_for_events()) event_watch_->arm();
    const bool busy = in_flight_ > 0 || connecting_ > 0 || !unposted_.empty();
    const auto connections = static_cast<std::int64_t>(connections_.size());
    const Duration cap =
        busy ? kBusyCap : std::clamp(connections * kIdleCapOfEach, kIdleCap, kIdleCapMax);
    slept_ = true;
    busy_since_sleep_ = false;
    sleep_end_ = after(reactor_.now(), cap);
    return cap;
}

// -- completions --

void OfiMachine::post_receives() {
    while (!unposted_.empty()) {
        Receive& receive = *unposted_.back();
        if (fi_recv(shared_receive_.get(), receive.bytes, receive_bytes_, receive_descriptor_,
                    FI_ADDR_UNSPEC, &receive.context) != 0) {
            return;  // The next poll tries again.
        }
        unposted_.pop_back();
    }
}

OfiMachine::Receive* OfiMachine::receive_at(void* context) {
    auto* const receive = static_cast<Receive*>(context);
    return receive >= receives_.data() && receive < receives_.data() + receives_.size() ? receive
                                                                                        : nullptr;
}

std::uint32_t OfiMachine::read_completions() {
    std::uint32_t found = 0;
    dry_ = false;
    while (found < kCompletionsPerPoll) {
        std::array<fi_cq_data_entry, kCompletionsPerRead> entries;
        const ssize_t count = fi_cq_read(completions_.get(), entries.data(), entries.size());
        if (count == -FI_EAVAIL) {
            found += read_completion_error();
            continue;
        }
        if (count <= 0) {
            dry_ = true;
            break;
        }
        // A message must not be delivered before its connection has been reported.
        if (connecting_ > 0) {
            fetch_events();
            tell_connected();
        }
        for (const fi_cq_data_entry& entry :
             std::span(entries).first(static_cast<std::size_t>(count))) {
            if (Receive* const receive = receive_at(entry.op_context); receive != nullptr) {
                // With an adapter a write with a notification uses up a receive, too.
                const auto kind = entry.flags & (FI_RECV | FI_REMOTE_CQ_DATA);
                if (kind == FI_RECV) take_message(*receive, entry.len);
                unposted_.push_back(receive);
                post_receives();
            } else if (entry.op_context != nullptr) {
                complete(*static_cast<TransferOp*>(entry.op_context), entry.len);
            }
        }
        found += static_cast<std::uint32_t>(count);
        // Reading an empty queue makes the provider look at every connection. This is done once in
        // a turn and once before a sleep; more often only when something ends, to be sure that
        // everything has arrived.
        if (static_cast<std::size_t>(count) < entries.size() && !something_ends()) {
            dry_ = true;
            break;
        }
    }
    return found;
}

void OfiMachine::take_message(const Receive& receive, std::size_t told_bytes) {
    if (told_bytes > receive_bytes_) return warn_too_long();
    messages_.on_message({receive.bytes, told_bytes}, nullptr);
}

void OfiMachine::warn_too_long() {
    core::emit(provider_.events, core::Level::kWarn, "fabric.message_too_long",
               {{"max_bytes", static_cast<std::uint64_t>(receive_bytes_)}});
}

void OfiMachine::complete(TransferOp& op, std::size_t told_bytes) {
    auto& connection = *static_cast<OfiConnection*>(op.connection);
    // An adapter reads all or fails; its provider tells no length.
    if (!provider_.is_tcp() || came_whole(op, told_bytes)) {
        return connection.complete_posted(op, {});
    }
    core::emit(provider_.events, core::Level::kWarn, "fabric.short_transfer",
               {{"peer", std::string_view(connection.peer_)},
                {"asked_bytes", static_cast<std::uint64_t>(op.local.bytes.size())}});
    failed_.push_back(&op);
}

std::uint32_t OfiMachine::read_completion_error() {
    fi_cq_err_entry entry{};
    if (fi_cq_readerr(completions_.get(), &entry, 0) <= 0) return 0;
    if (Receive* const receive = receive_at(entry.op_context); receive != nullptr) {
        unposted_.push_back(receive);
        if (entry.err == FI_ETRUNC) warn_too_long();
    } else if (entry.op_context != nullptr) {
        // Completed after the queue was found empty, because some versions report a failure twice
        // in a row.
        auto* const op = static_cast<TransferOp*>(entry.op_context);
        if (std::ranges::find(failed_, op) == failed_.end()) failed_.push_back(op);
    }
    return 1;
}

// -- events --

OfiConnection* OfiMachine::find(std::uint64_t id) {
    const auto found = connections_.find(id);
    return found == connections_.end() ? nullptr : found->second;
}

void OfiMachine::fetch_events() {
    while (true) {
        ConnectionEvent event;
        const ssize_t size = event.read(*events_);
        if (size == -FI_EAVAIL) {
            add_error_event();
            continue;
        }
        if (size < 0) return;
        const auto id = ids_.find(event.entry().fid);
        if (id == ids_.end() || (event.kind != FI_CONNECTED && event.kind != FI_SHUTDOWN)) continue;
        const auto data = event.data();
        (event.kind == FI_CONNECTED ? connects_ : ends_)
            .push_back(Event{
                .connection = id->second,
                .reason = Error{.code = Errc::kClosed, .context = "ended by the peer"},
                .data = std::string(reinterpret_cast<const char*>(data.data()), data.size())});
    }
}

void OfiMachine::add_error_event() {
    std::array<char, 256> data{};
    fi_eq_err_entry entry{};
    entry.err_data = data.data();
    entry.err_data_size = data.size();
    if (fi_eq_readerr(events_.get(), &entry, 0) < 0) return;
    const auto id = ids_.find(entry.fid);
    if (id == ids_.end()) return;
    Event event{.connection = id->second, .data = {}};
    event.reason = provider_error(entry.err, "connect");
    // The error code of a broken connection is arbitrary; the one of a refused connection is not.
    event.reason.code = Errc::kClosed;
    if (entry.err == ECONNREFUSED) {
        const bool refused = entry.err_data_size > 0 && data[0] != '\0';
        event.reason.code = refused ? Errc::kDenied : Errc::kNotFound;
        if (refused) event.data.assign(data.data() + 1, entry.err_data_size - 1);
    }
    ends_.push_back(std::move(event));
}

std::uint32_t OfiMachine::tell_connected() {
    std::uint32_t told = 0;
    // User callbacks may do anything, also change the queue.
    while (!connects_.empty()) {
        const Event event = std::move(connects_.front());
        connects_.pop_front();
        OfiConnection* const connection = find(event.connection);
        if (connection == nullptr || connection->state_ != OfiConnection::State::kConnecting) {
            continue;
        }
        connection->state_ = OfiConnection::State::kConnected;
        --connecting_;
        ++told;
        connection->user_->on_connected(std::as_bytes(std::span(event.data)));
    }
    return told;
}

// Handles the ends of connections, after everything that arrived before them. When thousands end at
// once, the rest is left to the next polls.
std::uint32_t OfiMachine::settle() {
    std::uint32_t found = 0;
    for (std::size_t i = 0; i < kEndsPerPoll && !ends_.empty(); ++i) {
        const Event event = std::move(ends_.front());
        ends_.pop_front();
        ++found;
        OfiConnection* const connection = find(event.connection);
        if (connection == nullptr) continue;
        Error reason = event.reason;
        // An adapter's connection manager also refuses a connection that was made already.
        if (connection->state_ == OfiConnection::State::kConnected) reason.code = Errc::kClosed;
        connection->end(reason, event.data);
    }
    for (TransferOp* const op : std::exchange(failed_, {})) {
        ++found;
        auto& connection = *static_cast<OfiConnection*>(op->connection);
        connection.end(Error{.code = Errc::kClosed, .context = "transfer failed"});
        connection.complete_posted(
            *op, std::unexpected(Error{.code = Errc::kClosed, .context = "connection ended"}));
    }
    for (std::size_t i = std::min(ended_.size(), kEndsPerPoll); i > 0; --i) {
        const std::uint64_t id = ended_.front();
        ended_.pop_front();
        ++found;
        while (OfiConnection* const connection = find(id)) {
            TransferOp* const op = connection->parked_head_;
            if (op == nullptr) break;
            connection->parked_head_ = op->next;
            connection->complete(
                *op, std::unexpected(Error{.code = Errc::kClosed, .context = "connection ended"}));
        }
        OfiConnection* connection = find(id);
        if (connection != nullptr && connection->user_ != nullptr) {
            ConnectionUser& user = *std::exchange(connection->user_, nullptr);
            const Error reason = connection->reason_;
            const std::string words = std::move(connection->words_);
            user.on_closed(reason, words);
            connection = find(id);
        }
        if (connection != nullptr && connection->posted_ == 0 && connection->endpoint_) {
            if (connection->visit_) connection->visit_->store(false, std::memory_order_release);
            closing_.emplace(id, std::move(connection->endpoint_));
        }
    }
    return found;
}

}  // namespace fopd::fabric

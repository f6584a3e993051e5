// Whatever a client with a key says in its session, behind a valid seal: the calls of another
// client succeed in time, the daemon's memory does not grow without bound, and nothing is left of
// the session when it has ended.
//
//     build/fuzz/bin/fuzz_session -max_len=4096 tests/fuzz/corpus/session
//
// A locality with a listener and both clients, in virtual time. The input is a list of steps: a
// byte that says what to do and how, the length of the step's bytes in two, and these. The corpus
// holds the messages of tests/fuzz/corpus/message as steps.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/ensure.h"
#include "core/entropy.h"
#include "core/gate.h"
#include "core/virtual_world.h"
#include "daemon/access.h"
#include "daemon/listener.h"
#include "daemon/locality.h"
#include "daemon/node_epochs.h"
#include "fabric/mem/mem_transport.h"
#include "fabric/rpc/client.h"
#include "fop/bytes.h"
#include "fop/descriptor.h"
#include "fop/handshake.h"
#include "fop/mac.h"
#include "fop/message_reader.h"
#include "fop/message_writer.h"
#include "tests/fuzz/repaired_prefix.h"

using namespace fopd;

// Of the sanitizers; without one, of kept_inputs_test.cc.
// NOLINTNEXTLINE(bugprone-reserved-identifier)
extern "C" std::size_t __sanitizer_get_current_allocated_bytes();

namespace {

// The first byte of a step: what it does,
enum class Deed : std::uint8_t {
    kMessage,   // Sends the bytes as a message, sealed.
    kUnsealed,  // Sends the bytes as they are.
    kBulkEcho,  // Lends memory; the bytes say how much, and what is wrong with it.
    kPass,      // Lets so many milliseconds pass.
};
constexpr unsigned kDeedMask = 3;
// and what of a message is kept instead of what the session would have said there.
constexpr unsigned kKeepCredits = 0x10;
constexpr unsigned kKeepAcknowledged = 0x20;
constexpr unsigned kKeepSequence = 0x40;
// It sends more than it has credits for.
constexpr unsigned kWithoutCredits = 0x80;

// Of all steps together: the other client calls all the time.
constexpr Duration kPassMax = 10s;
constexpr Duration kCallPace = 20ms;
// A call of the other client may take so long.
constexpr Duration kCallMax = 2s;
constexpr Duration kPatience = 1000s;
// What the daemon may allocate while the session lasts. Its limits below allow less.
constexpr std::size_t kGrowthMaxBytes = 64U << 20;
constexpr std::size_t kMessageBytesMax = 36U << 10;
constexpr std::size_t kLentBytes = 64U << 10;

fop::Key key_of(std::uint8_t seed) {
    fop::Key key;
    for (std::byte& each : key.writable()) each = static_cast<std::byte>(seed);
    return key;
}

std::span<const std::byte> bytes_of(std::string_view text) {
    return std::as_bytes(std::span(text));
}

fop::Credentials credentials_of(std::string name, std::uint8_t seed) {
    return {.kind = fop::AuthKind::kPrincipal, .key = key_of(seed), .name = std::move(name)};
}

template <typename Holds>
bool wait(core::VirtualWorld& world, Duration span, Holds holds) {
    const Instant limit = after(world.now(), span);
    while (!holds()) {
        if (!world.step(limit)) return holds();
    }
    return true;
}

// -- the daemon --

daemon::LiveSettings live_settings() {
    std::string principals = "principals:\n";
    for (const auto& [name, seed] : {std::pair("bystander", 1), std::pair("guest", 2)}) {
        principals += std::string("  - name: ") + name +
                      "\n    key: " + fop::to_text(key_of(static_cast<std::uint8_t>(seed))) +
                      "\n    rights: [read, write, create, delete, admin]\n";
    }
    auto access = daemon::make_access({.principals_file = "principals.yaml",
                                       .principals = principals,
                                       .peer_keys = {},
                                       .issuer = {}});
    ENSURE(access.has_value());
    return {.limits = {}, .access = *std::move(access)};
}

class Daemon {
public:
    Daemon(core::VirtualWorld& world, fabric::Transport& transport)
        : world_(world),
          reactor_(world.make_reactor()),
          epochs_({.reactor = *reactor_, .events = events_, .entropy = entropy_}),
          locality_(0, *reactor_) {
        daemon::LocalityOptions options{.buffers_bytes = 4U << 20,
                                        .host = {},
                                        .server = {.incarnation = 42, .reply_bytes_max = 8U << 20},
                                        .live = live_settings()};
        options.host.machine.receive_buffer_count = 128;
        options.host.machine.host = "server";
        options.host.send_buffer_count = 64;
        options.host.lease = 3s;
        options.host.handshake_timeout = 1s;
        const auto opened = locality_.open(options, {.events = events_,
                                                     .entropy = entropy_,
                                                     .clock = world.clock(),
                                                     .transport = &transport,
                                                     .epochs = &epochs_});
        ENSURE(opened.has_value());
        listener_.emplace(std::vector<daemon::Locality*>{&locality_}, events_);
        locality_.own(*listener_);
        const auto wanted = fabric::parse_address("mem://server:0");
        ENSURE(wanted.has_value());
        const auto address = listener_->listen(transport, *wanted, {.silence_max = 1s});
        ENSURE(address.has_value());
        address_ = *address;
        epochs_.begin();
    }
    ~Daemon() {
        const auto left = world_.run(*reactor_, locality_.close());
        ENSURE(left == 0U);
    }
    Daemon(const Daemon&) = delete;
    Daemon& operator=(const Daemon&) = delete;

    const fabric::Address& address() const { return address_; }
    std::size_t session_count() { return locality_.sessions().size(); }
    bool at_rest() const { return locality_.at_rest(); }

private:
    core::VirtualWorld& world_;
    core::NullEventSink events_;
    core::SeededEntropy entropy_{4711};
    const std::unique_ptr<core::Reactor> reactor_;
    daemon::NodeEpochs epochs_;
    daemon::Locality locality_;
    std::optional<daemon::Listener> listener_;
    fabric::Address address_;
};

// -- who must not notice anything --

class Bystander {
public:
    Bystander(core::VirtualWorld& world, fabric::Transport& transport,
              const fabric::Address& server)
        : world_(world),
          reactor_(world.make_reactor()),
          host_(*reactor_, events_, entropy_, host_options()),
          client_(host_, {.server = server, .credentials = credentials_of("bystander", 1)}) {
        const auto opened = host_.open(transport);
        ENSURE(opened.has_value());
        client_.start();
        reactor_->spawn(gate_, work());
        go_on(1);
    }
    ~Bystander() {
        const bool stopped = world_.run(*reactor_, stop());
        ENSURE(stopped);
    }
    Bystander(const Bystander&) = delete;
    Bystander& operator=(const Bystander&) = delete;

    void go_on(std::size_t count) {
        const std::size_t until = answered_ + count;
        const bool went_on = wait(world_, kPatience, [&] { return answered_ >= until; });
        ENSURE(went_on);
        ENSURE(client_.reconnects() == 0);
    }

private:
    static fabric::HostOptions host_options() {
        fabric::HostOptions options;
        options.machine = {.receive_buffer_count = 72,
                           .receive_buffer_bytes = kMessageBytesMax,
                           .host = "bystander"};
        options.send_buffer_count = 64;
        options.send_buffer_bytes = 16U << 10;
        options.message_credits_floor = options.message_credits_max = 70;
        return options;
    }

    Task<void> work() {
        const std::string text(64, 'x');
        std::string back(64, '?');
        while (!stopping_) {
            const fabric::CallRequest request{.type = fop::find_fop_type("echo"),
                                              .body = fop::Echo{},
                                              .payload = bytes_of(text),
                                              .reply_into = std::as_writable_bytes(std::span(back)),
                                              .deadline = after(reactor_->now(), kCallMax)};
            const auto answer = co_await client_.call(request);
            ENSURE(answer.has_value());
            ENSURE(answer->status == fop::Status::kDone);
            ENSURE(back == text);
            ++answered_;
            back.assign(64, '?');
            [[maybe_unused]] const auto slept = co_await reactor_->sleep_for(kCallPace);
        }
    }
    Task<void> stop() {
        stopping_ = true;
        co_await gate_.close(*reactor_);
        co_await client_.close();
        co_await host_.close();
    }

    core::VirtualWorld& world_;
    core::NullEventSink events_;
    core::SeededEntropy entropy_{4};
    const std::unique_ptr<core::Reactor> reactor_;
    core::Gate gate_;
    fabric::SessionHost host_;
    fabric::Client client_;
    bool stopping_ = false;
    std::size_t answered_ = 0;
};

// -- who says what the input has --

class Guest final : fabric::MessageUser, fabric::ConnectionUser {
public:
    Guest(core::VirtualWorld& world, fabric::Transport& transport, const fabric::Address& server)
        : world_(world), reactor_(world.make_reactor()) {
        auto made = transport.make_machine(*reactor_, *this,
                                           {.receive_buffer_count = 64,
                                            .receive_buffer_bytes = kMessageBytesMax,
                                            .host = "guest"});
        ENSURE(made.has_value());
        machine_ = *std::move(made);
        for (Outgoing& each : outgoing_) {
            each.memory.resize(kMessageBytesMax);
            const auto registration = machine_->register_memory(each.memory);
            ENSURE(registration.has_value());
            each.registration = *registration;
        }
        readable_ = open_memory(fabric::Access::kRead);
        writable_ = open_memory(fabric::Access::kWrite);
        begin_handshake();
        connection_ = machine_->connect(server, fop::encode(connect_), *this);
        const bool opened = wait(world_, kPatience, [this] { return is_open_ || is_closed_; });
        ENSURE(opened && is_open_);
    }
    ~Guest() {
        connection_->close();
        const bool idle = wait(world_, kPatience, [this] { return connection_->in_flight() == 0; });
        ENSURE(idle);
        connection_.reset();
        machine_->close_memory(readable_);
        machine_->close_memory(writable_);
        const bool stopped = world_.run(*reactor_, machine_->stop());
        ENSURE(stopped);
    }
    Guest(const Guest&) = delete;
    Guest& operator=(const Guest&) = delete;

    // Until the daemon ends the session.
    void say_all(std::span<const std::byte> input) {
        constexpr std::size_t kHeadBytes = 3;
        while (input.size() > kHeadBytes && !is_closed_) {
            const auto head = static_cast<unsigned>(input[0]);
            const std::size_t wanted = load_little<std::uint16_t>(input.data() + 1);
            input = input.subspan(kHeadBytes);
            const auto bytes = input.first(std::min({wanted, input.size(), kMessageBytesMax}));
            input = input.subspan(bytes.size());
            if (!take_step(head, bytes)) return;
        }
    }

private:
    struct Outgoing final : fabric::TransferOp {
        Outgoing() : TransferOp(&on_complete) {}
        static void on_complete(fabric::TransferOp& /*op*/) {}

        std::vector<std::byte> memory;
        void* registration = nullptr;
    };

    // False when it can say no more.
    bool take_step(unsigned head, std::span<const std::byte> bytes) {
        switch (static_cast<Deed>(head & kDeedMask)) {
            case Deed::kMessage: return say(head, bytes);
            case Deed::kUnsealed: return send(bytes);
            case Deed::kBulkEcho: return lend(head, bytes);
            case Deed::kPass: {
                std::uint32_t ms = 0;
                for (const std::byte each : bytes.first(std::min<std::size_t>(bytes.size(), 2))) {
                    ms = ms << 8 | static_cast<std::uint32_t>(each);
                }
                const Duration span = std::min<Duration>(Duration(1ms) * ms, kPassMax - passed_);
                passed_ += span;
                world_.run_for(span);
                return true;
            }
        }
        return true;
    }

    bool say(unsigned head, std::span<const std::byte> bytes) {
        if (bytes.size() <= fop::kPrefixBytes) return send(bytes);
        std::vector<std::byte> message(bytes.begin(), bytes.end());
        repair_prefix(message);
        store_little(message.data() + 8, accepted_.session);
        if ((head & kKeepSequence) == 0) store_little(message.data() + 16, sequence_);
        if ((head & kKeepCredits) == 0) store_little(message.data() + 32, std::uint32_t{0});
        if ((head & kKeepAcknowledged) == 0) {
            store_little(message.data() + 40, std::uint64_t{0});
        }
        const auto prefix = fop::read_prefix(message);
        if (!prefix) return send(message);
        const std::uint32_t fops = data_fops(message, prefix->kind);
        if ((head & kWithoutCredits) == 0 && !wait_credits(fops)) return false;
        const fop::MacInput input = fop::mac_input(message);
        const fop::MacKey& key = handshake_->session().keys.client;
        fop::write_mac(message, fop::mac(key, input.prefix, input.envelope).bytes);
        fops_said_ += fops;
        ++messages_said_;
        if (prefix->sequence == sequence_) ++sequence_;
        return send(message);
    }
    // Of the lane whose credits are counted.
    static std::uint32_t data_fops(std::span<const std::byte> message, fop::MessageKind kind) {
        if (kind != fop::MessageKind::kRequests) return 0;
        const auto requests = fop::read_requests(message);
        if (!requests) return 0;
        std::uint32_t count = 0;
        for (const fop::Request request : *requests) {
            const fop::FopType* const type = fop::find_fop_type(request.type);
            if (type == nullptr || type->lane == fop::Lane::kData) ++count;
        }
        return count;
    }

    // A bulk_echo whose memory is lent for as much as the bytes say.
    bool lend(unsigned head, std::span<const std::byte> bytes) {
        std::array<std::byte, 8> numbers{};
        std::copy_n(bytes.begin(), std::min(bytes.size(), numbers.size()), numbers.begin());
        const auto size = load_little<std::uint32_t>(numbers.data());
        const auto offset = load_little<std::uint16_t>(numbers.data() + 4);
        const auto wrong = load_little<std::uint16_t>(numbers.data() + 6);
        const std::uint64_t id = ++request_id_;
        const fop::MacKey& key = handshake_->session().keys.descriptor;
        fop::Descriptor source{.use = fop::DescriptorUse::kPeerReads,
                               .session = accepted_.session,
                               .operation = id,
                               .address = readable_.address + offset,
                               .key = readable_.key ^ (wrong & 0xffU),
                               .bytes = size};
        fop::Descriptor target{.use = fop::DescriptorUse::kPeerWrites,
                               .session = accepted_.session,
                               .operation = id,
                               .address = writable_.address + offset,
                               .key = writable_.key ^ (wrong >> 8U),
                               .bytes = size};
        std::vector<std::byte> message(fop::kRequestOverheadMax);
        writer_.start_requests(message, {});
        const bool added = writer_.add({.id = id,
                                        .type = fop::find_fop_type("bulk_echo")->number,
                                        .body = fop::BulkEcho{.source = fop::seal(source, key),
                                                              .target = fop::seal(target, key),
                                                              .bytes = size}});
        ENSURE(added);
        message.resize(writer_.seal({}));
        return say(head, message);
    }

    // One message of this many fops.
    bool wait_credits(std::uint32_t fops) {
        return wait(world_, 1s, [&] {
            return is_closed_ ||
                   (messages_granted_ > messages_said_ && fops_granted_ >= fops_said_ + fops);
        });
    }

    bool send(std::span<const std::byte> bytes) {
        if (bytes.empty()) return true;
        Outgoing& next = outgoing_[sends_++ % outgoing_.size()];
        const bool is_free = wait(world_, 10s, [&] { return is_closed_ || !next.in_flight; });
        if (!is_free || is_closed_) return false;
        start_send(next, bytes);
        return true;
    }
    void start_send(Outgoing& op, std::span<const std::byte> bytes) {
        std::ranges::copy(bytes, op.memory.begin());
        op.local = {.bytes = std::span(op.memory).first(bytes.size()),
                    .registration = op.registration};
        connection_->send(op);
    }

    fabric::RemoteMemory open_memory(fabric::Access access) {
        std::vector<std::byte>& memory = lent_[access == fabric::Access::kRead ? 0 : 1];
        memory.resize(kLentBytes);
        const auto opened = machine_->open_memory(memory, access);
        ENSURE(opened.has_value());
        return *opened;
    }

    // -- the handshake, as docs/formats/handshake.md has it --

    void begin_handshake() {
        core::SeededEntropy entropy(17);
        entropy.fill(connect_.client_id);
        connect_.session = entropy.number();
        fop::ClientRandom random;
        entropy.fill(random.writable());
        handshake_.emplace(
            fop::ClientHandshake::Options{
                .credentials = credentials_of("guest", 2),
                .offer = {.message_bytes_max = kMessageBytesMax, .message_credits = 60'000}},
            random);
        connect_.promise = handshake_->promise();
    }
    void send_greeting(std::span<const std::byte> envelope) {
        std::array<std::byte, 1024> message{};
        const std::size_t bytes = fop::write_handshake(
            message, {.session = accepted_.session, .sequence = sequence_++}, envelope);
        start_send(outgoing_[sends_++ % outgoing_.size()], std::span(message).first(bytes));
    }

    void on_connected(std::span<const std::byte> answer) override {
        const auto accepted = fop::decode_accept_hello(answer);
        ENSURE(accepted.has_value());
        accepted_ = *accepted;
        send_greeting(handshake_->start(
            {.connect = fop::encode(connect_), .accept = fop::encode(accepted_)}));
    }
    void on_closed(const Error& /*reason*/, std::string_view /*words*/) override {
        is_closed_ = true;
    }
    void on_message(std::span<const std::byte> message, const fabric::Connection* /*by*/) override {
        const auto prefix = fop::read_prefix(message);
        ENSURE(prefix.has_value());
        ENSURE(prefix->session == connect_.session);
        if (!is_open_) return on_greeting(message);
        if (prefix->kind == fop::MessageKind::kHandshake) return;
        const fop::MacInput input = fop::mac_input(message);
        const fop::MacKey& key = handshake_->session().keys.server;
        ENSURE(fop::same_bytes(fop::mac(key, input.prefix, input.envelope).bytes,
                               fop::read_mac(message)));
        messages_granted_ += prefix->message_credits;
        fops_granted_ += prefix->fop_credits;
    }
    void on_greeting(std::span<const std::byte> message) {
        const auto envelope = fop::read_handshake(message);
        ENSURE(envelope.has_value());
        const fop::HandshakeStep step = handshake_->consume(*envelope);
        ENSURE(step.state != fop::HandshakeState::kRefused);
        if (!step.send.empty()) send_greeting(step.send);
        is_open_ = step.state == fop::HandshakeState::kDone;
        if (!is_open_) return;
        messages_granted_ = handshake_->session().grant.message_credits;
        fops_granted_ = handshake_->session().grant.fop_credits_data;
    }

    core::VirtualWorld& world_;
    const std::unique_ptr<core::Reactor> reactor_;
    std::array<std::vector<std::byte>, 2> lent_;
    std::array<Outgoing, 8> outgoing_;
    std::unique_ptr<fabric::TransferMachine> machine_;
    fabric::RemoteMemory readable_;
    fabric::RemoteMemory writable_;
    std::unique_ptr<fabric::Connection> connection_;
    fop::ConnectHello connect_;
    fop::AcceptHello accepted_;
    std::optional<fop::ClientHandshake> handshake_;
    fop::MessageWriter writer_;
    bool is_open_ = false;
    bool is_closed_ = false;
    std::size_t sends_ = 0;
    std::uint64_t sequence_ = 0;
    std::uint64_t request_id_ = 1024;
    std::uint32_t messages_granted_ = 0;
    std::uint32_t messages_said_ = 0;
    std::uint32_t fops_granted_ = 0;
    std::uint32_t fops_said_ = 0;
    Duration passed_{};
};

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it so.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size_bytes) {
    core::VirtualWorld world(7);
    fabric::MemTransport transport({.seed = 7, .delay = fabric::kSimulatedDelay});
    Daemon daemon(world, transport);
    {
        Bystander bystander(world, transport, daemon.address());
        {
            Guest guest(world, transport, daemon.address());
            const std::size_t before = __sanitizer_get_current_allocated_bytes();

            guest.say_all(std::as_bytes(std::span(data, size_bytes)));

            bystander.go_on(5);
            ENSURE(__sanitizer_get_current_allocated_bytes() < before + kGrowthMaxBytes);
        }
        const bool alone = wait(world, kPatience, [&] { return daemon.session_count() == 1; });
        ENSURE(alone);
        bystander.go_on(5);
    }
    const bool at_rest = wait(world, kPatience, [&] { return daemon.at_rest(); });
    ENSURE(at_rest);
    return 0;
}

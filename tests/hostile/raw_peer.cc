#include "tests/hostile/raw_peer.h"

#include <algorithm>
#include <utility>

namespace fopd::fabric::testing {

namespace {

std::span<std::byte> writable(std::string& text) {
    return std::as_writable_bytes(std::span(text));
}

}  // namespace

RawPeer::RawPeer(Process& process, const Address& server, Options options)
    : process_(process), server_(server), options_(std::move(options)) {
    core::SeededEntropy entropy(options_.seed);
    entropy.fill(connect_hello.client_id);
    connect_hello.session = entropy.number();
    fop::ClientRandom random;
    core::SeededEntropy secrets(options_.seed * 1000 + 17);
    secrets.fill(random.writable());
    handshake_.emplace(
        fop::ClientHandshake::Options{.credentials = options_.credentials, .offer = options_.offer},
        random);
    connect_hello.promise = handshake_->promise();
}

bool RawPeer::connect() {
    process_.run([this] { heard_before_ = process_.messages.size(); });
    end_ = &process_.connect(server_, text_of(fop::encode(connect_hello)));
    REQUIRE(process_.wait([this] { return end_->connected || end_->closed; }));
    bool connected = false;
    process_.run([&] {
        connected = end_->connected && !end_->closed;
        if (!connected) return;
        accepted_ = fop::decode_accept_hello(bytes_of(end_->answer)).value();
    });
    return connected;
}

std::string RawPeer::handshake_message(std::span<const std::byte> envelope) {
    const std::size_t bytes = fop::write_handshake(
        buffer_, {.session = session_id(), .sequence = next_sequence++}, envelope);
    return said_.emplace_back(text_of(std::span(buffer_).first(bytes)));
}

std::string RawPeer::hello() {
    return handshake_message(handshake_->start(
        {.connect = fop::encode(connect_hello), .accept = fop::encode(accepted_)}));
}

std::optional<std::string> RawPeer::next_greeting() {
    const std::size_t wanted = greetings_read_;
    std::optional<std::string> found;
    const bool came = process_.wait([&] {
        const auto all = mine();
        if (wanted < all.size()) {
            found = all[wanted];
            return true;
        }
        return end_->closed.has_value();
    });
    REQUIRE(came);
    if (found) ++greetings_read_;
    return found;
}

std::string RawPeer::finish() {
    const auto message = next_greeting();
    REQUIRE(message.has_value());
    const auto step = handshake_->consume(fop::read_handshake(bytes_of(*message)).value());
    if (step.state == fop::HandshakeState::kRunning) return handshake_message(step.send);
    std::string made_up(33, 'x');
    made_up[0] = static_cast<char>(fop::HandshakeKind::kClientFinish);
    return greeting(made_up);
}

bool RawPeer::welcomed() {
    const auto message = next_greeting();
    if (!message) return false;
    const auto envelope = fop::read_handshake(bytes_of(*message)).value();
    if (const auto refused = fop::decode_refused(envelope)) {
        refusal_words_ = refused->words;
        return false;
    }
    return handshake_->consume(envelope).state == fop::HandshakeState::kDone;
}

bool RawPeer::open() {
    if (!connect()) return false;
    send(hello());
    send(finish());
    return welcomed();
}

fop::PrefixFields RawPeer::prefix(const Extra& extra) {
    return {.session = session_id(),
            .sequence = next_sequence++,
            .message_credits = extra.message_credits,
            .fop_credits = extra.fop_credits,
            .acknowledged = extra.acknowledged};
}

std::string RawPeer::sealed(std::size_t bytes) {
    std::string message = text_of(std::span(buffer_).first(bytes));
    reseal(message);
    return said_.emplace_back(std::move(message));
}

void RawPeer::reseal(std::string& message) const {
    const auto bytes = writable(message);
    const fop::MacInput input = fop::mac_input(bytes);
    fop::write_mac(bytes, fop::mac(session().keys.client, input.prefix, input.envelope).bytes);
}

std::string RawPeer::requests(const std::vector<fop::Request>& requests, const Extra& extra) {
    writer_.start_requests(buffer_, {.job = "mischief", .pool = {}, .user = {}});
    for (const fop::Request& each : requests) REQUIRE(writer_.add(each));
    return sealed(writer_.seal(prefix(extra)));
}

std::string RawPeer::replies(const std::vector<fop::Reply>& replies) {
    writer_.start_replies(buffer_);
    for (const fop::Reply& each : replies) REQUIRE(writer_.add(each));
    return sealed(writer_.seal(prefix({})));
}

std::string RawPeer::control(const fop::Control& control, const Extra& extra) {
    return sealed(writer_.write_control(buffer_, prefix(extra), control));
}

void RawPeer::send_all(const std::vector<std::string>& messages) {
    process_.run([&] {
        for (const std::string& each : messages) end_->send(each);
    });
}

// On the process's reactor: what came for this session.
std::vector<std::string> RawPeer::mine() {
    std::vector<std::string> found;
    for (const std::string& each : std::span(process_.messages).subspan(heard_before_)) {
        const auto read = fop::read_prefix(bytes_of(each));
        if (read && read->session == connect_hello.session) found.push_back(each);
    }
    return found;
}

std::optional<RawPeer::Answer> RawPeer::answer(std::uint64_t id) {
    std::optional<Answer> found;
    std::size_t looked_at = 0;
    const auto looks = [&] {
        for (; looked_at < process_.messages.size(); ++looked_at) {
            // Where the allocator put it, which is aligned.
            const std::string& each = process_.messages[looked_at];
            const auto read = fop::read_prefix(bytes_of(each));
            if (!read || read->session != connect_hello.session ||
                read->kind != fop::MessageKind::kReplies) {
                continue;
            }
            const auto view = fop::read_replies(bytes_of(each));
            if (!view) continue;
            for (const fop::Reply reply : *view) {
                if (reply.id != id) continue;
                found = Answer{.status = reply.status,
                               .words = std::string(reply.words),
                               .payload_bytes = reply.payload.size()};
                return true;
            }
        }
        return end_->closed.has_value();
    };
    REQUIRE(process_.wait(looks));
    return found;
}

bool RawPeer::heard_control(const std::function<bool(const fop::Control&)>& look) {
    std::size_t looked_at = 0;
    bool heard = false;
    const auto looks = [&] {
        for (; !heard && looked_at < process_.messages.size(); ++looked_at) {
            const std::string& each = process_.messages[looked_at];
            const auto read = fop::read_prefix(bytes_of(each));
            if (!read || read->session != connect_hello.session ||
                read->kind != fop::MessageKind::kControl) {
                continue;
            }
            const auto control = fop::read_control(bytes_of(each));
            heard = control && look(*control);
        }
        return heard || end_->closed.has_value();
    };
    REQUIRE(process_.wait(looks));
    return heard;
}

std::uint32_t RawPeer::credits() {
    std::uint32_t given = session().grant.message_credits;
    for (const std::string& each : mine()) {
        given += fop::read_prefix(bytes_of(each))->message_credits;
    }
    return given;
}

std::uint32_t RawPeer::messages_taken() {
    std::size_t taken = 0;
    process_.run([&] { taken = mine().size() - greetings_read_; });
    return static_cast<std::uint32_t>(taken);
}

bool RawPeer::closed() {
    bool closed = false;
    process_.run([&] { closed = end_->closed.has_value(); });
    return closed;
}

std::string RawPeer::closing_words() {
    std::string words;
    process_.run([&] { words = end_->words; });
    return words;
}

}  // namespace fopd::fabric::testing

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/entropy.h"
#include "fop/handshake.h"
#include "fop/mac.h"
#include "fop/message_reader.h"
#include "fop/message_writer.h"
#include "tests/fabric/transport_kinds.h"

namespace fopd::fabric::testing {

// A client made of nothing but a connection and what docs/formats/ says. It keeps to the protocol
// as far as a test asks it to, and no further: each step of a handshake and each message is a call
// of its own, and a message is bytes that the test may change before they are sent.
class RawPeer {
public:
    struct Options {
        fop::Credentials credentials;
        std::uint64_t seed = 1;
        // The largest there are: the server may answer as much as it likes.
        fop::ClientOffer offer{.message_bytes_max = 36U << 10, .message_credits = 60'000};
    };

    RawPeer(Process& process, const Address& server, Options options);

    // -- the handshake, step by step --

    // Before it connects: that its first step will be this one.
    void promise(std::string_view envelope) {
        connect_hello.promise = fop::promise_of(bytes_of(envelope));
    }
    // Its own first step.
    std::string first_envelope() const { return text_of(handshake_->hello()); }
    // False when the server refuses the connection.
    bool connect();
    // The message as it would be sent; each may be called once, in this order.
    std::string hello();
    // Waits for the ServerHello. A peer without the right key makes up its proof.
    std::string finish();
    // Waits for the Welcome. False when the server refuses, or ends it.
    bool welcomed();
    // A step of the test's own.
    std::string greeting(std::string_view envelope) {
        return handshake_message(bytes_of(envelope));
    }
    // All of it.
    bool open();

    // -- messages; once it is open --

    struct Extra {
        std::uint16_t message_credits = 0;
        std::uint16_t fop_credits = 0;
        std::uint64_t acknowledged = 0;
    };
    // A message of these requests or this control, sealed, with the next sequence number.
    std::string requests(const std::vector<fop::Request>& requests, const Extra& extra);
    std::string requests(const std::vector<fop::Request>& list) { return requests(list, {}); }
    std::string control(const fop::Control& control, const Extra& extra);
    std::string control(const fop::Control& content) { return control(content, {}); }
    std::string replies(const std::vector<fop::Reply>& replies);
    // Makes the MAC right again after the test changed something.
    void reseal(std::string& message) const;

    void send(std::string_view message) { end_->send(message); }
    // All at once, in one turn.
    void send_all(const std::vector<std::string>& messages);

    // The next reply to request `id`, out of all that came; nothing when the session ended first.
    struct Answer {
        fop::Status status = fop::Status::kInternal;
        std::string words;
        std::size_t payload_bytes = 0;
    };
    std::optional<Answer> answer(std::uint64_t id);
    // Control messages so far, with what `look` says of them true.
    bool heard_control(const std::function<bool(const fop::Control&)>& look);
    // As many messages as the server lets it send in all; on the process's reactor.
    std::uint32_t credits();
    // That have come since the handshake, each for a credit of the server's.
    std::uint32_t messages_taken();

    bool wait_closed() {
        return process_.wait([this] { return end_->closed.has_value(); });
    }
    bool closed();
    bool connected() const { return end_ != nullptr; }
    const std::string& refusal_words() const { return refusal_words_; }
    std::string closing_words();

    const fop::ClientSession& session() const { return handshake_->session(); }
    std::uint64_t session_id() const { return accepted_.session; }
    Process& process() { return process_; }
    End& end() { return *end_; }
    // What it said so far, as it was made.
    const std::vector<std::string>& said() const { return said_; }
    void forget_said() { said_.clear(); }
    fop::ConnectHello connect_hello;
    std::uint64_t next_sequence = 0;

private:
    std::string sealed(std::size_t bytes);
    std::string handshake_message(std::span<const std::byte> envelope);
    // Waits for the next handshake message; nothing when the connection ended first.
    std::optional<std::string> next_greeting();
    fop::PrefixFields prefix(const Extra& extra);
    std::vector<std::string> mine();

    Process& process_;
    const Address server_;
    Options options_;
    End* end_ = nullptr;
    fop::AcceptHello accepted_;
    std::optional<fop::ClientHandshake> handshake_;
    std::size_t heard_before_ = 0;  // Of the process's messages: those of other peers.
    std::size_t greetings_read_ = 0;
    std::string refusal_words_;
    std::vector<std::string> said_;
    std::vector<std::byte> buffer_ = std::vector<std::byte>(256U << 10);
    fop::MessageWriter writer_;
};

}  // namespace fopd::fabric::testing

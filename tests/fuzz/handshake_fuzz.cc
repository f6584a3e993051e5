// Whatever arrives in place of a handshake's messages: nobody is let in whose messages did not
// arrive as they were sent, and every message that can be read is written again the same.
//
//     build/fuzz/bin/fuzz_handshake -max_len=1024 tests/fuzz/corpus/handshake
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/ensure.h"
#include "fop/bytes.h"
#include "tests/fop/handshake_pair.h"

using namespace fopd::fop;

namespace {

// Reads one message with `decode`; what it could read must come out of encode() as it went in.
template <typename Decode>
void check_canonical(std::span<const std::byte> bytes, Decode decode) {
    const auto message = decode(bytes);
    if (!message) {
        ENSURE(std::string_view(message.error().context).size() <= kRefusalWordsMax);
        return;
    }
    std::array<std::byte, kHandshakeBytesMax> memory;
    ENSURE(std::ranges::equal(encode(*message, memory), bytes));
}

void check_messages(std::span<const std::byte> bytes) {
    check_canonical(bytes, decode_client_hello);
    check_canonical(bytes, decode_server_hello);
    check_canonical(bytes, decode_client_finish);
    check_canonical(bytes, decode_welcome);
    if (const auto refused = decode_refused(bytes); refused) {
        ENSURE(refused->words.size() <= kRefusalWordsMax);
    }
    // Neither of these writes back all it was given: padding and a newer version's fields go.
    if (const auto hello = decode_connect_hello(bytes); hello) {
        ENSURE(decode_connect_hello(encode(*hello)).value() == *hello);
    }
    if (const auto hello = decode_accept_hello(bytes); hello) {
        ENSURE(decode_accept_hello(encode(*hello)).value() == *hello);
    }
}

struct Setting {
    ClientHandshake::Options client = example_client();
    std::optional<Rights> unauthenticated = {};
    bool should_succeed = true;
};

Setting setting(std::uint8_t choice) {
    Setting made;
    Credentials& credentials = made.client.credentials;
    switch (choice & 3) {
        case 0: break;
        case 1: credentials = {.kind = AuthKind::kPeer, .key = kPeerKey, .name = "node-b"}; break;
        case 2: credentials = {.kind = AuthKind::kNone, .name = "laptop"}; break;
        default: credentials.key = Key(counting_bytes<32>(0x77)); made.should_succeed = false;
    }
    if ((choice & 4) != 0) {
        made.unauthenticated = kRead;
    } else if (credentials.kind == AuthKind::kNone) {
        made.should_succeed = false;
    }
    if ((choice & 8) != 0) {
        credentials.user = "bob";
        made.should_succeed = made.should_succeed && credentials.kind == AuthKind::kNone;
    }
    return made;
}

// What happens to the message that is under way.
Bytes changed(const Bytes& message, const std::vector<Bytes>& earlier, ByteReader& script) {
    Bytes arriving = message;
    switch (script.number<std::uint8_t>() % 5) {
        case 0: break;
        case 1: {
            const auto at = script.number<std::uint16_t>() % arriving.size();
            arriving[at] ^= static_cast<std::byte>(script.number<std::uint8_t>());
            break;
        }
        case 2: arriving.resize(script.number<std::uint16_t>() % (2 * kHandshakeBytesMax)); break;
        case 3: arriving = copy_of(script.take(script.number<std::uint8_t>())); break;
        default: arriving = earlier[script.number<std::uint8_t>() % earlier.size()];
    }
    return arriving;
}

void check_step(const HandshakeStep& step) {
    ENSURE(step.send.size() <= kHandshakeBytesMax);
    if (step.state == HandshakeState::kRefused) ENSURE(step.send.empty() || is_refused(step.send));
    if (step.state == HandshakeState::kRunning) ENSURE(!step.send.empty());
}

void check_done(const HandshakePair& pair) {
    const SessionKeys& client = pair.client.session().keys;
    const SessionKeys& server = pair.server.session().keys;
    ENSURE(client.client == server.client);
    ENSURE(client.server == server.server);
    ENSURE(client.descriptor == server.descriptor);
    ENSURE(pair.client.session().rights == pair.server.session().identity.rights);
    ENSURE(pair.client.session().name == pair.server.session().identity.name);
}

void check_conversation(std::span<const std::byte> bytes) {
    ByteReader script(bytes);
    const Setting how = setting(script.number<std::uint8_t>());
    HandshakePair pair(how.client);
    pair.admission.unauthenticated = how.unauthenticated;
    bool is_intact = true;
    bool for_server = true;
    pair.said.push_back(copy_of(pair.client.start(example_connect_data())));
    while (true) {
        const Bytes arriving = changed(pair.said.back(), pair.said, script);
        is_intact = is_intact && arriving == pair.said.back();
        auto step = for_server ? pair.server.consume(arriving, pair.admission)
                               : pair.client.consume(arriving);
        if (step.state == HandshakeState::kProved) step = pair.server.welcome(false);
        check_step(step);
        if (step.state == HandshakeState::kRefused) {
            const Refusal& why = for_server ? pair.server.refusal() : pair.client.refusal();
            ENSURE(why.words.size() <= kRefusalWordsMax);
            const bool is_lawful = !is_intact || !how.should_succeed;
            ENSURE(is_lawful);
            return;
        }
        if (step.state == HandshakeState::kDone) {
            ENSURE(is_intact);
            ENSURE(how.should_succeed);
            if (!for_server) return check_done(pair);
        }
        pair.said.push_back(copy_of(step.send));
        for_server = !for_server;
    }
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it so.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size_bytes) {
    const auto bytes = std::as_bytes(std::span(data, size_bytes));
    check_messages(bytes);
    check_conversation(bytes);
    return 0;
}

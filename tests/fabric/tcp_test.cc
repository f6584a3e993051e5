// What a peer that does not speak our frames, or speaks them wrongly, can do to others. The file is
// long because all of its tests have the same raw peer.
#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "fabric/tcp/frame.h"
#include "fabric/tcp/socket.h"
#include "tests/fabric/transport_kinds.h"
#include "tests/ipv6.h"

namespace fopd::fabric::testing::tcp_test {

namespace {

const Kind& tcp_kind() {
    for (const Kind& each : kAllKinds) {
        if (each.world == World::kRealUring) return each;
    }
    throw std::logic_error("no such kind");
}

// A peer that writes and reads bytes.
class RawPeer {
public:
    explicit RawPeer(const Address& address) {
        const auto name = socket_address(address, kTcpScheme);
        REQUIRE(name.has_value());
        fd_ = core::OwnedFd(::socket(name->storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
        REQUIRE(::connect(fd_.get(), name->get(), name->size) == 0);
    }

    void send(std::string_view bytes) {
        REQUIRE(::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
                static_cast<ssize_t>(bytes.size()));
    }
    void send(const Frame& frame, std::string_view body = {}) {
        const FrameHeader header = encode_frame(frame);
        // With one call: the kernel would hold the body back until the header is acknowledged.
        send(text_of(header) + std::string(body));
    }
    // Says hello, is accepted, and reads the answer.
    End& enter(Stage& stage) {
        send({.kind = FrameKind::kConnect, .length = 2}, "hi");
        End& end = stage.server().accept(stage.server().request(), {});
        REQUIRE(receive(kFrameHeaderBytes).size() == kFrameHeaderBytes);
        return end;
    }
    // As many bytes, or fewer if the connection ends before.
    std::string receive(std::size_t count) {
        std::string bytes(count, '\0');
        std::size_t size = 0;
        // MSG_WAITALL returns early when the thread has other work to do for the kernel.
        for (ssize_t got = 1; size < count && got > 0;) {
            got = ::recv(fd_.get(), bytes.data() + size, count - size, MSG_WAITALL);
            if (got > 0) size += static_cast<std::size_t>(got);
        }
        bytes.resize(size);
        return bytes;
    }
    bool ends_within(Duration span) {
        pollfd ended{.fd = fd_.get(), .events = POLLIN, .revents = 0};
        return ::poll(&ended, 1, static_cast<int>(span / 1ms)) == 1 && is_ended();
    }
    // Waits until the server has ended the connection.
    bool is_ended() { return receive(1).empty(); }

private:
    core::OwnedFd fd_;
};

}  // namespace

TEST_CASE("fabric tcp: an address may be of IPv6", "[fabric]") {
    if (!fopd::testing::has_ipv6()) {
        WARN("skipped: no IPv6 here");
        return;
    }
    Kind kind = tcp_kind();
    kind.listen_at = "tcp://[::1]:0";
    Stage stage(kind);

    const Pair pair = stage.connect();

    round_trip(stage, pair);
    REQUIRE(pair.client.connection->peer() ==
            "tcp://[::1]:" + std::to_string(stage.address().port));
}

TEST_CASE("fabric tcp: a connection request may arrive byte by byte", "[fabric]") {
    Stage stage(tcp_kind());
    RawPeer peer(stage.address());
    std::string frame = text_of(encode_frame({.kind = FrameKind::kConnect, .length = 2}));
    frame += "hi";

    for (const char& each : frame) {
        peer.send(std::string_view(&each, 1));
        stage.server().run([] {});
    }

    auto request = stage.server().request();
    stage.server().run([&] { request.reset(); });
    REQUIRE(stage.server().seen([&] { return stage.server().hellos; }) ==
            std::vector<std::string>{"hi"});
    const std::string refusal = peer.receive(kFrameHeaderBytes);
    REQUIRE(refusal == text_of(encode_frame({.kind = FrameKind::kRefuse})));
    REQUIRE(peer.is_ended());
}

TEST_CASE("fabric tcp: a peer whose first frame is no connection request is ended", "[fabric]") {
    const std::string first = GENERATE(
        std::string(32, 'x'), text_of(encode_frame({.kind = FrameKind::kMessage, .length = 1})),
        text_of(encode_frame({.kind = FrameKind::kConnect, .length = 49})));
    Stage stage(tcp_kind());
    RawPeer peer(stage.address());

    peer.send(first);

    REQUIRE(peer.is_ended());
    REQUIRE(stage.server().seen([&] { return stage.server().hellos.empty(); }));
    round_trip(stage, stage.connect());
}

TEST_CASE("fabric tcp: who ends without a request is reported, with what it sent", "[fabric]") {
    struct Sent {
        std::string bytes;
        bool leaves = false;  // Otherwise the server ends the connection at once.
        Stranger::Kind kind = Stranger::Kind::kLeft;
    };
    const std::string request = text_of(encode_frame({.kind = FrameKind::kConnect, .length = 2}));
    const std::string other = text_of(encode_frame({.kind = FrameKind::kMessage, .length = 1}));
    const std::vector<Sent> all{
        {"", true, Stranger::Kind::kLeft},
        {request.substr(0, 20), true, Stranger::Kind::kLeft},
        {"x", false, Stranger::Kind::kOtherBytes},
        {"GET / HTTP/1.0\r\n\r\n", false, Stranger::Kind::kHttp},
        {"\x16\x03\x01\x02", false, Stranger::Kind::kTls},
        {other, false, Stranger::Kind::kWrongFrame},
    };
    // None of them ends because it is silent.
    Stage stage(tcp_kind(), {}, {.silence_max = 600s});
    for (std::size_t i = 0; i < all.size(); ++i) {
        CAPTURE(i);
        {
            RawPeer peer(stage.address());
            if (!all[i].bytes.empty()) peer.send(all[i].bytes);
            if (!all[i].leaves) REQUIRE(peer.is_ended());
        }
        REQUIRE(stage.server().wait([&] { return stage.server().strangers.size() == i + 1; }));
        const Stranger last = stage.server().seen([&] { return stage.server().strangers.back(); });
        CHECK(last.kind == all[i].kind);
        CHECK(last.peer.starts_with("tcp://127.0.0.1:"));
    }
    round_trip(stage, stage.connect());
}

TEST_CASE("fabric tcp: a client learns that the server speaks something else", "[fabric]") {
    const auto [answer, words] = GENERATE(table<std::string, std::string>(
        {{"", "perhaps it listens at ofi+tcp://, not at tcp://"},
         {"HTTP/1.1 400 Bad Request\r\nServer: other\r\n\r\n",
          "the answer is not that of an fopd that listens at tcp://"}}));
    CAPTURE(answer);
    Stage stage(tcp_kind());
    core::OwnedFd listening(::socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof name;
    REQUIRE(::bind(listening.get(), reinterpret_cast<sockaddr*>(&name), size) == 0);
    REQUIRE(::listen(listening.get(), 1) == 0);
    REQUIRE(::getsockname(listening.get(), reinterpret_cast<sockaddr*>(&name), &size) == 0);
    Address address = stage.address();
    address.port = ntohs(name.sin_port);

    const End& end = stage.client().connect(address);
    {
        const core::OwnedFd accepted(::accept(listening.get(), nullptr, nullptr));
        std::array<char, 128> hello{};
        REQUIRE(::recv(accepted.get(), hello.data(), hello.size(), 0) > 0);
        REQUIRE(::send(accepted.get(), answer.data(), answer.size(), 0) ==
                static_cast<ssize_t>(answer.size()));
    }

    REQUIRE(stage.client().wait([&] { return end.closed.has_value(); }));
    REQUIRE_THAT(end.reason_text, ContainsSubstring(words));
}

TEST_CASE("fabric tcp: more connections than places end the oldest without a request", "[fabric]") {
    // None of them ends because it is silent.
    Stage stage(tcp_kind(), {}, {.silence_max = 600s});
    std::vector<RawPeer> silent;
    // Those of a batch are accepted together.
    for (int batch = 0; batch < 2; ++batch) {
        stage.server().loop().pause();
        for (int i = 0; i < 900; ++i) silent.emplace_back(stage.address());
        stage.server().loop().resume();
        round_trip(stage, stage.connect());
    }

    const Pair pair = stage.connect();

    for (std::size_t i = 0; i < 1800 - 1024; ++i) REQUIRE(silent[i].ends_within(60s));
    round_trip(stage, pair);
}

TEST_CASE("fabric tcp: frames out of place end their connection alone", "[fabric]") {
    struct Wrong {
        const char* name;
        Frame frame;
    };
    const Wrong wrong =
        GENERATE(Wrong{"connect", {.kind = FrameKind::kConnect}},
                 Wrong{"accept", {.kind = FrameKind::kAccept}},
                 Wrong{"refuse", {.kind = FrameKind::kRefuse}},
                 Wrong{"data nobody asked for", {.kind = FrameKind::kReadData, .length = 16}},
                 Wrong{"data of nothing nobody asked for", {.kind = FrameKind::kReadData}},
                 Wrong{"read of nothing", {.kind = FrameKind::kRead}},
                 Wrong{"write of nothing", {.kind = FrameKind::kWrite}},
                 Wrong{"message too long", {.kind = FrameKind::kMessage, .length = 0xffffffff}});
    CAPTURE(wrong.name);
    Stage stage(tcp_kind());
    const Pair innocent = stage.connect();
    RawPeer peer(stage.address());
    const End& end = peer.enter(stage);

    peer.send(wrong.frame);

    REQUIRE(stage.server().wait([&] { return end.closed.has_value(); }));
    REQUIRE(end.closed == Errc::kInvalid);
    REQUIRE(peer.is_ended());
    round_trip(stage, innocent);
}

TEST_CASE("fabric tcp: garbage on a proved connection ends it at once", "[fabric]") {
    const std::string right = text_of(encode_frame({.kind = FrameKind::kMessage, .length = 4}));
    const auto with = [&right](std::size_t at, char byte) {
        std::string changed = right;
        changed[at] = byte;
        return changed;
    };
    struct Garbage {
        const char* name;
        bool is_encrypted;
        std::string bytes;
    };
    const std::vector<Garbage> all{
        {"no frame", false, with(0, 'x')},
        {"kind 0", false, with(2, 0)},
        {"kind 8", false, with(2, 8)},
        {"reserved byte", false, with(3, 1)},
        {"reserved bytes behind the tag", false, with(15, 1)},
        {"read that is too long", false,
         text_of(encode_frame({.kind = FrameKind::kRead, .length = kFrameTransferMax + 1}))},
        {"write that is too long", false,
         text_of(encode_frame({.kind = FrameKind::kWrite, .length = kFrameTransferMax + 1}))},
        {"message longer than a buffer", false,
         text_of(encode_frame(
             {.kind = FrameKind::kMessage, .length = MachineOptions{}.receive_buffer_bytes + 1}))},
        {"record of nothing", true, std::string(4, '\0')},
        {"record that is too long", true, std::string("\x01\x40\0\0", 4)},
        {"record that is not authentic", true, std::string("\x05\0\0\0", 4) + std::string(21, 'x')},
    };
    for (const Garbage& garbage : all) {
        CAPTURE(garbage.name);
        Stage stage(tcp_kind());
        stage.server().run([&] { stage.server().encrypts = garbage.is_encrypted; });
        RawPeer peer(stage.address());
        const End& end = peer.enter(stage);
        if (!garbage.is_encrypted) {
            peer.send({.kind = FrameKind::kMessage, .length = 4}, "good");
            REQUIRE(stage.server().wait([&] { return stage.server().messages.size() == 1; }));
        }
        const auto before = stage.server().seen([&] { return stage.server().messages.size(); });

        // What comes behind it is not looked at, though it would be right.
        peer.send(garbage.bytes + right + "late");

        REQUIRE(stage.server().wait([&] { return end.closed.has_value(); }));
        CHECK(end.closed == Errc::kInvalid);
        CHECK(peer.is_ended());
        CHECK(stage.server().seen([&] { return stage.server().messages.size(); }) == before);
    }
}

TEST_CASE("fabric tcp: the answer to a read must have its tag and length", "[fabric]") {
    const auto [tag_change, length] =
        GENERATE(table<std::uint32_t, std::uint32_t>({{1, 64}, {0, 63}, {0, 65}, {0, 0}}));
    CAPTURE(tag_change, length);
    Stage stage(tcp_kind());
    RawPeer peer(stage.address());
    End& end = peer.enter(stage);
    Memory& memory = stage.server().memory(std::string(64, '-'));
    const Op& op = end.read(memory, {.address = 1, .key = 2});
    const std::string asked = peer.receive(kFrameHeaderBytes);
    const auto frame = decode_frame(std::as_bytes(std::span(asked)).first<kFrameHeaderBytes>());
    REQUIRE(frame.has_value());
    REQUIRE(frame->kind == FrameKind::kRead);
    REQUIRE(frame->length == 64);

    peer.send({.kind = FrameKind::kReadData, .length = length, .tag = frame->tag + tag_change},
              std::string(length, 'x'));

    REQUIRE(stage.server().wait([&] { return op.done() && end.closed; }));
    REQUIRE(op.failed_with(Errc::kClosed));
    REQUIRE(end.closed == Errc::kInvalid);
    REQUIRE(memory.bytes == std::string(64, '-'));
}

// The next frame of the server, which must be a read.
Frame next_read(RawPeer& peer) {
    const std::string asked = peer.receive(kFrameHeaderBytes);
    REQUIRE(asked.size() == kFrameHeaderBytes);
    const auto frame = decode_frame(std::as_bytes(std::span(asked)).first<kFrameHeaderBytes>());
    REQUIRE(frame.has_value());
    REQUIRE(frame->kind == FrameKind::kRead);
    return *frame;
}

bool give_up(Stage& stage, End& end, Op& op) {
    return stage.server().seen([&] { return end.connection->give_up(op); });
}

TEST_CASE("fabric tcp: late data of a read that was given up are skipped", "[fabric]") {
    const std::size_t before = GENERATE(0U, 1U, 50'000U);
    CAPTURE(before);
    Stage stage(tcp_kind());
    RawPeer peer(stage.address());
    End& end = peer.enter(stage);
    Memory& memory = stage.server().memory(std::string(100'000, '-'));
    Memory& kept = stage.server().memory(std::string(4, '-'));
    Op& late = end.read(memory, {.address = 1, .key = 2});
    const Op& other = end.read(kept, {.address = 3, .key = 4});
    const Frame asked = next_read(peer);
    const Frame asked_too = next_read(peer);
    const Frame data{.kind = FrameKind::kReadData, .length = asked.length, .tag = asked.tag};
    const std::string bytes(asked.length, 'x');
    if (before > 0) {
        peer.send(data, bytes.substr(0, before));
        REQUIRE(stage.server().wait([&] { return memory.bytes[before - 1] == 'x'; }));
    }

    REQUIRE(give_up(stage, end, late));
    REQUIRE(stage.server().wait([&] { return late.done(); }));
    REQUIRE(late.failed_with(Errc::kCancelled));
    stage.server().run([&] { std::ranges::fill(memory.bytes, '-'); });
    if (before > 0) {
        peer.send(bytes.substr(before));
    } else {
        peer.send(data, bytes);
    }
    peer.send({.kind = FrameKind::kReadData, .length = 4, .tag = asked_too.tag}, "kept");

    REQUIRE(stage.server().wait([&] { return other.done(); }));
    REQUIRE(other.fine());
    REQUIRE(kept.bytes == "kept");
    REQUIRE(memory.bytes == std::string(100'000, '-'));
    REQUIRE_FALSE(stage.server().seen([&] { return end.closed; }).has_value());
}

TEST_CASE("fabric tcp: data of a read that come twice end the connection", "[fabric]") {
    const bool is_given_up = GENERATE(true, false);
    CAPTURE(is_given_up);
    Stage stage(tcp_kind());
    const Pair innocent = stage.connect();
    RawPeer peer(stage.address());
    End& end = peer.enter(stage);
    Memory& memory = stage.server().memory(std::string(64, '-'));
    Memory& kept = stage.server().memory(std::string(64, '-'));
    Op& read = end.read(memory, {.address = 1, .key = 2});
    const Op& other = end.read(kept, {.address = 1, .key = 2});
    const Frame asked = next_read(peer);
    if (is_given_up) REQUIRE(give_up(stage, end, read));
    const Frame data{.kind = FrameKind::kReadData, .length = 64, .tag = asked.tag};
    peer.send(data, std::string(64, 'x'));
    REQUIRE(stage.server().wait([&] { return read.done(); }));
    stage.server().run([&] { std::ranges::fill(memory.bytes, '-'); });

    peer.send(data, std::string(64, 'y'));

    REQUIRE(stage.server().wait([&] { return other.done() && end.closed; }));
    REQUIRE(end.closed == Errc::kInvalid);
    REQUIRE(other.failed_with(Errc::kClosed));
    REQUIRE(memory.bytes == std::string(64, '-'));
    REQUIRE(kept.bytes == std::string(64, '-'));
    round_trip(stage, innocent);
}

TEST_CASE("fabric tcp: a peer that answers no reads has a limited number given up", "[fabric]") {
    Stage stage(tcp_kind());
    RawPeer peer(stage.address());
    End& end = peer.enter(stage);
    std::vector<Op*> reads;
    std::vector<Frame> asked;
    for (std::uint32_t i = 0; i <= kGivenUpMax; ++i) {
        reads.push_back(&end.read(stage.server().memory("----"), {.address = 1, .key = 2}));
        asked.push_back(next_read(peer));
    }

    for (std::uint32_t i = 0; i < kGivenUpMax; ++i) REQUIRE(give_up(stage, end, *reads[i]));
    REQUIRE_FALSE(give_up(stage, end, *reads.back()));
    peer.send({.kind = FrameKind::kReadData, .length = 4, .tag = asked[0].tag}, "late");
    peer.send({.kind = FrameKind::kMessage, .length = 4}, "next");
    REQUIRE(stage.server().wait([&] { return stage.server().messages.size() == 1; }));

    REQUIRE(give_up(stage, end, *reads.back()));
    REQUIRE(stage.server().wait([&] { return reads.back()->done(); }));
}

TEST_CASE("fabric tcp: more reads than a peer may have without an answer end its connection",
          "[fabric]") {
    constexpr std::uint32_t kReadsMax = 1024;
    const bool is_too_many = GENERATE(false, true);
    CAPTURE(is_too_many);
    const std::uint32_t count = kReadsMax + (is_too_many ? 1U : 0U);
    Stage stage(tcp_kind());
    const Pair innocent = stage.connect();
    RawPeer peer(stage.address());
    const End& end = peer.enter(stage);
    constexpr std::uint32_t kMany = 32U << 20;  // More than the buffers of both sockets.
    Memory& memory = stage.server().memory(std::string(kMany, 'm'));
    const RemoteMemory opened = stage.server().open(memory, Access::kRead);
    std::string asked;
    for (std::uint32_t i = 0; i < count; ++i) {
        // The answers to all others wait behind the first one.
        const std::uint32_t length = i == 0 ? kMany : 1;
        asked += text_of(encode_frame(
            {.kind = FrameKind::kRead, .length = length, .tag = i, .key = opened.key}));
    }

    peer.send(asked + text_of(encode_frame({.kind = FrameKind::kMessage, .length = 4})) + "next");

    REQUIRE(stage.server().wait(
        [&] { return end.closed.has_value() || !stage.server().messages.empty(); }));
    if (is_too_many) {
        REQUIRE(end.closed == Errc::kInvalid);
        REQUIRE(stage.server().messages.empty());
    } else {
        REQUIRE_FALSE(stage.server().seen([&] { return end.closed; }).has_value());
    }
    stage.server().close(opened);
    round_trip(stage, innocent);
}

TEST_CASE("fabric tcp: what is sent of memory that is closed during a read is zeros", "[fabric]") {
    Stage stage(tcp_kind());
    RawPeer peer(stage.address());
    const End& end = peer.enter(stage);
    constexpr std::uint32_t kBytes = 32U << 20;  // More than the buffers of both sockets.
    Memory& memory = stage.server().memory(std::string(kBytes, 'm'));
    const RemoteMemory opened = stage.server().open(memory, Access::kRead);
    peer.send({.kind = FrameKind::kRead, .length = kBytes, .tag = 7, .key = opened.key});
    REQUIRE(peer.receive(kFrameHeaderBytes) ==
            text_of(encode_frame({.kind = FrameKind::kReadData, .length = kBytes, .tag = 7})));

    stage.server().close(opened);
    stage.server().run([&] { std::ranges::fill(memory.bytes, 'S'); });
    const std::string received = peer.receive(kBytes);
    peer.send({.kind = FrameKind::kMessage, .length = 4}, "next");

    REQUIRE(received.size() == kBytes);
    REQUIRE(std::ranges::count(received, 'S') == 0);
    REQUIRE(received.back() == '\0');
    REQUIRE(stage.server().wait([&] { return stage.server().messages.size() == 1; }));
    REQUIRE_FALSE(stage.server().seen([&] { return end.closed; }).has_value());
}

TEST_CASE("fabric tcp: only answers from memory that is closed become zeros", "[fabric]") {
    Stage stage(tcp_kind());
    RawPeer peer(stage.address());
    End& end = peer.enter(stage);
    constexpr std::uint32_t kMany = 32U << 20;  // More than the buffers of both sockets.
    constexpr std::uint32_t kFew = 1000;
    Memory& memory = stage.server().memory(std::string(kMany, 'm'));
    Memory& other = stage.server().memory(std::string(kFew, 'o'));
    Memory& source = stage.server().memory(std::string(kFew, 'w'));
    const RemoteMemory opened = stage.server().open(memory, Access::kRead);
    const RemoteMemory opened_other = stage.server().open(other, Access::kRead);
    const auto ask = [&peer](std::uint32_t tag, std::uint32_t length, const RemoteMemory& from) {
        peer.send({.kind = FrameKind::kRead, .length = length, .tag = tag, .key = from.key});
    };
    const auto answered = [&peer](std::uint32_t tag, std::uint32_t length) {
        const std::string header = peer.receive(kFrameHeaderBytes);
        REQUIRE(header == text_of(encode_frame(
                              {.kind = FrameKind::kReadData, .length = length, .tag = tag})));
        return peer.receive(length);
    };
    const auto reads_arrived = [&stage, &peer] {
        const auto before = stage.server().seen([&] { return stage.server().messages.size(); });
        peer.send({.kind = FrameKind::kMessage, .length = 4}, "next");
        return stage.server().wait([&] { return stage.server().messages.size() > before; });
    };
    ask(1, kMany, opened);
    ask(2, kFew, opened);
    REQUIRE(reads_arrived());
    // A write among the answers, which is given up before it begins.
    Op& write = end.write(source, {.address = 1, .key = 2});
    ask(3, kFew, opened_other);
    ask(4, kFew, opened);
    REQUIRE(reads_arrived());
    REQUIRE(give_up(stage, end, write));

    stage.server().close(opened);
    stage.server().run([&] { std::ranges::fill(memory.bytes, 'S'); });

    REQUIRE(std::ranges::count(answered(1, kMany), 'S') == 0);
    CHECK(answered(2, kFew) == std::string(kFew, '\0'));
    CHECK(answered(3, kFew) == std::string(kFew, 'o'));
    CHECK(answered(4, kFew) == std::string(kFew, '\0'));
    REQUIRE(stage.server().wait([&] { return write.done(); }));
    CHECK(write.failed_with(Errc::kCancelled));
    CHECK_FALSE(stage.server().seen([&] { return end.closed; }).has_value());
    stage.server().close(opened_other);
}

TEST_CASE("fabric tcp: memory may be closed when a connection that used it has ended", "[fabric]") {
    const bool by_peer = GENERATE(true, false);
    CAPTURE(by_peer);
    Stage stage(tcp_kind());
    constexpr std::uint32_t kMany = 32U << 20;  // More than the buffers of both sockets.
    Memory& memory = stage.server().memory(std::string(kMany, 'm'));
    const RemoteMemory readable = stage.server().open(memory, Access::kRead);
    const RemoteMemory writable = stage.server().open(memory, Access::kWrite);
    const Pair innocent = stage.connect();
    {
        RawPeer peer(stage.address());
        End& end = peer.enter(stage);
        peer.send({.kind = FrameKind::kRead, .length = kMany, .tag = 1, .key = readable.key});
        peer.send({.kind = FrameKind::kWrite, .length = 100, .key = writable.key}, "begun");
        REQUIRE(stage.server().wait([&] { return memory.bytes.starts_with("begun"); }));
        if (!by_peer) stage.server().run([&] { end.connection.reset(); });
    }

    stage.server().close(readable);
    stage.server().run([&] { stage.server().machine().take_back_memory(writable); });
    stage.server().close(writable);

    round_trip(stage, innocent);
}

TEST_CASE("fabric tcp: memory that is closed during a write is not touched any more", "[fabric]") {
    Stage stage(tcp_kind());
    RawPeer peer(stage.address());
    const End& end = peer.enter(stage);
    Memory& memory = stage.server().memory(std::string(100'000, '-'));
    const RemoteMemory opened = stage.server().open(memory, Access::kWrite);
    peer.send({.kind = FrameKind::kWrite, .length = 100'000, .key = opened.key},
              std::string(50'000, 'x'));
    REQUIRE(stage.server().wait([&] { return memory.bytes[49'999] == 'x'; }));

    stage.server().close(opened);
    std::ranges::fill(memory.bytes, '-');
    peer.send(std::string(50'000, 'x'));
    peer.send({.kind = FrameKind::kMessage, .length = 4}, "next");

    REQUIRE(stage.server().wait([&] { return stage.server().messages.size() == 1; }));
    REQUIRE(memory.bytes == std::string(100'000, '-'));
    REQUIRE_FALSE(stage.server().seen([&] { return end.closed; }).has_value());
}

TEST_CASE("fabric tcp: a peer that is not trusted may send few and short messages", "[fabric]") {
    struct First {
        std::uint32_t count;
        std::uint32_t length;
    };
    const First first =
        GENERATE(First{1, kFirstMessageBytesMax + 1}, First{kFirstMessagesMax + 1, 0});
    const bool trusted = GENERATE(false, true);
    CAPTURE(first.count, first.length, trusted);
    Stage stage(tcp_kind());
    stage.server().run([&] { stage.server().trusts_peers = trusted; });
    RawPeer peer(stage.address());
    const End& end = peer.enter(stage);

    for (std::uint32_t i = 0; i < first.count; ++i) {
        peer.send({.kind = FrameKind::kMessage, .length = first.length},
                  std::string(first.length, 'x'));
    }

    if (trusted) {
        REQUIRE(stage.server().wait([&] { return stage.server().messages.size() == first.count; }));
    } else {
        REQUIRE(stage.server().wait([&] { return end.closed.has_value(); }));
        REQUIRE(end.closed == Errc::kInvalid);
        REQUIRE(stage.server().messages.size() == first.count - 1);
    }
}

// Notes how many messages come in a turn at most.
Task<void> watch_turns(core::Reactor* reactor, const std::vector<std::string>* messages,
                       const bool* is_over, std::size_t* most) {
    while (!*is_over) {
        const std::size_t before = messages->size();
        co_await reactor->yield();
        *most = std::max(*most, messages->size() - before);
    }
}

TEST_CASE("fabric tcp: what peers send at once is delivered in several turns", "[fabric]") {
    constexpr std::size_t kPeers = 20;
    constexpr std::size_t kFrames = 4096;
    Stage stage(tcp_kind());
    Process& server = stage.server();
    std::string flood;
    for (std::size_t i = 0; i < kFrames; ++i) {
        flood += text_of(encode_frame({.kind = FrameKind::kMessage}));
    }
    std::vector<RawPeer> peers;
    for (std::size_t i = 0; i < kPeers; ++i) {
        peers.emplace_back(stage.address());
        peers.back().enter(stage);
    }
    core::Gate gate;
    bool is_over = false;
    std::size_t most = 0;
    server.run([&] {
        core::Reactor& reactor = server.loop().reactor();
        reactor.spawn(gate, watch_turns(&reactor, &server.messages, &is_over, &most));
    });

    server.loop().pause();
    for (RawPeer& each : peers) each.send(flood);
    server.loop().resume();

    REQUIRE(server.wait([&] { return server.messages.size() == kPeers * kFrames; }));
    server.run([&] { is_over = true; });
    REQUIRE(server.wait([&] { return gate.count() == 0; }));
    REQUIRE(most > 0);
    REQUIRE(most <= kFrames / 2);
}

TEST_CASE("fabric tcp: many connections of a principal take no turns from another principal",
          "[fabric]") {
    constexpr std::size_t kGreedy = 19;
    constexpr std::size_t kFrames = 3900;
    Stage stage(tcp_kind());
    Process& server = stage.server();
    const auto flood_of = [](const std::string& body) {
        std::string flood;
        for (std::size_t i = 0; i < kFrames; ++i) {
            flood += text_of(encode_frame({.kind = FrameKind::kMessage, .length = 1})) + body;
        }
        return flood;
    };
    server.run([&] { server.principal_of_next = "greedy"; });
    std::vector<RawPeer> greedy;
    for (std::size_t i = 0; i < kGreedy; ++i) {
        greedy.emplace_back(stage.address());
        greedy.back().enter(stage);
    }
    server.run([&] { server.principal_of_next = "modest"; });
    RawPeer modest(stage.address());
    modest.enter(stage);

    server.loop().pause();
    for (RawPeer& each : greedy) each.send(flood_of("g"));
    modest.send(flood_of("m"));
    server.loop().resume();

    REQUIRE(server.wait([&] { return server.messages.size() == (kGreedy + 1) * kFrames; }));
    const auto last = std::ranges::find(server.messages.rbegin(), server.messages.rend(), "m");
    const auto after_it = static_cast<std::size_t>(last - server.messages.rbegin());
    REQUIRE(after_it > kGreedy * kFrames / 2);
}

TEST_CASE("fabric tcp: incomplete messages that need too much memory end their connections",
          "[fabric]") {
    MachineOptions options;
    options.receive_buffer_count = 4;
    Stage stage(tcp_kind(), options);
    const std::uint32_t length = options.receive_buffer_bytes;
    std::vector<RawPeer> peers;
    std::vector<const End*> ends;
    for (std::size_t i = 0; i < 6; ++i) {
        peers.emplace_back(stage.address());
        ends.push_back(&peers.back().enter(stage));
        peers.back().send({.kind = FrameKind::kMessage, .length = length},
                          std::string(length - 1, 'x'));
        // The next one begins later.
        stage.server().run([] {});
        if (i >= 4) {
            REQUIRE(stage.server().wait([&] { return ends[i - 4]->closed.has_value(); }));
        }
    }

    REQUIRE(ends[0]->closed == Errc::kNoSpace);
    REQUIRE(ends[1]->closed == Errc::kNoSpace);
    for (std::size_t i = 2; i < peers.size(); ++i) peers[i].send("x");
    REQUIRE(stage.server().wait([&] { return stage.server().messages.size() == 4; }));
}

TEST_CASE("fabric tcp: incomplete messages of one principal end none of another's", "[fabric]") {
    MachineOptions options;
    options.receive_buffer_count = 4;
    Stage stage(tcp_kind(), options);
    const std::uint32_t length = options.receive_buffer_bytes;
    const Frame frame{.kind = FrameKind::kMessage, .length = length};
    stage.server().run([&] { stage.server().principal_of_next = "slow"; });
    RawPeer slow(stage.address());
    const End& end = slow.enter(stage);
    slow.send(frame, std::string(length - 1, 's'));
    // The others' messages begin later.
    stage.server().run([&] { stage.server().principal_of_next = "greedy"; });
    std::vector<RawPeer> peers;
    std::vector<const End*> ends;
    for (std::size_t i = 0; i < 20; ++i) {
        peers.emplace_back(stage.address());
        ends.push_back(&peers.back().enter(stage));
        peers.back().send(frame, std::string(length - 1, 'x'));
        stage.server().run([] {});
    }
    const auto ended = [&] {
        return std::ranges::count_if(ends,
                                     [](const End* each) { return each->closed.has_value(); });
    };
    REQUIRE(stage.server().wait([&] { return ended() == 17; }));

    slow.send("s");

    REQUIRE(stage.server().wait([&] { return stage.server().messages.size() == 1; }));
    REQUIRE(stage.server().messages.front() == std::string(length, 's'));
    REQUIRE_FALSE(stage.server().seen([&] { return end.closed; }).has_value());
}

TEST_CASE("fabric tcp: few connections end for one message, however little the others hold",
          "[fabric]") {
    MachineOptions options;
    options.receive_buffer_count = 8;
    Stage stage(tcp_kind(), options);
    const std::uint32_t length = options.receive_buffer_bytes;
    const Frame frame{.kind = FrameKind::kMessage, .length = length};
    const Pair bystander = stage.connect();
    std::vector<RawPeer> peers;
    std::vector<const End*> ends;
    // Returns how many connections have ended.
    const auto begin_message = [&](std::size_t bytes) {
        peers.emplace_back(stage.address());
        ends.push_back(&peers.back().enter(stage));
        peers.back().send(frame, std::string(bytes, 'x'));
        round_trip(stage, bystander);
        return stage.server().seen([&] {
            return std::ranges::count_if(ends,
                                         [](const End* each) { return each->closed.has_value(); });
        });
    };
    for (int i = 0; i < 200; ++i) REQUIRE(begin_message(1) == 0);

    // The 200 hold the oldest messages, one byte each.
    std::vector<std::ptrdiff_t> ended{0};
    while (ended.size() <= 10) ended.push_back(begin_message(length - 1));

    REQUIRE(ended.back() > 0);
    for (std::size_t i = 1; i < ended.size(); ++i) {
        CAPTURE(i);
        REQUIRE(ended[i] - ended[i - 1] <= 2 * std::ptrdiff_t{length} / 256);
    }
}

TEST_CASE("fabric tcp: a peer that sends part of a message disturbs nobody", "[fabric]") {
    Stage stage(tcp_kind());
    std::vector<RawPeer> peers;
    for (int i = 0; i < 50; ++i) {
        peers.emplace_back(stage.address());
        peers.back().enter(stage);
        peers.back().send({.kind = FrameKind::kMessage, .length = 16'000}, "a few bytes");
    }

    round_trip(stage, stage.connect());
}

TEST_CASE("fabric tcp: a peer that reads nothing stops only its own messages", "[fabric]") {
    Stage stage(tcp_kind());
    RawPeer peer(stage.address());
    End& end = peer.enter(stage);
    Memory& memory = stage.server().memory(std::string(16'000, 'x'));
    // More than the buffers of both sockets.
    for (int i = 0; i < 2000; ++i) end.send(memory);
    stage.server().run([] {});
    REQUIRE(stage.server().seen([&] { return !end.idle(); }));

    round_trip(stage, stage.connect());

    end.close();
    REQUIRE(stage.server().wait([&] { return end.idle(); }));
    REQUIRE(
        std::ranges::any_of(end.ops, [](const Op& op) { return op.failed_with(Errc::kClosed); }));
}

}  // namespace fopd::fabric::testing::tcp_test

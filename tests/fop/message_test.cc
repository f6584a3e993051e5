// Goal: what is written is read back; a fault of one request is that request's alone. Method:
// messages of the writer, and such as a newer peer would write.
#include "fop/message.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "core/crc32c.h"
#include "core/random.h"
#include "fop/fop_type.h"
#include "tests/fop/message_bytes.h"
#include "tests/fop/reread.h"

namespace fopd::fop::message_testing {

// -- what was written --

TEST_CASE("fop message: the fields of the prefix come back", "[fop]") {
    const auto kind_and_message = std::array{
        std::pair{MessageKind::kRequests, sealed(sample_request(1))},
        std::pair{MessageKind::kReplies, sealed(sample_reply(1))},
    };
    for (const auto& [kind, message] : kind_and_message) {
        const auto prefix = read_prefix(message);
        REQUIRE(prefix.has_value());
        REQUIRE(prefix->kind == kind);
        REQUIRE(prefix->minor == kMinorVersion);
        REQUIRE(prefix->message_bytes == message.size());
        REQUIRE(prefix->envelope_bytes == message.size() - kPrefixBytes);
    }

    const auto example = read_prefix(example_message());
    REQUIRE(example.has_value());
    REQUIRE(example->session == 0x0102030405060708);
    REQUIRE(example->sequence == 7);
    REQUIRE(example->message_credits == 2);
    REQUIRE(example->fop_credits == 5);
    REQUIRE(example->acknowledged == 41);
}

TEST_CASE("fop message: requests of every type come back with their header", "[fop]") {
    std::vector<std::byte> buffer(8192);
    MessageWriter writer;
    writer.start_requests(buffer, {.job = "j", .pool = "p", .user = "u", .priority = 200});
    for (const FopType& type : kFopTypes) REQUIRE(writer.add(sample_request(type.number)));
    REQUIRE(writer.count() == kFopTypes.size());
    buffer.resize(writer.seal({}));

    REQUIRE(read_prefix(buffer).has_value());
    const auto view = read_requests(buffer);
    REQUIRE(view.has_value());
    REQUIRE(view->header().job == "j");
    REQUIRE(view->header().pool == "p");
    REQUIRE(view->header().user == "u");
    REQUIRE(view->header().priority == 200);
    REQUIRE(view->count() == kFopTypes.size());
    auto type = kFopTypes.begin();
    for (const Request read : *view) {
        CAPTURE(type->name);
        const Request written = sample_request((type++)->number);
        REQUIRE(read.fault == Status::kDone);
        REQUIRE(read.id == written.id);
        REQUIRE(read.type == written.type);
        REQUIRE(read.timeout == written.timeout);
        REQUIRE(std::ranges::equal(read.token, written.token));
        REQUIRE(std::ranges::equal(read.payload, written.payload));
        REQUIRE(payload_intact(read));
        REQUIRE(read.body == written.body);
    }
}

TEST_CASE("fop message: replies of every type come back", "[fop]") {
    std::vector<std::byte> buffer(8192);
    MessageWriter writer;
    writer.start_replies(buffer);
    for (const FopType& type : kFopTypes) REQUIRE(writer.add(sample_reply(type.number)));
    REQUIRE(writer.add(Reply{.id = 7, .status = Status::kNoSpace, .words = "the pool is full"}));
    buffer.resize(writer.seal({}));

    REQUIRE(read_prefix(buffer).has_value());
    const auto view = read_replies(buffer);
    REQUIRE(view.has_value());
    REQUIRE(view->count() == kFopTypes.size() + 1);
    for (std::size_t i = 0; i < kFopTypes.size(); ++i) {
        CAPTURE(kFopTypes[i].name);
        const Reply written = sample_reply(kFopTypes[i].number);
        const Reply read = (*view)[i];
        REQUIRE(read.id == written.id);
        REQUIRE(read.status == Status::kDone);
        REQUIRE(read.words.empty());
        REQUIRE(std::ranges::equal(read.payload, written.payload));
        REQUIRE(payload_intact(read));
        REQUIRE(read.body == written.body);
    }
    const Reply last = (*view)[kFopTypes.size()];
    REQUIRE(last.id == 7);
    REQUIRE(last.status == Status::kNoSpace);
    REQUIRE(last.words == "the pool is full");
    REQUIRE(last.body == ReplyBody{});
}

TEST_CASE("fop message: control messages come back", "[fop]") {
    std::vector<std::byte> buffer(kControlBytesMax);
    std::array<std::uint64_t, kCancelsMax> cancelled{};
    for (std::size_t i = 0; i < cancelled.size(); ++i) cancelled[i] = ~std::uint64_t{i};
    MessageWriter writer;
    const std::string words(kWordsBytesMax, 'w');
    buffer.resize(writer.write_control(buffer, {.sequence = 1},
                                       {.ping = 1,
                                        .pong = ~0ULL,
                                        .surrender_messages = 2,
                                        .surrendered_messages = 3,
                                        .surrender_fops = 4,
                                        .surrendered_fops = 5,
                                        .cancel = cancelled,
                                        .bye = Bye::kDraining,
                                        .words = words}));

    const auto prefix = read_prefix(buffer);
    REQUIRE(prefix.has_value());
    REQUIRE(prefix->kind == MessageKind::kControl);
    REQUIRE(prefix->sequence == 1);
    const auto control = read_control(buffer);
    REQUIRE(control.has_value());
    REQUIRE(control->ping == 1);
    REQUIRE(control->pong == ~0ULL);
    REQUIRE(control->surrender_messages == 2);
    REQUIRE(control->surrendered_messages == 3);
    REQUIRE(control->surrender_fops == 4);
    REQUIRE(control->surrendered_fops == 5);
    REQUIRE(std::ranges::equal(control->cancel, cancelled));
    REQUIRE(control->bye == Bye::kDraining);
    REQUIRE(control->words == words);
    REQUIRE(control->let_go.empty());
}

TEST_CASE("fop message: cancel and let_go are read back together", "[fop]") {
    constexpr std::array<std::uint64_t, 2> kCancelled{1, 2};
    constexpr std::array<std::uint64_t, 3> kLetGo{3, 4, ~0ULL};
    std::vector<std::byte> buffer(kControlBytesMax);
    MessageWriter writer;
    buffer.resize(writer.write_control(buffer, {}, {.cancel = kCancelled, .let_go = kLetGo}));

    const auto control = read_control(buffer);

    REQUIRE(control.has_value());
    REQUIRE(std::ranges::equal(control->cancel, kCancelled));
    REQUIRE(std::ranges::equal(control->let_go, kLetGo));
}

TEST_CASE("fop message: a handshake comes back", "[fop]") {
    std::array<std::byte, 128> buffer{};
    const auto hello = bytes_of("odd length");
    const std::size_t size_bytes = write_handshake(buffer, {.session = 3}, hello);
    const auto message = std::span(buffer).first(size_bytes);

    const auto prefix = read_prefix(message);
    REQUIRE(prefix.has_value());
    REQUIRE(prefix->kind == MessageKind::kHandshake);
    REQUIRE(prefix->session == 3);
    const auto envelope = read_handshake(message);
    REQUIRE(envelope.has_value());
    REQUIRE(std::ranges::equal(*envelope, hello));
}

TEST_CASE("fop message: the MAC covers the prefix and the envelope, and starts as zero", "[fop]") {
    auto message = example_message();
    const auto prefix = read_prefix(message);
    REQUIRE(prefix.has_value());
    REQUIRE(std::ranges::all_of(read_mac(message), [](std::byte b) { return b == std::byte{0}; }));

    const MacInput covered = mac_input(message);
    REQUIRE(covered.prefix.data() == message.data());
    REQUIRE(covered.prefix.size() == kPrefixBytes - kMacBytes);
    REQUIRE(covered.envelope.size() == prefix->envelope_bytes);
    REQUIRE(covered.envelope.data() + covered.envelope.size() == message.data() + message.size());

    std::array<std::byte, kMacBytes> mac{};
    mac.fill(std::byte{0xaa});
    write_mac(message, mac);
    REQUIRE(std::ranges::equal(read_mac(message), mac));
    REQUIRE(message[kPrefixBytes - kMacBytes] == std::byte{0xaa});
    REQUIRE(message[kPrefixBytes - kMacBytes - 1] == std::byte{0});
    REQUIRE(read_requests(message).has_value());
}

TEST_CASE("fop message: an added request may change afterwards", "[fop]") {
    std::vector<std::byte> buffer(8192);
    auto payload = bytes_of("payload");
    auto token = bytes_of("token");
    std::string job = "job";
    MessageWriter writer;
    writer.start_requests(buffer, {.job = job});
    Request request = echo(1, payload);
    request.token = token;
    REQUIRE(writer.add(request));
    std::ranges::fill(payload, std::byte{0});
    std::ranges::fill(token, std::byte{0});
    job.assign("xxx");
    buffer.resize(writer.seal({}));

    const Request read = only_request(buffer);
    REQUIRE(std::ranges::equal(read.payload, bytes_of("payload")));
    REQUIRE(std::ranges::equal(read.token, bytes_of("token")));
    REQUIRE(payload_intact(read));
    REQUIRE(read_requests(buffer)->header().job == "job");
}

TEST_CASE("fop message: a writer makes one message after the other", "[fop]") {
    MessageWriter writer;
    std::vector<std::byte> first(8192);
    writer.start_requests(first, {.job = "first"});
    REQUIRE(writer.add(sample_request(3)));
    first.resize(writer.seal({}));
    std::vector<std::byte> forgotten(8192);
    writer.start_replies(forgotten);
    REQUIRE(writer.add(sample_reply(2)));
    std::vector<std::byte> second(8192);
    writer.start_requests(second, {});
    REQUIRE(writer.empty());
    REQUIRE(writer.add(sample_request(1)));
    second.resize(writer.seal({}));

    REQUIRE(read_requests(first)->header().job == "first");
    REQUIRE(only_request(second).id == sample_request(1).id);
    REQUIRE(read_requests(second)->header().job.empty());
    REQUIRE(second == sealed(sample_request(1)));
}

TEST_CASE("fop message: timeouts round up, and the longest are cut", "[fop]") {
    Request request = sample_request(1);
    const auto read_back = [&](Duration timeout) {
        request.timeout = timeout;
        return only_request(sealed(request)).timeout;
    };
    REQUIRE(read_back(0ns) == 0ns);
    REQUIRE(read_back(1ns) == 1us);
    REQUIRE(read_back(1001ns) == 2us);
    REQUIRE(read_back(24h) == 24h);

    request.timeout = std::chrono::microseconds(0x0001020304050607);
    auto message = sealed(request);
    replace<std::uint64_t>(message, 0x0001020304050607, ~0ULL);
    const Duration longest = only_request(message).timeout;
    REQUIRE(longest > 24h * 365 * 290);
    REQUIRE(longest <= Duration::max());
}

namespace {

std::string words_read_back(const std::string& words) {
    const auto message = sealed(Reply{.status = Status::kBusy, .words = words});
    const auto view = read_replies(message);
    REQUIRE(view.has_value());
    return std::string((*view)[0].words);
}

}  // namespace

TEST_CASE("fop message: a reason that is too long is cut behind a word", "[fop]") {
    const std::string head = "its disk is missing: " + std::string(kWordsBytesMax - 30, 'x');

    CHECK(words_read_back(head + " in the middle of") == head + " in the");
    CHECK(words_read_back(head + " of a word") == head + " of a");
    CHECK(words_read_back(head + " of a wor") == head + " of a wor");
    CHECK(words_read_back(head + "         word") == head);
    CHECK(words_read_back(head + "         ") == head + "         ");
    CHECK(words_read_back("a " + std::string(2 * kWordsBytesMax, 'x')) ==
          "a " + std::string(kWordsBytesMax - 2, 'x'));
}

TEST_CASE("fop message: words without blanks are cut between characters", "[fop]") {
    const auto read_back = &words_read_back;
    const std::string full(kWordsBytesMax, 'x');
    REQUIRE(read_back(full) == full);
    REQUIRE(read_back(full + "y") == full);
    const std::string nearly(kWordsBytesMax - 2, 'x');
    REQUIRE(read_back(nearly + "\u20ac" + "and more") == nearly);
    REQUIRE(read_back(nearly + "\u00e9" + "and more") == nearly + "\u00e9");
}

// -- how much fits --

TEST_CASE("fop message: no more than kFopsMax fit, and the next changes nothing", "[fop]") {
    std::vector<std::byte> buffer(64U << 10);
    MessageWriter writer;
    writer.start_replies(buffer);
    for (std::size_t i = 0; i < kFopsMax; ++i) {
        REQUIRE(writer.add(Reply{.id = i, .body = PingReply{}}));
    }
    REQUIRE_FALSE(writer.add(Reply{.id = kFopsMax, .body = PingReply{}}));
    REQUIRE(writer.count() == kFopsMax);
    buffer.resize(writer.seal({}));

    const auto view = read_replies(buffer);
    REQUIRE(view.has_value());
    REQUIRE(view->count() == kFopsMax);
    for (std::size_t i = 0; i < kFopsMax; ++i) REQUIRE((*view)[i].id == i);
}

TEST_CASE("fop message: a request that does not fit leaves the message unchanged", "[fop]") {
    core::Random random(4);
    std::vector<std::byte> payload(4096);
    for (std::byte& each : payload) each = static_cast<std::byte>(random.below(256));
    const std::span all(payload);
    for (std::size_t capacity = kRequestOverheadMax; capacity < 6000;
         capacity += 1 + capacity % 13) {
        CAPTURE(capacity);
        // Twice the same, but for what was refused in between.
        std::array<std::vector<std::byte>, 2> buffers;
        for (auto& buffer : buffers) {
            const bool with_refused = &buffer == &buffers[0];
            core::Random choice(capacity);
            buffer.resize(capacity);
            MessageWriter writer;
            writer.start_requests(buffer, {.job = "job"});
            for (std::uint64_t id = 0;; ++id) {
                const auto type = kFopTypes[choice.below(kFopTypes.size())].number;
                Request request = sample_request(type);
                request.id = id;
                if (type == kEcho) request.payload = all.first(choice.below(100));
                if (with_refused) {
                    Request large = echo(~id, all.first(std::min(capacity, all.size())));
                    if (capacity <= all.size()) REQUIRE_FALSE(writer.add(large));
                }
                if (!writer.add(request)) break;
            }
            REQUIRE(writer.count() > 0);
            buffer.resize(writer.seal({}));
            REQUIRE(reread(buffer));
        }
        REQUIRE(buffers[0] == buffers[1]);
    }
}

TEST_CASE("fop message: an empty message takes what the overhead leaves", "[fop]") {
    const std::string text(kHeaderTextBytesMax, 't');
    const std::vector<std::byte> token(kTokenBytesMax);
    for (std::size_t capacity = 16U << 10; capacity < (16U << 10) + 17; ++capacity) {
        CAPTURE(capacity);
        std::vector<std::byte> buffer(capacity);
        const std::vector<std::byte> payload(capacity);
        MessageWriter writer;
        writer.start_requests(buffer, {.job = text, .pool = text, .user = text});
        Request request{.type = 3, .timeout = 1s, .token = token, .body = BulkEcho{}};
        request.payload = std::span(payload).first(capacity - kRequestOverheadMax);
        REQUIRE(writer.add(request));
        REQUIRE(reread(std::span(buffer).first(writer.seal({}))));

        writer.start_replies(buffer);
        Reply reply{.words = text, .body = BulkEchoReply{.bytes = 1, .crc = 1}};
        reply.payload = std::span(payload).first(capacity - kReplyOverheadMax);
        REQUIRE(writer.add(reply));
        REQUIRE(reread(std::span(buffer).first(writer.seal({}))));
    }
}

TEST_CASE("fop message: eight payloads of 4 KiB fit into 36 KiB", "[fop]") {
    std::vector<std::byte> buffer(36U << 10);
    const std::vector<std::byte> payload(4096);
    MessageWriter writer;
    writer.start_replies(buffer);
    for (std::uint64_t id = 0; id < 8; ++id) {
        REQUIRE(writer.add(Reply{.id = id, .payload = payload, .body = EchoReply{}}));
    }
    REQUIRE(writer.seal({}) <= buffer.size());
}

// -- what one request alone is answered --

TEST_CASE("fop message: an unknown type of fop is that request's fault alone", "[fop]") {
    std::vector<std::byte> buffer(8192);
    MessageWriter writer;
    writer.start_requests(buffer, {});
    REQUIRE(writer.add(sample_request(1)));
    REQUIRE(writer.add(Request{.id = 77, .type = 0xfff0, .payload = sample_request(2).payload}));
    REQUIRE(writer.add(sample_request(2)));
    buffer.resize(writer.seal({}));

    const auto view = read_requests(buffer);
    REQUIRE(view.has_value());
    REQUIRE((*view)[0].fault == Status::kDone);
    REQUIRE((*view)[1].fault == Status::kUnknownFop);
    REQUIRE((*view)[1].id == 77);
    REQUIRE((*view)[1].body == RequestBody{});
    REQUIRE((*view)[2].fault == Status::kDone);
}

TEST_CASE("fop message: an unknown body is that request's fault alone", "[fop]") {
    // The body's number in the union is the only byte of its value in this envelope.
    auto message = sealed(sample_request(3));
    std::size_t found = 0;
    for (std::size_t at = kPrefixBytes; at < message.size(); ++at) {
        auto changed = message;
        if (changed[at] != std::byte{3}) continue;
        changed[at] = std::byte{200};
        if (is_message_refused(changed)) continue;
        const Request request = only_request(changed);
        if (request.type != 3 || request.fault != Status::kUnknownFop) continue;
        REQUIRE(request.id == sample_request(3).id);
        REQUIRE(request.body == RequestBody{});
        ++found;
    }
    REQUIRE(found == 1);
}

TEST_CASE("fop message: parts that do not fit the type are that request's fault", "[fop]") {
    const auto payload = bytes_of("payload");
    const auto fault = [](const Request& request) { return only_request(sealed(request)).fault; };
    REQUIRE(fault({.id = 1, .type = 1, .body = Echo{}}) == Status::kMalformed);
    REQUIRE(fault({.id = 1, .type = 1}) == Status::kMalformed);
    REQUIRE(fault({.id = 1, .type = 1, .payload = payload, .body = Ping{}}) == Status::kMalformed);
    REQUIRE(fault({.id = 1, .type = 3, .payload = payload, .body = BulkEcho{}}) ==
            Status::kMalformed);
    REQUIRE(fault({.id = 1, .type = 2, .payload = payload, .body = Echo{}}) == Status::kDone);
    REQUIRE(fault({.id = 1, .type = 0, .body = Ping{}}) == Status::kUnknownFop);

    // The length of the first descriptor.
    auto message = sealed(sample_request(3));
    std::size_t shortened = 0;
    for (std::size_t at = kPrefixBytes; at + 4 <= message.size(); at += 4) {
        if (load_little<std::uint32_t>(message.data() + at) != sizeof(SealedDescriptor)) continue;
        auto changed = message;
        set<std::uint32_t>(changed, at, sizeof(SealedDescriptor) - 1);
        REQUIRE(only_request(changed).fault == Status::kMalformed);
        ++shortened;
    }
    REQUIRE(shortened == 2);
}

// 0 stands for no request, wherever one is remembered by its number.
TEST_CASE("fop message: a request without a number is malformed", "[fop]") {
    const Request request = only_request(sealed(Request{.type = 1, .body = Ping{}}));
    REQUIRE(request.fault == Status::kMalformed);
    REQUIRE(request.fault_words == "a request has no number");
    REQUIRE(only_request(sealed(Request{.id = 1, .type = 1, .body = Ping{}})).fault ==
            Status::kDone);
}

TEST_CASE("fop message: a status of a newer peer reads as an internal error", "[fop]") {
    // NOLINTNEXTLINE(clang-analyzer-optin.core.EnumCastOutOfRange): what a newer peer would send.
    const auto message = sealed(Reply{.status = static_cast<Status>(999)});
    REQUIRE((*read_replies(message))[0].status == Status::kInternal);
}

TEST_CASE("fop message: a newer reason to leave is a reason", "[fop]") {
    std::vector<std::byte> buffer(kControlBytesMax);
    MessageWriter writer;
    // NOLINTNEXTLINE(clang-analyzer-optin.core.EnumCastOutOfRange): what a newer peer would send.
    buffer.resize(writer.write_control(buffer, {}, {.bye = static_cast<Bye>(17)}));
    REQUIRE(read_control(buffer)->bye == Bye::kOther);
}

TEST_CASE("fop message: a changed payload is found by its checksum, not by the reader", "[fop]") {
    auto message = sealed(echo(1, bytes_of("payload")));
    message[kPrefixBytes] ^= std::byte{1};
    REQUIRE_FALSE(payload_intact(only_request(message)));

    Request with_crc = echo(1, bytes_of(""));
    const auto payload = bytes_of("payload");
    with_crc.payload = payload;
    with_crc.payload_crc = core::crc32c(payload) + 1;
    REQUIRE_FALSE(payload_intact(only_request(sealed(with_crc))));
    with_crc.payload_crc = core::crc32c(payload);
    REQUIRE(payload_intact(only_request(sealed(with_crc))));
}

}  // namespace fopd::fop::message_testing

// Goal: what is no message is refused, or harmless. Method: messages of the writer, damaged at
// every byte, cut at every length, and taken apart by hand where a lie is to be well-formed.
#include <algorithm>
#include <array>
#include <vector>

#include "core/random.h"
#include "fop/fop_type.h"
#include "fop/message.h"
#include "tests/fop/message_bytes.h"
#include "tests/fop/reread.h"

namespace fopd::fop::message_testing {

// -- what is refused --

TEST_CASE("fop message: a newer minor version may use the reserved bytes", "[fop]") {
    auto message = example_message();
    message[7] = std::byte{1};
    REQUIRE(is_message_refused(message));
    message[5] = static_cast<std::byte>(kMinorVersion + 1);
    set<std::uint32_t>(message, 36, 0xffffffff);
    REQUIRE_FALSE(is_message_refused(message));
    REQUIRE(read_prefix(message)->minor == kMinorVersion + 1);
}

TEST_CASE("fop message: another major version is unsupported, all else invalid", "[fop]") {
    const auto code_after = [](std::size_t offset, std::byte value) {
        auto message = example_message();
        message[offset] = value;
        const auto prefix = read_prefix(message);
        REQUIRE_FALSE(prefix.has_value());
        return prefix.error().code;
    };
    REQUIRE(code_after(4, std::byte{1}) == Errc::kUnsupported);
    REQUIRE(code_after(4, std::byte{0}) == Errc::kUnsupported);
    REQUIRE(code_after(0, std::byte{'x'}) == Errc::kInvalid);
    REQUIRE(code_after(6, std::byte{0}) == Errc::kInvalid);
    REQUIRE(code_after(6, std::byte{5}) == Errc::kInvalid);
    REQUIRE(code_after(7, std::byte{1}) == Errc::kInvalid);
    REQUIRE(code_after(39, std::byte{1}) == Errc::kInvalid);
}

TEST_CASE("fop message: lengths in the prefix must add up", "[fop]") {
    const auto message = example_message();
    const auto size_bytes = static_cast<std::uint32_t>(message.size());
    const auto envelope_bytes = read_prefix(message)->envelope_bytes;
    const auto refused_with = [&](std::size_t offset, std::uint32_t value) {
        auto changed = message;
        set(changed, offset, value);
        return !read_prefix(changed).has_value();
    };
    for (const std::uint32_t bytes : {0U, 63U, size_bytes - 1, size_bytes + 1, ~0U}) {
        REQUIRE(refused_with(24, bytes));
    }
    for (const std::uint32_t bytes :
         {0U, envelope_bytes - 1, envelope_bytes + 4, size_bytes - 63, size_bytes, ~0U, ~7U}) {
        REQUIRE(refused_with(28, bytes));
    }
}

TEST_CASE("fop message: payloads must lie one behind the other", "[fop]") {
    // Offsets and lengths that occur nowhere else in the envelope.
    const std::vector<std::byte> first(0x155, std::byte{0xee});
    const std::vector<std::byte> second(0x266, std::byte{0xee});
    constexpr std::uint32_t kFirst = kPrefixBytes;
    constexpr std::uint32_t kSecond = 0x198;
    std::vector<std::byte> message(4096);
    MessageWriter writer;
    writer.start_requests(message, {});
    REQUIRE(writer.add(echo(0x77777777, first)));
    REQUIRE(writer.add(echo(0x77777777, second)));
    message.resize(writer.seal({}));
    REQUIRE_FALSE(is_message_refused(message));
    const auto end = static_cast<std::uint32_t>(message.size());

    const auto refused_after = [&](std::uint32_t from, std::uint32_t to) {
        auto changed = message;
        replace(changed, from, to);
        return is_message_refused(changed);
    };
    for (const std::uint32_t offset :
         {0U, 8U, kFirst, kSecond - 8, kSecond - 1, kSecond + 1, kSecond + 8, end - 8, end, ~7U}) {
        CAPTURE(offset);
        REQUIRE(refused_after(kSecond, offset));
    }
    for (const std::uint32_t bytes : {0U, 1U, 0x150U, 0x159U, 0x155U + 0x266U, end, ~0U}) {
        CAPTURE(bytes);
        REQUIRE(refused_after(0x155U, bytes));
    }
    for (const std::uint32_t bytes : {0U, 1U, 0x260U, 0x269U, end, ~0U - kSecond, ~0U}) {
        CAPTURE(bytes);
        REQUIRE(refused_after(0x266U, bytes));
    }
}

TEST_CASE("fop message: numbers that are handed out lie where numbers may", "[fop]") {
    // Read four bytes further on, this list is one as well.
    constexpr std::array<std::uint64_t, 3> kCancelled{1, 1, 1};
    std::vector<std::byte> message(kControlBytesMax);
    MessageWriter writer;
    message.resize(writer.write_control(message, {}, {.cancel = kCancelled}));
    for (std::size_t at = kPrefixBytes; at + 4 <= message.size(); at += 4) {
        CAPTURE(at);
        auto changed = message;
        set(changed, at, load_little<std::uint32_t>(changed.data() + at) + 4);
        const auto control = read_control(changed);
        if (!control) continue;
        REQUIRE(reinterpret_cast<std::uintptr_t>(control->cancel.data()) % 8 == 0);
    }
}

TEST_CASE("fop message: padding must be zero", "[fop]") {
    const auto hello = bytes_of("hello");
    std::vector<std::byte> message(4096);
    MessageWriter writer;
    writer.start_requests(message, {});
    REQUIRE(writer.add(echo(1, hello)));
    REQUIRE(writer.add(echo(2, hello)));
    message.resize(writer.seal({}));

    for (const std::size_t payload : {kPrefixBytes, kPrefixBytes + 8}) {
        for (std::size_t at = payload + hello.size(); at < payload + 8; ++at) {
            auto changed = message;
            changed[at] = std::byte{1};
            CAPTURE(at);
            REQUIRE(is_message_refused(changed));
        }
    }
}

TEST_CASE("fop message: control and handshake have no payloads", "[fop]") {
    for (const SampleMessage& sample : sample_messages()) {
        const auto kind = read_prefix(sample.bytes)->kind;
        if (kind != MessageKind::kControl && kind != MessageKind::kHandshake) continue;
        CAPTURE(sample.name);
        auto longer = sample.bytes;
        longer.insert(longer.begin() + kPrefixBytes, 8, std::byte{0});
        set(longer, 24, static_cast<std::uint32_t>(longer.size()));
        REQUIRE(read_prefix(longer).has_value());
        REQUIRE(is_message_refused(longer));
    }
}

TEST_CASE("fop message: more than the limits is refused", "[fop]") {
    // The writer would not: the length is changed afterwards.
    const std::string text(kWordsBytesMax, 'w');
    auto reply = sealed(Reply{.status = Status::kBusy, .words = text});
    REQUIRE_FALSE(is_message_refused(reply));
    // One character more, over the zero behind the text; another zero follows as padding.
    replace<std::uint32_t>(reply, kWordsBytesMax, kWordsBytesMax + 1);
    REQUIRE(is_message_refused(reply));

    const std::vector<std::byte> token(kTokenBytesMax);
    auto request = sealed(Request{.id = 5, .type = 1, .token = token, .body = Ping{}},
                          {.job = "lies behind the token"});
    REQUIRE(only_request(request).fault == Status::kDone);
    replace<std::uint32_t>(request, kTokenBytesMax, kTokenBytesMax + 1);
    REQUIRE(only_request(request).fault == Status::kMalformed);
    REQUIRE(only_request(request).id == 5);
}

// -- any bytes --

TEST_CASE("fop message: samples are messages, and stay the same when written anew", "[fop]") {
    for (const SampleMessage& sample : sample_messages()) {
        CAPTURE(sample.name);
        REQUIRE(reread(sample.bytes));
    }
}

TEST_CASE("fop message: a message cut anywhere is refused", "[fop]") {
    for (const SampleMessage& sample : sample_messages()) {
        CAPTURE(sample.name);
        for (std::size_t length = 0; length < sample.bytes.size(); length += step_through(sample)) {
            CAPTURE(length);
            // A vector of its own, so that a look beyond its end is seen.
            std::vector<std::byte> cut(sample.bytes.begin(),
                                       sample.bytes.begin() + static_cast<std::ptrdiff_t>(length));
            REQUIRE(is_message_refused(cut));
            if (length < kPrefixBytes) continue;
            // And where the prefix tells no lie about it.
            set(cut, 24, static_cast<std::uint32_t>(length));
            static_cast<void>(reread(cut));
            set(cut, 28, static_cast<std::uint32_t>(length - kPrefixBytes));
            static_cast<void>(reread(cut));
        }
    }
}

TEST_CASE("fop message: any value of any byte is decoded safely", "[fop]") {
    for (const SampleMessage& sample : sample_messages()) {
        CAPTURE(sample.name);
        auto message = sample.bytes;
        for (std::size_t at = 0; at < message.size(); at += step_through(sample)) {
            const std::byte before = message[at];
            for (const unsigned value : {0x00U, 0x01U, 0x7fU, 0x80U, 0xffU}) {
                message[at] = static_cast<std::byte>(value);
                static_cast<void>(reread(message));
            }
            for (unsigned bit = 0; bit < 8; ++bit) {
                message[at] = before ^ static_cast<std::byte>(1U << bit);
                static_cast<void>(reread(message));
            }
            message[at] = before;
        }
        REQUIRE(reread(message));
    }
}

TEST_CASE("fop message: several wrong words at once do no harm", "[fop]") {
    core::Random random(5);
    const auto samples = sample_messages();
    std::size_t readable = 0;
    for (int round = 0; round < 20'000; ++round) {
        auto message = samples[random.below(samples.size())].bytes;
        const std::size_t changes = 1 + random.below(4);
        for (std::size_t i = 0; i < changes; ++i) {
            const std::size_t word = kPrefixBytes / 4 + random.below(message.size() / 4 - 16);
            set(message, word * 4,
                static_cast<std::uint32_t>(random.below(2) == 0 ? random.below(64)
                                                                : random.below(1ULL << 32)));
        }
        readable += reread(message) ? 1 : 0;
    }
    REQUIRE(readable > 0);
}

TEST_CASE("fop message: random envelopes do no harm", "[fop]") {
    core::Random random(6);
    std::size_t refused = 0;
    for (int round = 0; round < 20'000; ++round) {
        std::vector<std::byte> message(kPrefixBytes + 8 * (1 + random.below(40)));
        for (std::byte& each : message) each = static_cast<std::byte>(random.below(4));
        const auto example = example_message();
        std::ranges::copy(std::span(example).first(kPrefixBytes), message.begin());
        message[6] = static_cast<std::byte>(random.below(6));
        set(message, 24, static_cast<std::uint32_t>(message.size()));
        set(message, 28, static_cast<std::uint32_t>(message.size() - kPrefixBytes));
        refused += reread(message) ? 0 : 1;
    }
    REQUIRE(refused > 0);
}

}  // namespace fopd::fop::message_testing

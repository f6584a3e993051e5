#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/byte_order.h"
#include "fop/message_reader.h"
#include "fop/message_writer.h"
#include "fop/prefix.h"
#include "tests/catch.h"
#include "tests/fop/samples.h"

// Messages that are written in one line, changed by hand, and read.
namespace fopd::fop::message_testing {

inline constexpr std::uint16_t kEcho = 2;

inline std::vector<std::byte> bytes_of(std::string_view text) {
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
}

inline Request echo(std::uint64_t id, std::span<const std::byte> payload) {
    return {.id = id, .type = kEcho, .payload = payload, .body = Echo{}};
}

// One request of a type, sealed.
inline std::vector<std::byte> sealed(const Request& request, const RequestHeader& header = {}) {
    std::vector<std::byte> buffer(8192);
    MessageWriter writer;
    writer.start_requests(buffer, header);
    REQUIRE(writer.add(request));
    buffer.resize(writer.seal({}));
    return buffer;
}

inline std::vector<std::byte> sealed(const Reply& reply) {
    std::vector<std::byte> buffer(8192);
    MessageWriter writer;
    writer.start_replies(buffer);
    REQUIRE(writer.add(reply));
    buffer.resize(writer.seal({}));
    return buffer;
}

inline Request only_request(std::span<const std::byte> message) {
    REQUIRE(read_prefix(message).has_value());
    const auto view = read_requests(message);
    REQUIRE(view.has_value());
    REQUIRE(view->count() == 1);
    return (*view)[0];
}

// Replaces a number in `message` that is there once at a multiple of its size.
template <typename T>
void replace(std::vector<std::byte>& message, T from, T to) {
    std::size_t found = 0;
    for (std::size_t at = kPrefixBytes; at + sizeof(T) <= message.size(); at += sizeof(T)) {
        if (load_little<T>(message.data() + at) != from) continue;
        store_little(message.data() + at, to);
        ++found;
    }
    REQUIRE(found == 1);
}

template <typename T>
void set(std::vector<std::byte>& message, std::size_t offset, T value) {
    store_little(message.data() + offset, value);
}

// What has requests of every type is walked through in steps that meet every byte of a word: each
// type has a message of its own.
inline std::size_t step_through(const SampleMessage& sample) {
    return sample.bytes.size() > 1500 ? 13 : 1;
}

inline bool is_message_refused(std::span<const std::byte> message) {
    const auto prefix = read_prefix(message);
    if (!prefix) return true;
    switch (prefix->kind) {
        case MessageKind::kHandshake: return !read_handshake(message);
        case MessageKind::kRequests: return !read_requests(message);
        case MessageKind::kReplies: return !read_replies(message);
        case MessageKind::kControl: return !read_control(message);
    }
    return true;
}

}  // namespace fopd::fop::message_testing

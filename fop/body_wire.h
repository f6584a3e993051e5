#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "fop/bodies.h"
#include "fop/wire_generated.h"

// The bodies as encoded in the envelope; used only by the message writer and readers.
namespace fopd::fop {

// -- writing --

inline flatbuffers::Offset<flatbuffers::String> wire_text(flatbuffers::FlatBufferBuilder& builder,
                                                          std::string_view text) {
    if (text.empty()) return 0;
    return builder.CreateString(text.data(), text.size());
}

inline flatbuffers::Offset<flatbuffers::Vector<std::uint8_t>> wire_bytes(
    flatbuffers::FlatBufferBuilder& builder, std::span<const std::byte> bytes) {
    if (bytes.empty()) return 0;
    return builder.CreateVector(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
}

// The most bytes that a text or list takes, including its length, a text's final zero, and
// alignment.
constexpr std::size_t list_bytes_max(std::size_t bytes) {
    return bytes + 12;
}

// The most bytes that a body takes, including alignment and its vtable, but without borrowed texts
// and lists; the functions below return the size of those.
inline constexpr std::size_t kBodyBytesMax = 256;
std::size_t borrowed_wire_bytes_max(const RequestBody& body);
std::size_t borrowed_wire_bytes_max(const ReplyBody& body);

flatbuffers::Offset<void> write_body(flatbuffers::FlatBufferBuilder& builder,
                                     const RequestBody& body);
flatbuffers::Offset<void> write_body(flatbuffers::FlatBufferBuilder& builder,
                                     const ReplyBody& body);

// -- reading verified messages; the results borrow from the envelope --

inline std::string_view text_of(const flatbuffers::String* string) {
    return string == nullptr ? std::string_view()
                             : std::string_view(string->c_str(), string->size());
}

inline std::span<const std::byte> bytes_of(const flatbuffers::Vector<std::uint8_t>* list) {
    if (list == nullptr) return {};
    return std::as_bytes(std::span(list->data(), list->size()));
}

// Returns false if the body of a known type is malformed.
bool read_body(const wire::Request& request, RequestBody& body);
// A body that is missing or too large is left out.
ReplyBody read_body(const wire::Reply& reply);

}  // namespace fopd::fop

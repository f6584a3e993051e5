#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "fop/bodies.h"

// The texts and lists that a body borrows: their size, and how to copy them.
namespace fopd::fop {

// Calls `visit` with each text and list, which it may replace.
template <typename Body, typename Visit>
constexpr void for_each_borrowed(Body& body, Visit& visit) {
    if constexpr (requires { body.ranges; }) visit(body.ranges);
    if constexpr (requires { body.receipts; }) visit(body.receipts);
    if constexpr (requires { body.fids; }) visit(body.fids);
    if constexpr (requires { body.states; }) visit(body.states);
    if constexpr (requires { body.checksums; }) visit(body.checksums);
    if constexpr (requires { body.message; }) visit(body.message);
    if constexpr (requires { body.name; }) visit(body.name);
    if constexpr (requires { body.from; }) visit(body.from);
    if constexpr (requires { body.prefix; }) visit(body.prefix);
    if constexpr (requires { body.cursor; }) visit(body.cursor);
    if constexpr (requires { body.owner; }) visit(body.owner);
    if constexpr (requires { body.group; }) visit(body.group);
    if constexpr (requires { body.collection; }) visit(body.collection);
    if constexpr (requires { body.drive; }) visit(body.drive);
    if constexpr (requires { body.reason; }) visit(body.reason);
    if constexpr (requires { body.attributes; }) for_each_borrowed(body.attributes, visit);
}

// The alignment of each copy.
inline constexpr std::size_t kBorrowedAlignment = 8;

inline std::span<const std::byte> bytes_of_borrowed(std::string_view text) {
    return std::as_bytes(std::span(text));
}
template <typename T>
std::span<const std::byte> bytes_of_borrowed(const List<T>& list) {
    return std::as_bytes(static_cast<const std::span<const T>&>(list));
}

// The room that keep_borrowed() needs.
std::size_t borrowed_bytes(const RequestBody& body);
std::size_t borrowed_bytes(const ReplyBody& body);

// Copies the borrowed texts and lists into `room`, from which the body borrows them afterwards.
// REQUIRES: borrowed_bytes() of room, aligned to kBorrowedAlignment.
void keep_borrowed(RequestBody& body, std::span<std::byte> room);
void keep_borrowed(ReplyBody& body, std::span<std::byte> room);

}  // namespace fopd::fop

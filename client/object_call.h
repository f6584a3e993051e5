// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "client/lost_writes.h"
#include "fabric/rpc/client.h"

namespace fopd::client {

// The reason why a call about objects failed.
struct Problem {
    fop::Status status = fop::Status::kInternal;
    bool answered = false;  // The server gave this status; otherwise the client did.
    std::string words{};    // For people.
    // There is no session, and a new one could not be opened.
    bool is_unreachable = false;
    // An earlier transmission may have been executed, on a disk that is missing now. If the caller
    // repeats the call, it may be executed twice.
    bool may_be_done = false;
    // Set with kLost: the earlier buffered writes that are lost. The call itself has changed
    // nothing, unless it was a sync.
    std::optional<LostWrite> lost{};
};
template <typename T>
using Outcome = std::expected<T, Problem>;

// Whether the call ended without an answer, at its deadline or because it was cancelled.
bool is_silence(const Problem& problem);

struct ObjectClientOptions {
    fabric::Address server{};
    fop::Credentials credentials{};
    std::vector<std::byte> token{};  // Sent with each fop; empty: none.
    std::string job{};
    // How many fops of one read, write or put are in flight at a time, and how long each is.
    std::uint32_t window = 8;
    std::uint64_t fop_bytes = 1U << 20;  // A multiple of fop::kBlockBytes.
    // The limit for copies of buffered writes. A write that would exceed it waits until the server
    // has made earlier ones durable.
    std::uint64_t held_bytes_max = 64U << 20;
    // A call is repeated for this time while the server answers "try again".
    Duration patience{10s};
    // Receives the parts of the time of each fop; null: no receiver.
    fabric::TimesUser* times = nullptr;
};

// The longest pause before a call is repeated. A call is not repeated if the next pause would end
// after `patience`.
inline constexpr Duration kRetryPauseMax = 500ms;

// The deadline of a call, its cancel source, and the job that the server counts it for.
struct Wait {
    Instant deadline = kNever;
    core::CancelSource* cancel = nullptr;
    std::string_view job{};  // Empty: the job of the options. Borrowed until the call has returned.

    // NOLINTNEXTLINE(google-explicit-constructor): passed to every wait within the call.
    operator core::WaitOptions() const { return {.deadline = deadline, .cancel = cancel}; }
};

// Parses the form of fop::to_hex(). Nothing: the text has another form, or names no object.
std::optional<fop::Fid> parse_fid(std::string_view text);

// Problems that the client itself finds.
std::unexpected<Problem> failed(fop::Status status, std::string words);
std::unexpected<Problem> failed(const Error& error);
// The answer violates the protocol.
std::unexpected<Problem> nonsense();
// The server answered with another status than "done".
std::unexpected<Problem> refused(const fabric::Answer& answer);

// The body of a reply; null if the reply has another body or none.
template <typename Body>
const Body* body_of(const fabric::Answer& answer) {
    return std::get_if<Body>(&answer.body);
}

// The receipt of a reply about one object; null if it has none.
const fop::Receipt* receipt_of(const fabric::Answer& answer);

// Whether so many bytes may travel in a message. Without a session this is unknown and the result
// is false: memory that is opened to the server always works.
bool fits_message(const fabric::Client& session, std::size_t bytes);

// The checksums that travel with the data of a range.
std::vector<std::uint32_t> checksums_of(const fop::Range& range, std::span<const std::byte> data);

}  // namespace fopd::client

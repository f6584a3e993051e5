#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "fop/message.h"
#include "fop/prefix.h"

namespace fopd::fop {

// The most that a message takes beside the payload of its only request or reply and what its body
// borrows: what is this much shorter than a buffer always fits into an empty message, with 12 bytes
// for each thing that is borrowed.
inline constexpr std::size_t kRequestOverheadMax = 2048;
inline constexpr std::size_t kReplyOverheadMax = 768;
// Every control message fits.
inline constexpr std::size_t kControlBytesMax = 1536;

// Builds one message after the other, each in a buffer of the caller's that is as long as the
// longest message its receiver takes. It is used again and again: once it has grown to its usual
// work it allocates nothing.
class MessageWriter {
public:
    MessageWriter();
    ~MessageWriter();
    MessageWriter(const MessageWriter&) = delete;
    MessageWriter& operator=(const MessageWriter&) = delete;

    // Begins a message in `buffer`, which stays the writer's until seal(); what was begun and not
    // sealed is forgotten. Requires: at least kRequestOverheadMax or kReplyOverheadMax bytes, and
    // texts of at most kHeaderTextBytesMax.
    void start_requests(std::span<std::byte> buffer, const RequestHeader& header);
    void start_replies(std::span<std::byte> buffer);

    // Adds to what was started, payload and all: nothing of it is used after the return. False:
    // it does not fit any more, and nothing has changed. Requires: the right start, a token of at
    // most kTokenBytesMax, a body and a type that belong together, a timeout that is not negative.
    bool add(const Request& request);
    bool add(const Reply& reply);

    std::size_t count() const;
    bool empty() const { return count() == 0; }

    // Completes the message but for its MAC, which is zero, and returns its length. Requires: not
    // empty.
    std::size_t seal(const PrefixFields& fields);

    // A whole message at once; sealed but for its MAC. What was begun is forgotten. Requires: a
    // buffer of kControlBytesMax, at most kCancelsMax ids in both lists together.
    std::size_t write_control(std::span<std::byte> buffer, const PrefixFields& fields,
                              const Control& control);

private:
    class Builder;
    std::unique_ptr<Builder> builder_;
};

}  // namespace fopd::fop

#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "fop/message.h"
#include "fop/prefix.h"

namespace fopd::fop {

// The most bytes that a message needs in addition to the payload of its only request or reply and
// the body's borrowed data: anything smaller than a buffer by this amount always fits into an empty
// message, counting 12 extra bytes for each borrowed text or list.
inline constexpr std::size_t kRequestOverheadMax = 2048;
inline constexpr std::size_t kReplyOverheadMax = 768;
// Enough for every control message.
inline constexpr std::size_t kControlBytesMax = 1536;

// Builds messages one after the other, each in a buffer of the caller's, which is as long as the
// longest message its receiver accepts. Reusable: after it has grown to its usual size, it
// allocates nothing.
class MessageWriter {
public:
    MessageWriter();
    ~MessageWriter();
    MessageWriter(const MessageWriter&) = delete;
    MessageWriter& operator=(const MessageWriter&) = delete;

    // Begins a message in `buffer`, which the writer uses until seal(); an unsealed message is
    // discarded. REQUIRES: at least kRequestOverheadMax or kReplyOverheadMax bytes, and texts of at
    // most kHeaderTextBytesMax.
    void start_requests(std::span<std::byte> buffer, const RequestHeader& header);
    void start_replies(std::span<std::byte> buffer);

    // Adds to the started message; copies everything, including the payload. Returns false, and
    // changes nothing, if it does not fit. REQUIRES: the matching start, a token of at most
    // kTokenBytesMax, a body that matches the type, a timeout that is not negative.
    bool add(const Request& request);
    bool add(const Reply& reply);

    std::size_t count() const;
    bool empty() const { return count() == 0; }

    // Completes the message, except for the MAC, which is zero, and returns its length. REQUIRES:
    // not empty.
    std::size_t seal(const PrefixFields& fields);

    // Writes a complete control message, except for its MAC. Discards an unsealed message.
    // REQUIRES: a buffer of kControlBytesMax, at most kCancelsMax ids in both lists together.
    std::size_t write_control(std::span<std::byte> buffer, const PrefixFields& fields,
                              const Control& control);

private:
    class Builder;
    std::unique_ptr<Builder> builder_;
};

}  // namespace fopd::fop

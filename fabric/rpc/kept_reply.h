#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fop/borrowed.h"
#include "fop/message.h"

namespace fopd::fabric {

// A copy of a reply that waits to be sent, or until its client has received it.
struct KeptReply {
    explicit KeptReply(const fop::Reply& reply)
        : id(reply.id),
          status(reply.status),
          words(reply.words),
          payload(reply.payload.begin(), reply.payload.end()),
          payload_crc(reply.payload_crc),
          body(reply.body),
          times(reply.times),
          borrowed(fop::borrowed_bytes(reply.body)) {
        fop::keep_borrowed(body, borrowed);
    }
    KeptReply(KeptReply&&) = default;

    fop::Reply view() const {
        return {.id = id,
                .status = status,
                .words = words,
                .payload = payload,
                .payload_crc = payload_crc,
                .body = body,
                .times = times};
    }
    std::size_t size_bytes() const { return words.size() + payload.size() + borrowed.size(); }

    std::uint64_t id;
    fop::Status status;
    std::string words;
    std::vector<std::byte> payload;
    std::optional<std::uint32_t> payload_crc;
    fop::ReplyBody body;
    std::optional<fop::TimeSpent> times;
    // The bytes that the body refers to. Moving the reply does not move them.
    std::vector<std::byte> borrowed;
};

}  // namespace fopd::fabric

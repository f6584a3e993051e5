#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fop/message.h"

namespace fopd::fabric {

// A copy of a reply that waits to be sent, or until its client has received it.
struct KeptReply {
    explicit KeptReply(const fop::Reply& reply);
    KeptReply(KeptReply&&) = default;

    fop::Reply view() const;
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

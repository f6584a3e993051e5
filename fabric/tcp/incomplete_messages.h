#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "core/intrusive_list.h"

namespace fopd::fabric {

class IncompleteMessage;

// Counts the memory of incomplete messages on the connections of a machine, by the principals of
// the peers. Pure: the owner ends connections when too much memory is in use.
class IncompleteMessages {
public:
    IncompleteMessages() = default;
    // REQUIRES: all connections are gone.
    ~IncompleteMessages() = default;
    IncompleteMessages(const IncompleteMessages&) = delete;
    IncompleteMessages& operator=(const IncompleteMessages&) = delete;

    // The bytes of all incomplete messages together.
    std::size_t bytes() const { return bytes_; }
    // The message to end first: the oldest of the principal that holds the most. Peers that have
    // not authenticated are one principal, which comes first among equals. REQUIRES: bytes() > 0.
    IncompleteMessage& worst();

private:
    friend IncompleteMessage;
    struct Share {
        std::size_t connections = 0;
        std::size_t bytes = 0;
        core::IntrusiveList<IncompleteMessage> messages;  // Those that hold bytes, oldest first.
    };
    using Shares = std::map<std::string, Share>;

    std::size_t bytes_ = 0;
    Share strangers_;
    Shares of_principals_;
};

// The incomplete message of one connection, if there is one.
class IncompleteMessage : public core::ListNode {
public:
    explicit IncompleteMessage(IncompleteMessages& all);
    ~IncompleteMessage();

    // The peer has proved that it is this principal. Once.
    void belongs_to(const std::string& principal);
    // The message holds so many bytes now.
    void holds(std::size_t bytes);
    // The message is complete and its bytes are no longer counted. The next message begins now.
    void completed() { holds(0); }

private:
    IncompleteMessages& all_;
    IncompleteMessages::Share* share_;
    IncompleteMessages::Shares::iterator principal_;  // end(): the peer is a stranger.
    std::size_t bytes_ = 0;
};

}  // namespace fopd::fabric

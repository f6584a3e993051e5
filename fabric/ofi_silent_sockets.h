#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <dirent.h>
#include <sys/types.h>

#include "core/reactor.h"
#include "core/result.h"

struct sockaddr;

namespace fopd::fabric {

// Ends both directions of the one socket of this process between these two addresses; false when
// there is none to be found.
bool hang_up(const sockaddr& own, const sockaddr& peer);

// Finds connections that were made to a listening socket of this process and never said who they
// are. The library that accepted them tells nobody about them and waits for ever; but they are
// sockets of this process, bound to the listening address, and their peer is none that a request
// came from. Lives on the acceptor's reactor.
class SilentSockets {
public:
    // True while the connection that began with a request may have a socket. Shared with whoever
    // takes the request, on whichever thread.
    using Visit = std::shared_ptr<std::atomic<bool>>;

    // `listening` is the address the socket is bound to.
    SilentSockets(core::Reactor& reactor, const sockaddr& listening);
    ~SilentSockets();
    SilentSockets(const SilentSockets&) = delete;
    SilentSockets& operator=(const SilentSockets&) = delete;

    // Takes the two descriptors it needs now, because there may be none left when they are needed.
    // Who sends a part of a request does not make the library wait for the rest, which it would do
    // for ever, and hold up the whole reactor: what it reads must come within a moment.
    // Requires: the listening socket listens.
    Result<void> open();

    // A request has come from this peer.
    Visit expect(const sockaddr& peer);

    // Looks once at every descriptor, some hundred in a turn, and ends those that were silent the
    // last time and still are. How many that were.
    Task<std::uint32_t> sweep();
    // Ends all that are silent now.
    Task<std::uint32_t> end_all();

private:
    struct Suspect {
        int fd;
        ino_t inode;
        std::string peer;
        friend bool operator==(const Suspect&, const Suspect&) = default;
    };

    Result<void> limit_reads();
    Task<std::vector<Suspect>> find();
    bool is_ours(const std::string& local) const;
    bool was_silent(const Suspect& suspect) const;
    bool look(int fd, Suspect& suspect) const;
    bool expected(const std::string& peer) const;
    bool end(const Suspect& suspect) const;

    core::Reactor& reactor_;
    DIR* directory_ = nullptr;  // Of this process's descriptors.
    int spare_ = -1;
    const std::string listening_;  // The form in which addresses are compared.
    const bool any_host_;
    std::map<std::string, Visit> visits_;
    std::vector<Suspect> suspects_;  // Silent when last looked for; by descriptor.
};

}  // namespace fopd::fabric

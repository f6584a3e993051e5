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

// Shuts down the socket of this process that connects these two addresses. False: there is no such
// socket.
bool hang_up(const sockaddr& own, const sockaddr& peer);

// Finds connections that were made to a listening socket of this process and then sent nothing. The
// library that accepted them does not report them, and waits for them forever. But their sockets
// are descriptors of this process, bound to the listening address, whose peer has sent no request.
// Lives on the acceptor's reactor.
class SilentSockets {
public:
    // True while the connection of a request may have a socket. Shared with the holder of the
    // request, on any thread.
    using Visit = std::shared_ptr<std::atomic<bool>>;

    // `listening` is the address that the socket is bound to.
    SilentSockets(core::Reactor& reactor, const sockaddr& listening);
    ~SilentSockets();
    SilentSockets(const SilentSockets&) = delete;
    SilentSockets& operator=(const SilentSockets&) = delete;

    // Opens the two descriptors that this object needs, because the process may have none left
    // later. Also sets a short receive timeout on the listening socket: otherwise a peer that sends
    // only a part of a request would block libfabric, and with it the reactor, forever. REQUIRES:
    // the socket listens.
    Result<void> open();

    // A request of this peer has arrived.
    Visit expect(const sockaddr& peer);

    // Looks at every descriptor, a few hundred in a turn, and ends the sockets that were silent in
    // the last sweep and still are. Returns how many.
    Task<std::uint32_t> sweep();
    // Ends all sockets that are silent now.
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
    DIR* directory_ = nullptr;  // The descriptors of this process.
    int spare_ = -1;
    const std::string listening_;  // In the form in which addresses are compared.
    const bool any_host_;
    std::map<std::string, Visit> visits_;
    std::vector<Suspect> suspects_;  // Silent in the last sweep, by descriptor.
};

}  // namespace fopd::fabric

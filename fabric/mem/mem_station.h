#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/copy_bytes.h"
#include "core/random.h"
#include "core/reactor.h"
#include "fabric/transport.h"

namespace fopd::fabric {

class MemStation;

// The properties of one direction between two hosts. Any thread sets them, receivers read them;
// each is atomic by itself, so that reading needs no lock.
struct MemLink {
    explicit MemLink(std::uint32_t number) : id(number) {}
    bool passable(Instant now) const {
        return !blocked.load() && now.time_since_epoch().count() >= stalled_until_ns.load();
    }

    const std::uint32_t id;
    std::atomic<bool> blocked = false;
    std::atomic<bool> refuses_connects = false;
    std::atomic<std::int64_t> stalled_until_ns = INT64_MIN;
    std::atomic<std::int64_t> delay_min_ns = 0;
    std::atomic<std::int64_t> delay_max_ns = 0;
    std::atomic<std::uint64_t> bytes_per_second = 0;
};

// A packet from one machine or acceptor to another.
struct MemPacket {
    enum class Kind : std::uint8_t {
        kConnect,      // bytes: the hello data.
        kAccepted,     // From the machine to itself: the accepted connection may begin.
        kAccept,       // bytes: the answer. `from` is the peer from now on.
        kRefuse,       // bytes: the refusal text.
        kNobodyThere,  // Nothing listens at the address.
        kMessage,
        kTaken,      // `count` messages with `size` bytes in total have left the window.
        kRead,       // Reads `size` bytes of `remote`.
        kReadDone,   // bytes: those that were read.
        kWrite,      // Writes bytes to `remote`.
        kWriteDone,  // The write has been made.
        kReset,      // The connection has ended.
        kDrop,       // From the network: connections with the host named in bytes end.
        kNudge,      // From the network: links have changed.
    };
    struct End {
        MemStation* station = nullptr;
        std::uint64_t connection = 0;
    };

    void set_bytes(std::span<const std::byte> content) {
        bytes.resize(content.size());
        core::copy_bytes(content, bytes);
    }
    // Whether the packet goes back to its sender if nothing has received it.
    bool wants_answer() const {
        return kind == Kind::kConnect || kind == Kind::kAccept || kind == Kind::kMessage ||
               kind == Kind::kRead || kind == Kind::kWrite;
    }

    Kind kind;
    // The packet is on its way back to its sender, because nothing has received it.
    bool stray = false;
    End from;
    End to;
    MemLink* way = nullptr;   // Null: it does not use the network.
    MemLink* back = nullptr;  // For the answer.
    RemoteMemory remote;
    std::uint32_t count = 0;
    std::uint64_t size = 0;
    std::vector<std::byte> bytes;
    MemPacket* next = nullptr;  // The next in a station's queue.
};

using MemPackets = std::vector<std::unique_ptr<MemPacket>>;

// The mailbox of a machine or an acceptor for packets of other threads. The network owns it, and it
// outlives its machine: a packet that comes too late finds it closed.
class MemStation {
public:
    MemStation(core::Reactor& reactor, std::string host, std::uint64_t seed);
    ~MemStation();
    MemStation(const MemStation&) = delete;
    MemStation& operator=(const MemStation&) = delete;

    // From any thread, in order; the owner's reactor gets a turn in which it can take() the packet.
    // If the station is closed, the packet returns to its sender as a stray.
    void push(std::unique_ptr<MemPacket> packet);

    // On the owner's thread: the packets pushed so far, oldest first.
    MemPackets take();
    // On the owner's thread: no packet is taken any more.
    void close();

    const std::string& host() const { return host_; }
    std::uint64_t seed() const { return seed_; }

    static void return_to_sender(std::unique_ptr<MemPacket> packet);

private:
    // A message to the owner's reactor; it only gives the reactor a turn.
    struct Bell : core::Message {
        explicit Bell(MemStation& owner) : Message(&answer), station(owner) {}
        static void answer(core::Message& message) {
            static_cast<Bell&>(message).station.rung_.store(false);
        }
        MemStation& station;
    };

    core::Reactor& reactor_;  // Not used after close(): the reactor may be destroyed then.
    const std::string host_;
    const std::uint64_t seed_;
    Bell bell_{*this};
    std::atomic<bool> rung_ = false;  // The bell is posted.
    std::atomic<bool> open_ = true;
    std::atomic<MemPacket*> newest_ = nullptr;
};

}  // namespace fopd::fabric

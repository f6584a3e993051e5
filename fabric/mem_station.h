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

// One direction between two hosts. Set from any thread, read by those who receive; each property on
// its own, so that reading needs no lock.
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

// What is sent from one machine or acceptor to another.
struct MemPacket {
    enum class Kind : std::uint8_t {
        kConnect,      // bytes: the hello.
        kAccepted,     // To the acceptor's own side: it may begin.
        kAccept,       // bytes: the answer. From here on `from` is the peer.
        kRefuse,       // bytes: the words.
        kNobodyThere,  // Nobody listens.
        kMessage,
        kTaken,      // count messages of `size` bytes together have left the network.
        kRead,       // size bytes of `remote`.
        kReadDone,   // bytes: what was read.
        kWrite,      // bytes go to `remote`.
        kWriteDone,  // They are there.
        kReset,      // The connection is no more.
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
    // Whether its sender must hear when there is nobody to take it.
    bool wants_answer() const {
        return kind == Kind::kConnect || kind == Kind::kAccept || kind == Kind::kMessage ||
               kind == Kind::kRead || kind == Kind::kWrite;
    }

    Kind kind;
    // There was nobody to take it. It is back where it was sent, and only seems to be on its way.
    bool stray = false;
    End from;
    End to;
    MemLink* way = nullptr;   // Null: not over the network.
    MemLink* back = nullptr;  // For the answer.
    RemoteMemory remote;
    std::uint32_t count = 0;
    std::uint64_t size = 0;
    std::vector<std::byte> bytes;
    MemPacket* next = nullptr;  // For the station's queue.
};

using MemPackets = std::vector<std::unique_ptr<MemPacket>>;

// Where a machine or an acceptor is reached from other threads. Belongs to the network and outlives
// what it was made for: who comes too late finds it closed.
class MemStation {
public:
    MemStation(core::Reactor& reactor, std::string host, std::uint64_t seed);
    ~MemStation();
    MemStation(const MemStation&) = delete;
    MemStation& operator=(const MemStation&) = delete;

    // From any thread, in order: the owner's reactor has a turn, in which it can take() it. When
    // the station is closed, the packet returns as a stray to who sent it.
    void push(std::unique_ptr<MemPacket> packet);

    // On the owner's thread: what has been pushed, oldest first.
    MemPackets take();
    // On the owner's thread: nothing is taken in any more.
    void close();

    const std::string& host() const { return host_; }
    std::uint64_t seed() const { return seed_; }

    static void return_to_sender(std::unique_ptr<MemPacket> packet);

private:
    // Rings at the owner's reactor; what it delivers is that there is a turn at all.
    struct Bell : core::Message {
        explicit Bell(MemStation& owner) : Message(&answer), station(owner) {}
        static void answer(core::Message& message) {
            static_cast<Bell&>(message).station.rung_.store(false);
        }
        MemStation& station;
    };

    core::Reactor& reactor_;  // Not touched once the station is closed: it may be gone.
    const std::string host_;
    const std::uint64_t seed_;
    Bell bell_{*this};
    std::atomic<bool> rung_ = false;  // The bell is posted.
    std::atomic<bool> open_ = true;
    std::atomic<MemPacket*> newest_ = nullptr;
};

}  // namespace fopd::fabric

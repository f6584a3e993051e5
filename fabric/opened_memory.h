#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>

#include "core/intrusive_list.h"
#include "fabric/transport.h"

namespace fopd::fabric {

// The memory regions that a machine has opened to its peers, by key. A remote address is an offset
// into the region.
class OpenedMemory {
public:
    // What a transport does with a region over several turns, for example an answer that is not
    // sent yet. Belongs to the transport, and is linked while it needs the region.
    class Use : public core::ListNode {
    public:
        // The region is closed or taken back: its bytes must not be touched any more. The use is
        // not linked any more, and this call may destroy it and others.
        virtual void on_left() = 0;

    protected:
        ~Use() = default;
    };

    // False if the key is in use.
    bool open(std::uint64_t key, std::span<std::byte> memory, Access access);
    // Ends the uses of the region. Costs nothing for other regions, or for connections that do not
    // use this one. REQUIRES: the key is in use.
    void close(std::uint64_t key);
    // Likewise. From now on, memory that find() returns for this key must not be touched. REQUIRES:
    // the key is in use.
    void take_back(std::uint64_t key);
    // REQUIRES: the key is in use, its region is not taken back, and the use is not linked.
    void add_use(std::uint64_t key, Use& use);
    // The `count` bytes at an address from a peer. Nothing if these bytes are not open, or not for
    // this kind of access.
    struct Found {
        std::span<std::byte> bytes;
        bool is_taken_back = false;
    };
    std::optional<Found> find(const RemoteMemory& at, std::uint64_t count, Access access) const;

private:
    struct Region {
        Region(std::span<std::byte> memory, Access how) : bytes(memory), access(how) {}
        void end_uses();

        const std::span<std::byte> bytes;
        const Access access;
        bool is_taken_back = false;
        core::IntrusiveList<Use> uses;
    };
    Region& region(std::uint64_t key);
    std::map<std::uint64_t, Region> regions_;
};

}  // namespace fopd::fabric

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>

#include "fabric/transport.h"

namespace fopd::fabric {

// The memory regions that a machine has opened to its peers, by key. A remote address is an offset
// into the region.
class OpenedMemory {
public:
    // False if the key is in use.
    bool open(std::uint64_t key, std::span<std::byte> memory, Access access);
    // REQUIRES: the key is in use.
    void close(std::uint64_t key);
    // From now on, memory that find() returns for this key must not be touched. REQUIRES: the key
    // is in use.
    void take_back(std::uint64_t key);
    // The `count` bytes at an address from a peer. Nothing if these bytes are not open, or not for
    // this kind of access.
    struct Found {
        std::span<std::byte> bytes;
        bool is_taken_back = false;
    };
    std::optional<Found> find(const RemoteMemory& at, std::uint64_t count, Access access) const;

private:
    struct Region {
        std::span<std::byte> bytes;
        Access access;
        bool is_taken_back = false;
    };
    std::map<std::uint64_t, Region> regions_;
};

}  // namespace fopd::fabric

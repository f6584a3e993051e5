#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/time.h"

namespace fopd::bench {

// Moves memory with nothing but fi_read() and fi_write() of provider tcp: both sides look for work
// without sleeping.
class BareTransfer {
public:
    enum class Direction : std::uint8_t { kRead, kWrite };

    BareTransfer();
    ~BareTransfer();
    BareTransfer(const BareTransfer&) = delete;
    BareTransfer& operator=(const BareTransfer&) = delete;

    // Megabytes in a second, `depth` transfers in flight.
    double mbps(Direction direction, std::size_t depth, Duration span);

private:
    class Connection;
    std::unique_ptr<Connection> connection_;
};

}  // namespace fopd::bench

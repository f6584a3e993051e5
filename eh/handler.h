#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/result.h"
#include "core/time.h"

namespace fopd::eh {

// Epoch numbers are positive, increase, and are never reused.
using EpochNumber = std::int64_t;
// Passed as the current epoch by a participant that does not know it.
inline constexpr EpochNumber kFirstEpoch = 0;

// Maximum size of the data a participant contributes to an epoch.
inline constexpr std::size_t kEpochBytesMax = 4096;

// Parameters that all participants share.
struct EpochRules {
    // Starts when the first participant is ready for the next epoch. Participants that are not
    // ready when it expires are left out of that epoch.
    Duration timeout = 5s;
    // What two have said becomes one, as long as the shorter of them. In any order and grouping the
    // same. `into` may be where `one` is. Null: they have nothing to say.
    void (*combine)(std::span<std::byte> into, std::span<const std::byte> one,
                    std::span<const std::byte> other) = nullptr;
    // Converts data from a participant of the other byte order to this host's order.
    void (*swap_bytes)(std::span<std::byte> data) = nullptr;
};

// Callback interface of a participant.
class Participant {
public:
    // The epoch that it asked for has begun; `data` is what all have said for it, and borrowed for
    // the call. Or there is none, and why: kCancelled after last_epoch(). Once for each
    // next_epoch() that was taken, perhaps from within. It is ready for the next one within the
    // timeout.
    virtual void on_epoch(Result<EpochNumber> epoch, std::span<const std::byte> data) = 0;

protected:
    ~Participant() = default;
};

// Advances all participants from epoch to epoch together. Each participant has its own handler, on
// its reactor.
class EpochHandler {
public:
    virtual ~EpochHandler() = default;

    virtual const EpochRules& rules() const = 0;

    // The participant is ready for the epoch after `current`, and says `data` for it, which is
    // copied. Refused, without a call: kInvalid when `current` is neither kFirstEpoch nor the epoch
    // it is in, or the data too long; kBusy when it is waiting already.
    virtual Result<void> next_epoch(EpochNumber current, std::span<const std::byte> data,
                                    Participant& participant) = 0;
    // The participant leaves, at once. It may come back as one that knows no epoch.
    virtual void last_epoch(EpochNumber current) = 0;
};

}  // namespace fopd::eh

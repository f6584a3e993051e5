#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/result.h"
#include "core/time.h"

namespace fopd::eh {

// Positive, rises, and never comes again.
using EpochNumber = std::int64_t;
// In its place by who does not know which epoch it is.
inline constexpr EpochNumber kFirstEpoch = 0;

// What a participant may say for an epoch, at most.
inline constexpr std::size_t kEpochBytesMax = 4096;

// What the participants have agreed on before any epoch.
struct EpochRules {
    // Counted from the first that is ready for the next epoch: who is not by then is left behind.
    Duration timeout = 5s;
    // What two have said becomes one, as long as the shorter of them. In any order and grouping the
    // same. `into` may be where `one` is. Null: they have nothing to say.
    void (*combine)(std::span<std::byte> into, std::span<const std::byte> one,
                    std::span<const std::byte> other) = nullptr;
    // What one of another byte order has said becomes of ours.
    void (*swap_bytes)(std::span<std::byte> data) = nullptr;
};

// Who takes part in epochs.
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

// Lets participants go from epoch to epoch together. One for each participant, on its reactor.
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

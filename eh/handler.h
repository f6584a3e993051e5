#pragma once

#include <cerrno>
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
    // A participant can be left out of the next epoch at the earliest when this time, or the
    // timeout if that is shorter, has passed since the present epoch began.
    Duration left_out_after = Duration::max();
    // Combines the data of two participants into one result, as long as the shorter of them. Must
    // be associative and commutative. `into` may be the same memory as `one`. Null: participants
    // contribute no data.
    void (*combine)(std::span<std::byte> into, std::span<const std::byte> one,
                    std::span<const std::byte> other) = nullptr;
    // Data are shortened to a multiple of this many bytes, so that no number is cut in two.
    std::size_t granule = 1;
    // Converts data from a participant of the other byte order to this host's order.
    void (*swap_bytes)(std::span<std::byte> data) = nullptr;
};

// The errors with which next_epoch() refuses a call at once.
inline constexpr Error kTooMuchData{
    .code = Errc::kInvalid, .os_errno = EMSGSIZE, .context = "too much data"};
inline constexpr Error kAlreadyWaiting{
    .code = Errc::kBusy, .os_errno = EALREADY, .context = "waiting for an epoch"};
inline constexpr Error kOtherEpoch{
    .code = Errc::kInvalid, .os_errno = EINVAL, .context = "not the current epoch"};

// Callback interface of a participant.
class Participant {
public:
    // Called exactly once for each accepted next_epoch(), possibly from within it. The requested
    // epoch has begun; `data` is the combined data of all participants, borrowed during the call.
    // Or the epoch failed with an error: kCancelled after last_epoch(). The participant must be
    // ready for the next epoch within the timeout.
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

    // The participant is ready for the epoch after `current`, and contributes `data`, which is
    // copied. Errors, without a later callback: kOtherEpoch if `current` is neither kFirstEpoch
    // nor the participant's epoch, kTooMuchData, kAlreadyWaiting.
    virtual Result<void> next_epoch(EpochNumber current, std::span<const std::byte> data,
                                    Participant& participant) = 0;
    // The participant leaves immediately. It may rejoin with kFirstEpoch.
    virtual void last_epoch(EpochNumber current) = 0;
};

}  // namespace fopd::eh

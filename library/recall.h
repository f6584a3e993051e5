#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/time.h"
#include "store/fid.h"
#include "store/object.h"

namespace fopd::library {

// A recall brings an object's bytes back from tape to the disk of its slot. An object has at most
// one, however many ask, so the object's fid is the ticket by which clients wait for the recall,
// and cancel it.
using Ticket = store::Fid;

// Recalls that clients wait for go before staging in bulk.
inline constexpr std::uint8_t kRecallPriorityDefault = 128;

struct RecallWish {
    store::Fid fid{};
    // Recalls with a higher one go first. A second wish raises that of the recall that is there.
    std::uint8_t priority = kRecallPriorityDefault;
    // The bytes stay on the disk at least for so long after the wish; of several wishes the latest
    // with a pin counts.
    Duration pin{0};
    // Ends the pin of the object, and asks for nothing else.
    bool unpins = false;
    // The principal who asks; empty: it has not proved who it is. It may cancel the recall that it
    // is the first to ask for.
    std::string requester = {};
    store::ClientId client{};
};

// The answer to a wish.
enum class RecallAsked : std::uint8_t {
    kOnDisk,   // The bytes are there; nothing to wait for.
    kWaiting,  // A recall is recorded, and survives restarts.
};

// How a recall ended.
struct RecallEnd {
    enum class How : std::uint8_t {
        kDone,       // The bytes are on the disk, or were when there was no recall.
        kFailed,     // No copy can be read; `reason` says why.
        kCancelled,  // On request, also before the caller waited.
        kGone,       // The object was removed.
    };
    How how = How::kDone;
    std::string reason = {};
    bool is_damaged = false;  // kFailed: what is on tape is not what was written.
};

// A recall as lists show it.
struct RecallRow {
    enum class State : std::uint8_t {
        kWaiting,  // For its cartridge.
        kReading,
    };
    Ticket ticket{};
    State state = State::kWaiting;
    std::uint8_t priority = kRecallPriorityDefault;
    std::uint64_t size_bytes = 0;
    Instant asked_at{};
    std::string cartridge{};  // The barcode of the copy that will be read.
    std::uint64_t place = 0;  // How many recalls are to end before it.
    // When it is expected to end; nothing where nothing is known to tell from.
    std::optional<Instant> expected_at{};
};

}  // namespace fopd::library

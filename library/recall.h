#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/time.h"
#include "store/fid.h"
#include "store/object.h"

namespace fopd::library {

// A recall brings an object's bytes back from tape to the disk of its slot. An object has at most
// one recall, however many clients ask for it. So the fid of the object is the ticket with which
// clients wait for the recall or cancel it.
using Ticket = store::Fid;

// The priority of a recall for a read.
inline constexpr std::uint8_t kRecallPriorityDefault = 128;

// The priority of a recall for a repack: the lowest.
inline constexpr std::uint8_t kRepackPriority = 0;

struct RecallWish {
    store::Fid fid{};
    // Recalls with a higher priority go first. A second request with a higher priority raises that
    // of the pending recall.
    std::uint8_t priority = kRecallPriorityDefault;
    // How long the bytes stay on the disk, from the request on. The latest request with a pin
    // counts. 0: the request has no pin.
    Duration pin{0};
    // Ends the pin of the object, and recalls nothing.
    bool unpins = false;
    // Cancels the recall that a repack has asked for, if no client has asked for the object, and
    // recalls nothing.
    bool withdraws = false;
    // The principal of the request; empty: it has not proved its name. The principal of the first
    // request for a recall may cancel it.
    std::string requester = {};
    store::ClientId client{};  // Zeros: the request is a repack's.
};

// The answer to a request for a recall.
enum class RecallAsked : std::uint8_t {
    kOnDisk,   // The bytes are there; nothing to wait for.
    kWaiting,  // A recall is recorded, and survives restarts.
};

// How a recall ended.
struct RecallEnd {
    enum class How : std::uint8_t {
        // The bytes are on the disk, or there was no recall because they were there already.
        kDone,
        kFailed,     // No copy can be read; `reason` says why.
        kCancelled,  // The recall was cancelled, perhaps before the caller began to wait.
        kGone,       // The object was removed.
    };
    How how = How::kDone;
    std::string reason = {};
    bool is_damaged = false;  // With kFailed: the data on the tape differ from the written data.
};

// The recalls that have not ended.
struct PendingRecalls {
    std::uint64_t count = 0;
    std::optional<Instant> oldest_at{};  // When the oldest was asked for; nothing: there is none.
};

// A row of the list of recalls.
struct RecallRow {
    enum class State : std::uint8_t {
        kWaiting,  // The recall waits for its cartridge.
        kReading,
    };
    Ticket ticket{};
    State state = State::kWaiting;
    std::uint8_t priority = kRecallPriorityDefault;
    std::uint64_t size_bytes = 0;
    Instant asked_at{};
    std::string cartridge{};  // The barcode of the copy that will be read.
    std::uint64_t place = 0;  // How many recalls are expected to end before it.
    // The expected end; nothing: it cannot be estimated.
    std::optional<Instant> expected_at{};
};

}  // namespace fopd::library

#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <ranges>
#include <string_view>

#include "core/result.h"

namespace fopd::fop {

// The outcome of a fop, as in its reply. The numbers are on the wire: new ones are added, none is
// reused.
enum class Status : std::uint16_t {
    kDone = 0,
    kUnknownFop = 1,
    kMalformed = 2,
    kDenied = 3,
    kTryAgain = 4,
    kBusy = 5,
    kTimedOut = 6,
    kCancelled = 7,
    kTooLarge = 8,
    kCorrupt = 9,
    kNoSpace = 10,
    kNotFound = 11,
    kOutcomeUnknown = 12,
    kInternal = 13,
    kVersion = 14,
    kExists = 15,
    kQuota = 16,
    kReadOnly = 17,
    kWrongPool = 18,
    kMediumMissing = 19,
    kLost = 20,
    kStaging = 21,
    kStagingFull = 22,
};

struct StatusRow {
    Status status;
    std::string_view name;     // In metrics, logs and JSON.
    Errc code;                 // The caller's error; meaningless for kDone.
    std::string_view summary;  // For people.
};

inline constexpr std::array kStatuses{
    StatusRow{Status::kDone, "done", Errc{}, "it is done"},
    StatusRow{Status::kUnknownFop, "unknown_fop", Errc::kUnsupported,
              "the server does not know this type of fop"},
    StatusRow{Status::kMalformed, "malformed", Errc::kInvalid, "the request is not valid"},
    StatusRow{Status::kDenied, "denied", Errc::kDenied, "a right is missing"},
    StatusRow{Status::kTryAgain, "try_again", Errc::kBusy,
              "nothing was begun; try the same request again later"},
    StatusRow{Status::kBusy, "busy", Errc::kBusy, "another operation uses what this one needs"},
    StatusRow{Status::kTimedOut, "timed_out", Errc::kTimedOut,
              "it did not end before its deadline"},
    StatusRow{Status::kCancelled, "cancelled", Errc::kCancelled, "it was cancelled"},
    StatusRow{Status::kTooLarge, "too_large", Errc::kInvalid,
              "it is larger than the server accepts"},
    StatusRow{Status::kCorrupt, "corrupt", Errc::kCorrupt, "data do not match their checksum"},
    StatusRow{Status::kNoSpace, "no_space", Errc::kNoSpace,
              "there is not enough space or memory left"},
    StatusRow{Status::kNotFound, "not_found", Errc::kNotFound, "what it names does not exist"},
    StatusRow{Status::kOutcomeUnknown, "outcome_unknown", Errc::kClosed,
              "it is not known whether it was done"},
    StatusRow{Status::kInternal, "internal", Errc::kIo, "an internal error of the server"},
    StatusRow{Status::kVersion, "version", Errc::kUnsupported,
              "the two sides speak different versions"},
    StatusRow{Status::kExists, "exists", Errc::kInvalid, "an object of that name exists already"},
    StatusRow{Status::kQuota, "quota", Errc::kNoSpace, "more than the pool or the owner may use"},
    StatusRow{Status::kReadOnly, "read_only", Errc::kIo,
              "its disk or cartridge can no longer be written"},
    StatusRow{Status::kWrongPool, "wrong_pool", Errc::kInvalid,
              "no such pool, or the object is in another pool"},
    StatusRow{Status::kMediumMissing, "medium_missing", Errc::kIo, "its disk is missing"},
    StatusRow{Status::kLost, "lost", Errc::kIo,
              "buffered writes were lost and have to be sent again"},
    StatusRow{Status::kStaging, "staging", Errc::kBusy,
              "its bytes are on tape, and are being brought back to a disk"},
    StatusRow{Status::kStagingFull, "staging_full", Errc::kBusy,
              "the staging disks are full, and space is being freed"},
};
static_assert(std::ranges::equal(kStatuses, std::views::iota(0, static_cast<int>(kStatuses.size())),
                                 {},
                                 [](const StatusRow& row) { return static_cast<int>(row.status); }),
              "the row of a status is at the index of its number");

// The row of a number from the wire; kInternal's row for a number that a newer peer uses.
constexpr const StatusRow& status_row(std::uint16_t number) {
    return number < kStatuses.size() ? kStatuses[number]
                                     : kStatuses[static_cast<std::size_t>(Status::kInternal)];
}
constexpr const StatusRow& status_row(Status status) {
    return status_row(static_cast<std::uint16_t>(status));
}
constexpr std::string_view to_string(Status status) {
    return status_row(status).name;
}

// The status of a fop whose work failed with this error, and may have been begun.
constexpr Status status_of(Errc code) {
    switch (code) {
        case Errc::kNoSpace: return Status::kNoSpace;
        case Errc::kTimedOut: return Status::kTimedOut;
        case Errc::kCancelled: return Status::kCancelled;
        case Errc::kCorrupt: return Status::kCorrupt;
        case Errc::kBusy: return Status::kBusy;
        case Errc::kInvalid: return Status::kMalformed;
        case Errc::kNotFound: return Status::kNotFound;
        case Errc::kDenied: return Status::kDenied;
        case Errc::kClosed: return Status::kOutcomeUnknown;
        case Errc::kUnsupported:
        case Errc::kIo: return Status::kInternal;
    }
    return Status::kInternal;
}

}  // namespace fopd::fop

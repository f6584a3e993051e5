#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <variant>

#include "fop/bodies.h"
#include "fop/rights.h"

namespace fopd::fop {

// The lane of a fop: each lane has its own credits and queues.
enum class Lane : std::uint8_t { kControl, kData };

// The client's action if it does not know whether a fop was executed.
enum class Repeat : std::uint8_t {
    kIdempotent,  // Sends it again.
    kOnce,  // Sends it again in the same incarnation of the server, which remembers executed fops.
    kRecorded,  // Sends it again: the reply is stored durably, over incarnations of the server.
};

// The payload that a request or its reply may have in addition to the body.
enum class Payload : std::uint8_t {
    kNone,
    kInline,   // In the messages, in both directions.
    kBulk,     // Through memory that the client has opened.
    kListing,  // In the reply.
    kOut,      // In the reply, or through memory.
    kIn,       // In the request, or through memory.
};
constexpr bool request_may_carry(Payload payload) {
    return payload == Payload::kInline || payload == Payload::kIn;
}

// Who may call a fop. A session proves what its caller is.
enum class Callers : std::uint8_t {
    kAll,    // All that have the rights.
    kPeers,  // Only daemons of the cluster, which have the peer key; also with auth.mode: none.
};

// The only table of fop types, one row for each. To add a type: add its bodies in bodies.h and at
// the end of the unions of wire.fbs, its row here and that of its fields in body_rows.h, its checks
// in body_check.cc, and its seeds for the fuzzer.
struct FopType {
    std::uint16_t number;  // On the wire: never reused.
    std::string_view name;
    std::string_view summary;
    Rights rights;  // All of these are required.
    Lane lane = Lane::kData;
    Repeat repeat;
    Payload payload = Payload::kNone;
    Callers callers = Callers::kAll;
};

inline constexpr std::array kFopTypes{
    FopType{.number = 1,
            .name = "ping",
            .summary = "Measures the round trip to the server.",
            .rights = kNoRights,
            .lane = Lane::kControl,
            .repeat = Repeat::kIdempotent},
    FopType{.number = 2,
            .name = "echo",
            .summary = "Sends the payload back in the reply.",
            .rights = kAdmin,
            .repeat = Repeat::kIdempotent,
            .payload = Payload::kInline},
    FopType{.number = 3,
            .name = "bulk_echo",
            .summary = "Pulls memory of the client and pushes it to other memory of the client.",
            .rights = kAdmin,
            .repeat = Repeat::kOnce,
            .payload = Payload::kBulk},
    FopType{.number = 4,
            .name = "slots",
            .summary = "Lists the slots with their localities and pools.",
            .rights = kNoRights,
            .lane = Lane::kControl,
            .repeat = Repeat::kIdempotent,
            .payload = Payload::kListing},
    FopType{.number = 5,
            .name = "statfs",
            .summary = "Lists the size and the free space of the pools.",
            .rights = kNoRights,
            .lane = Lane::kControl,
            .repeat = Repeat::kIdempotent,
            .payload = Payload::kListing},
    FopType{.number = 6,
            .name = "create",
            .summary = "Makes an empty object, with a name or without.",
            .rights = kCreate,
            .repeat = Repeat::kRecorded},
    FopType{.number = 7,
            .name = "lookup",
            .summary = "Finds an object by its name; returns its attributes.",
            .rights = kRead,
            .repeat = Repeat::kIdempotent},
    FopType{.number = 8,
            .name = "stat",
            .summary = "Returns an object's attributes.",
            .rights = kRead,
            .repeat = Repeat::kIdempotent},
    FopType{.number = 9,
            .name = "list",
            .summary = "Lists names.",
            .rights = kRead,
            .repeat = Repeat::kIdempotent,
            .payload = Payload::kListing},
    FopType{.number = 10,
            .name = "set_attributes",
            .summary = "Changes owner, group and mode of an object.",
            .rights = kWrite,
            .repeat = Repeat::kRecorded},
    FopType{.number = 11,
            .name = "rename",
            .summary = "Gives an object another name.",
            .rights = kWrite,
            .repeat = Repeat::kRecorded},
    FopType{.number = 12,
            .name = "delete",
            .summary = "Removes an object and its name.",
            .rights = kDelete,
            .repeat = Repeat::kRecorded},
    FopType{.number = 13,
            .name = "read",
            .summary = "Reads bytes of an object.",
            .rights = kRead,
            .repeat = Repeat::kIdempotent,
            .payload = Payload::kOut},
    FopType{.number = 14,
            .name = "write",
            .summary = "Replaces bytes of an object.",
            .rights = kWrite,
            .repeat = Repeat::kRecorded,
            .payload = Payload::kIn},
    FopType{.number = 15,
            .name = "append",
            .summary = "Adds bytes at the end of an object.",
            .rights = kWrite,
            .repeat = Repeat::kRecorded,
            .payload = Payload::kIn},
    FopType{.number = 16,
            .name = "truncate",
            .summary = "Changes the size of an object.",
            .rights = kWrite,
            .repeat = Repeat::kRecorded},
    FopType{.number = 17,
            .name = "punch",
            .summary = "Turns a range of an object into a hole.",
            .rights = kWrite,
            .repeat = Repeat::kRecorded},
    FopType{.number = 18,
            .name = "sync",
            .summary = "Makes the changes named by receipts durable.",
            .rights = kWrite,
            .repeat = Repeat::kIdempotent},
    FopType{.number = 19,
            .name = "upload_begin",
            .summary = "Begins an object that is visible after the commit only.",
            .rights = kCreate,
            .repeat = Repeat::kRecorded},
    FopType{.number = 20,
            .name = "upload_write",
            .summary = "Writes bytes of an upload.",
            .rights = kCreate,
            .repeat = Repeat::kRecorded,
            .payload = Payload::kIn},
    FopType{.number = 21,
            .name = "upload_commit",
            .summary = "Turns an upload into a durable object.",
            .rights = kCreate,
            .repeat = Repeat::kRecorded},
    FopType{.number = 22,
            .name = "upload_abort",
            .summary = "Gives up an upload.",
            .rights = kCreate,
            .repeat = Repeat::kIdempotent},
    FopType{.number = 23,
            .name = "quota",
            .summary = "Lists use and limits of owners and pools.",
            .rights = kNoRights,
            .lane = Lane::kControl,
            .repeat = Repeat::kIdempotent,
            .payload = Payload::kListing},
    FopType{.number = 24,
            .name = "stage",
            .summary = "Recalls an object's bytes from tape.",
            .rights = kRead,
            .repeat = Repeat::kIdempotent},
    FopType{.number = 25,
            .name = "release",
            .summary = "Frees the disk's blocks of an object that is on tape.",
            .rights = kWrite,
            .repeat = Repeat::kIdempotent},
    FopType{.number = 26,
            .name = "recalls",
            .summary = "Lists the recalls from tape.",
            .rights = kNoRights,
            .lane = Lane::kControl,
            .repeat = Repeat::kIdempotent,
            .payload = Payload::kListing},
    FopType{.number = 27,
            .name = "recall_wait",
            .summary = "Waits until an object's bytes are back.",
            .rights = kRead,
            .lane = Lane::kControl,
            .repeat = Repeat::kIdempotent},
    FopType{.number = 28,
            .name = "recall_cancel",
            .summary = "Cancels a recall: the object's bytes stay on tape.",
            .rights = kRead,
            .lane = Lane::kControl,
            .repeat = Repeat::kIdempotent},
    FopType{.number = 29,
            .name = "sync_tape",
            .summary = "Waits until all objects of a pool are on tape.",
            .rights = kWrite,
            .repeat = Repeat::kIdempotent},
    FopType{.number = 30,
            .name = "media",
            .summary = "Lists the cartridges.",
            .rights = kNoRights,
            .lane = Lane::kControl,
            .repeat = Repeat::kIdempotent,
            .payload = Payload::kListing},
    FopType{.number = 31,
            .name = "format_medium",
            .summary = "Labels a cartridge, which is then empty.",
            .rights = kAdmin,
            .repeat = Repeat::kOnce},
    FopType{.number = 32,
            .name = "load_medium",
            .summary = "Loads a cartridge into a drive.",
            .rights = kAdmin,
            .repeat = Repeat::kOnce},
    FopType{.number = 33,
            .name = "unload_drive",
            .summary = "Returns a drive's cartridge to a storage element.",
            .rights = kAdmin,
            .repeat = Repeat::kOnce},
    FopType{.number = 34,
            .name = "copies",
            .summary = "Where are an object's copies on tape?",
            .rights = kRead,
            .lane = Lane::kControl,
            .repeat = Repeat::kIdempotent,
            .payload = Payload::kListing},
    FopType{.number = 35,
            .name = "medium_work",
            .summary = "Repacks, scrubs or rescues a cartridge, or shows how far that is.",
            .rights = kAdmin,
            .lane = Lane::kControl,
            .repeat = Repeat::kIdempotent,
            .payload = Payload::kListing},
    FopType{.number = 36,
            .name = "set_drive",
            .summary = "Takes a tape drive out of use, or uses it again.",
            .rights = kAdmin,
            .repeat = Repeat::kOnce},
    FopType{.number = 37,
            .name = "export_medium",
            .summary = "Takes a cartridge out of use and to an exchange element.",
            .rights = kAdmin,
            .repeat = Repeat::kOnce},
    FopType{.number = 38,
            .name = "import_media",
            .summary = "Takes exported cartridges into use again.",
            .rights = kAdmin,
            .repeat = Repeat::kIdempotent,
            .payload = Payload::kListing},
    FopType{.number = 39,
            .name = "epoch",
            .summary = "Carries a message of the epoch protocol between daemons.",
            .rights = kNoRights,
            .lane = Lane::kControl,
            .repeat = Repeat::kIdempotent,
            .callers = Callers::kPeers},
};

static_assert(std::variant_size_v<RequestBody> == kFopTypes.size() + 1, "a body for each row");
static_assert(std::variant_size_v<ReplyBody> == kFopTypes.size() + 1, "a reply for each row");
static_assert(kFopTypes.front().number > 0 &&
                  std::ranges::adjacent_find(kFopTypes, std::ranges::greater_equal{},
                                             &FopType::number) == kFopTypes.end(),
              "two types of fop share a number, or are out of order");
consteval bool names_differ() {
    for (auto row = kFopTypes.begin(); row != kFopTypes.end(); ++row) {
        if (row->name.empty()) return false;
        if (std::ranges::find(row + 1, kFopTypes.end(), row->name, &FopType::name) !=
            kFopTypes.end()) {
            return false;
        }
    }
    return true;
}
static_assert(names_differ(), "two types of fop share a name");

// nullptr: unknown type.
constexpr const FopType* find_fop_type(std::uint16_t number) {
    const auto* const row = std::ranges::lower_bound(kFopTypes, number, {}, &FopType::number);
    return row != kFopTypes.end() && row->number == number ? &*row : nullptr;
}
constexpr const FopType* find_fop_type(std::string_view name) {
    const auto* const row = std::ranges::find(kFopTypes, name, &FopType::name);
    return row != kFopTypes.end() ? &*row : nullptr;
}

// By number, whether only daemons call fops of this type: a daemon asks that of each fop.
inline constexpr auto kAreOfPeers = [] {
    std::array<bool, kFopTypes.back().number + std::size_t{1}> are_of_peers{};
    for (const FopType& type : kFopTypes)
        are_of_peers[type.number] = type.callers == Callers::kPeers;
    return are_of_peers;
}();
constexpr bool is_of_peers(std::uint16_t number) {
    return number < kAreOfPeers.size() && kAreOfPeers[number];
}

// The index of the row in kFopTypes is one less than that of the body in RequestBody and ReplyBody.
constexpr std::size_t body_index(const FopType& type) {
    return static_cast<std::size_t>(&type - kFopTypes.data()) + 1;
}

}  // namespace fopd::fop

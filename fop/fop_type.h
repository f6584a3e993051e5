#pragma once

#include <algorithm>
#include <array>
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

// The only table of fop types, one row for each. To add a type: add its bodies in bodies.h and at
// the end of the unions of wire.fbs, its row here, its conversion in body_wire.cc, its checks in
// body_check.cc, and its seeds for the fuzzer.
struct FopType {
    std::uint16_t number;  // On the wire: never reused.
    std::string_view name;
    std::string_view summary;
    Rights rights;  // All of these are required.
    Lane lane;
    Repeat repeat;
    Payload payload;
};

inline constexpr std::array kFopTypes{
    FopType{.number = 1,
            .name = "ping",
            .summary = "Is the server there, and how far away?",
            .rights = kNoRights,
            .lane = Lane::kControl,
            .repeat = Repeat::kIdempotent,
            .payload = Payload::kNone},
    FopType{.number = 2,
            .name = "echo",
            .summary = "The payload comes back in the reply.",
            .rights = kAdmin,
            .lane = Lane::kData,
            .repeat = Repeat::kIdempotent,
            .payload = Payload::kInline},
    FopType{.number = 3,
            .name = "bulk_echo",
            .summary = "Memory of the client is fetched and written back to other memory of it.",
            .rights = kAdmin,
            .lane = Lane::kData,
            .repeat = Repeat::kOnce,
            .payload = Payload::kBulk},
    FopType{.number = 4,
            .name = "slots",
            .summary = "Which slots are there, and where?",
            .rights = kNoRights,
            .lane = Lane::kControl,
            .repeat = Repeat::kIdempotent,
            .payload = Payload::kListing},
    FopType{.number = 5,
            .name = "statfs",
            .summary = "How much room is there?",
            .rights = kNoRights,
            .lane = Lane::kControl,
            .repeat = Repeat::kIdempotent,
            .payload = Payload::kListing},
    FopType{.number = 6,
            .name = "create",
            .summary = "An empty object, with a name or without.",
            .rights = kCreate,
            .lane = Lane::kData,
            .repeat = Repeat::kRecorded,
            .payload = Payload::kNone},
    FopType{.number = 7,
            .name = "lookup",
            .summary = "Which object has this name, and what is it like?",
            .rights = kRead,
            .lane = Lane::kData,
            .repeat = Repeat::kIdempotent,
            .payload = Payload::kNone},
    FopType{.number = 8,
            .name = "stat",
            .summary = "What is this object like?",
            .rights = kRead,
            .lane = Lane::kData,
            .repeat = Repeat::kIdempotent,
            .payload = Payload::kNone},
    FopType{.number = 9,
            .name = "list",
            .summary = "Which names are there?",
            .rights = kRead,
            .lane = Lane::kData,
            .repeat = Repeat::kIdempotent,
            .payload = Payload::kListing},
    FopType{.number = 10,
            .name = "set_attributes",
            .summary = "Owner, group and mode of an object.",
            .rights = kWrite,
            .lane = Lane::kData,
            .repeat = Repeat::kRecorded,
            .payload = Payload::kNone},
    FopType{.number = 11,
            .name = "rename",
            .summary = "Another name for an object.",
            .rights = kWrite,
            .lane = Lane::kData,
            .repeat = Repeat::kRecorded,
            .payload = Payload::kNone},
    FopType{.number = 12,
            .name = "delete",
            .summary = "An object and its name are no more.",
            .rights = kDelete,
            .lane = Lane::kData,
            .repeat = Repeat::kRecorded,
            .payload = Payload::kNone},
    FopType{.number = 13,
            .name = "read",
            .summary = "Bytes of an object.",
            .rights = kRead,
            .lane = Lane::kData,
            .repeat = Repeat::kIdempotent,
            .payload = Payload::kOut},
    FopType{.number = 14,
            .name = "write",
            .summary = "Bytes of an object are replaced.",
            .rights = kWrite,
            .lane = Lane::kData,
            .repeat = Repeat::kRecorded,
            .payload = Payload::kIn},
    FopType{.number = 15,
            .name = "append",
            .summary = "Bytes are put behind the end of an object.",
            .rights = kWrite,
            .lane = Lane::kData,
            .repeat = Repeat::kRecorded,
            .payload = Payload::kIn},
    FopType{.number = 16,
            .name = "truncate",
            .summary = "An object ends elsewhere.",
            .rights = kWrite,
            .lane = Lane::kData,
            .repeat = Repeat::kRecorded,
            .payload = Payload::kNone},
    FopType{.number = 17,
            .name = "punch",
            .summary = "A part of an object becomes a hole.",
            .rights = kWrite,
            .lane = Lane::kData,
            .repeat = Repeat::kRecorded,
            .payload = Payload::kNone},
    FopType{.number = 18,
            .name = "sync",
            .summary = "What was acknowledged before is made durable.",
            .rights = kWrite,
            .lane = Lane::kData,
            .repeat = Repeat::kIdempotent,
            .payload = Payload::kNone},
    FopType{.number = 19,
            .name = "upload_begin",
            .summary = "An object that nobody sees yet.",
            .rights = kCreate,
            .lane = Lane::kData,
            .repeat = Repeat::kRecorded,
            .payload = Payload::kNone},
    FopType{.number = 20,
            .name = "upload_write",
            .summary = "Bytes of an upload.",
            .rights = kCreate,
            .lane = Lane::kData,
            .repeat = Repeat::kRecorded,
            .payload = Payload::kIn},
    FopType{.number = 21,
            .name = "upload_commit",
            .summary = "An upload becomes an object, whole and durable.",
            .rights = kCreate,
            .lane = Lane::kData,
            .repeat = Repeat::kRecorded,
            .payload = Payload::kNone},
    FopType{.number = 22,
            .name = "upload_abort",
            .summary = "An upload is given up.",
            .rights = kCreate,
            .lane = Lane::kData,
            .repeat = Repeat::kIdempotent,
            .payload = Payload::kNone},
    FopType{.number = 23,
            .name = "quota",
            .summary = "Who has how much, and may have?",
            .rights = kNoRights,
            .lane = Lane::kControl,
            .repeat = Repeat::kIdempotent,
            .payload = Payload::kListing},
    FopType{.number = 24,
            .name = "stage",
            .summary = "An object's bytes come back from tape.",
            .rights = kRead,
            .lane = Lane::kData,
            .repeat = Repeat::kIdempotent,
            .payload = Payload::kNone},
    FopType{.number = 25,
            .name = "release",
            .summary = "The disk's blocks of an object that is on tape become free.",
            .rights = kWrite,
            .lane = Lane::kData,
            .repeat = Repeat::kIdempotent,
            .payload = Payload::kNone},
    FopType{.number = 26,
            .name = "recalls",
            .summary = "What is being brought back from tape?",
            .rights = kNoRights,
            .lane = Lane::kControl,
            .repeat = Repeat::kIdempotent,
            .payload = Payload::kListing},
    FopType{.number = 27,
            .name = "recall_wait",
            .summary = "Until an object's bytes are back.",
            .rights = kRead,
            .lane = Lane::kControl,
            .repeat = Repeat::kIdempotent,
            .payload = Payload::kNone},
    FopType{.number = 28,
            .name = "recall_cancel",
            .summary = "An object's bytes stay on tape.",
            .rights = kRead,
            .lane = Lane::kControl,
            .repeat = Repeat::kIdempotent,
            .payload = Payload::kNone},
    FopType{.number = 29,
            .name = "sync_tape",
            .summary = "Until all objects of a pool are on tape.",
            .rights = kWrite,
            .lane = Lane::kData,
            .repeat = Repeat::kIdempotent,
            .payload = Payload::kNone},
    FopType{.number = 30,
            .name = "media",
            .summary = "Which cartridges are there?",
            .rights = kNoRights,
            .lane = Lane::kControl,
            .repeat = Repeat::kIdempotent,
            .payload = Payload::kListing},
    FopType{.number = 31,
            .name = "format_medium",
            .summary = "A cartridge gets a label, and is empty.",
            .rights = kAdmin,
            .lane = Lane::kData,
            .repeat = Repeat::kOnce,
            .payload = Payload::kNone},
    FopType{.number = 32,
            .name = "load_medium",
            .summary = "A cartridge is loaded into a drive.",
            .rights = kAdmin,
            .lane = Lane::kData,
            .repeat = Repeat::kOnce,
            .payload = Payload::kNone},
    FopType{.number = 33,
            .name = "unload_drive",
            .summary = "A drive's cartridge goes back to its slot.",
            .rights = kAdmin,
            .lane = Lane::kData,
            .repeat = Repeat::kOnce,
            .payload = Payload::kNone},
    FopType{.number = 34,
            .name = "copies",
            .summary = "Where are an object's copies on tape?",
            .rights = kRead,
            .lane = Lane::kControl,
            .repeat = Repeat::kIdempotent,
            .payload = Payload::kListing},
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

// The index of the row in kFopTypes is one less than that of the body in RequestBody and ReplyBody.
constexpr std::size_t body_index(const FopType& type) {
    return static_cast<std::size_t>(&type - kFopTypes.data()) + 1;
}

}  // namespace fopd::fop

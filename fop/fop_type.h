#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <variant>

#include "fop/bodies.h"
#include "fop/rights.h"

namespace fopd::fop {

// Which of the two kinds of credits and queues a fop takes.
enum class Lane : std::uint8_t { kControl, kData };

// Whether a client that does not know what became of a fop may run it again.
enum class Repeat : std::uint8_t { kIdempotent, kOnce };

// What a request may bring, or its reply take along, beyond the body.
enum class Payload : std::uint8_t { kNone, kInline, kBulk };

// One row for each type of fop, here and nowhere else. To add one: its bodies in bodies.h and at
// the end of the unions of wire.fbs, its row, its conversion in body_wire.cc, its seeds for the
// fuzzer.
struct FopType {
    std::uint16_t number;  // On the wire: never reused.
    std::string_view name;
    std::string_view summary;
    Rights rights;  // All of these are needed.
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
            .rights = kRead,
            .lane = Lane::kData,
            .repeat = Repeat::kIdempotent,
            .payload = Payload::kInline},
    FopType{.number = 3,
            .name = "bulk_echo",
            .summary = "Memory of the client is fetched and written back to other memory of it.",
            .rights = kRead | kWrite,
            .lane = Lane::kData,
            .repeat = Repeat::kOnce,
            .payload = Payload::kBulk},
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

// nullptr: no type we know.
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

#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "fop/message.h"

namespace fopd::fop {

// Messages as the code makes them: what the fuzzer starts from (tests/fuzz/corpus/message) and what
// docs/formats/message.md explains.

// A request and a reply of each type, with all that this type may carry; a type without one ends
// the program. What they refer to is static.
Request sample_request(std::uint16_t type);
Reply sample_reply(std::uint16_t type);

struct SampleMessage {
    std::string name;
    std::vector<std::byte> bytes;
};

// One for each type of fop and direction, some with several fops, one of each other kind.
std::vector<SampleMessage> sample_messages();

// The message of the worked example: two requests, of which one has a payload.
std::vector<std::byte> example_message();

// The list of objects of the worked example of docs/formats/listing.md.
std::vector<std::byte> example_listing();

// One payload of each kind of listing (tests/fuzz/corpus/listing).
std::vector<SampleMessage> sample_listings();

// "00000010  66 6f 70 64 …  |fopd…|", 16 bytes a line.
std::string hex_dump(std::span<const std::byte> bytes);

}  // namespace fopd::fop

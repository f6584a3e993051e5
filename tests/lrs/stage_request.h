#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "lrs/classes/described_request.h"
#include "tests/catch.h"

namespace fopd::lrs::testing {

// A request that was described, with a number to know it by.
struct StageRequest : Request {
    explicit StageRequest(std::string_view text) {
        auto parsed = DescribedRequest::parse(text);
        if (!parsed) INFO(to_string(parsed.error()));
        REQUIRE(parsed.has_value());
        described = *std::move(parsed);
        attributes = described->attributes();
    }

    std::unique_ptr<DescribedRequest> described;
    std::uint64_t number = 0;
    bool is_waiting = false;  // As its stage knows.
    std::size_t locality = 0;
};

}  // namespace fopd::lrs::testing

// SPDX-License-Identifier: BSD-2-Clause
#include "client/request_fault.h"

#include <algorithm>
#include <variant>

#include "core/printable.h"
#include "fop/name.h"
#include "fop/principal.h"

namespace fopd::client {

namespace {

// At most this many bytes of a text are shown.
constexpr std::size_t kShownBytesMax = 24;

// Cuts the text to kShownBytesMax, not within a character.
std::string beginning_of(std::string_view text) {
    const bool is_cut = text.size() > kShownBytesMax;
    std::size_t end = std::min(text.size(), kShownBytesMax);
    const auto continues = [&](std::size_t at) {
        return (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80;
    };
    while (is_cut && end > kShownBytesMax - 3 && continues(end)) --end;
    std::string shown = "\"";
    core::append_printable(shown, text.substr(0, end), core::Quotes::kEscape);
    return shown + (is_cut ? "...\"" : "\"");
}

template <typename Body>
std::string fault_in(const Body& body) {
    std::string fault;
    if constexpr (requires { body.owner; }) fault = fault_of_name("owner", body.owner);
    if constexpr (requires { body.group; }) {
        if (fault.empty()) fault = fault_of_name("group", body.group);
    }
    if constexpr (requires { body.collection; }) {
        if (fault.empty()) fault = fault_of_name("collection", body.collection);
    }
    if constexpr (requires { body.prefix; }) {
        const std::string_view prefix = body.prefix;
        if (prefix.size() > fop::kObjectNameBytesMax) {
            fault = "the prefix " + beginning_of(prefix) + " is longer than a name may be, " +
                    std::to_string(fop::kObjectNameBytesMax) + " bytes";
        }
    }
    return fault;
}

}  // namespace

std::string fault_of_name(std::string_view what, std::string_view text) {
    if (fop::is_name(text)) return {};
    return "the " + std::string(what) + " " + beginning_of(text) +
           " is not a valid name: at most " + std::to_string(fop::kNameBytesMax) +
           " bytes of UTF-8 without control characters";
}

std::string fault_of(const fabric::CallRequest& request) {
    std::string fault = fault_of_name("pool", request.header.pool);
    if (fault.empty()) fault = fault_of_name("job", request.header.job);
    if (!fault.empty()) return fault;
    return std::visit([](const auto& body) { return fault_in(body); }, request.body);
}

}  // namespace fopd::client

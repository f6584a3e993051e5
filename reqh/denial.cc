#include "reqh/denial.h"

#include <array>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "core/ensure.h"

namespace fopd::reqh {

namespace {

std::string with_token(std::string text, std::string_view token) {
    if (token.empty()) return text;
    text += "; ";
    text += token;
    return text;
}

}  // namespace

std::string denial_by_rights(fop::Rights needed, fop::Rights own, std::string_view token) {
    const auto missing =
        fop::Rights::from_bits(static_cast<std::uint16_t>(needed.bits() & ~own.bits()));
    ENSURE(missing.has_value());
    const std::string yours = "your rights are " + fop::to_text(own);
    // "admin" is no verb.
    if (missing->cover(fop::kAdmin)) {
        return with_token("the right " + fop::to_text(*missing) + " is needed; " + yours, token);
    }
    return with_token("may not " + fop::to_text(*missing) + ": " + yours, token);
}

std::string denial_by_mode(std::string_view what, const store::Object& object, Looks looks,
                           std::string_view token) {
    std::string text = "may not " + std::string(what) + ": ";
    if (looks == Looks::kHidden)
        return with_token(text + "the object's mode does not let you", token);
    std::array<char, 16> mode{};
    std::snprintf(mode.data(), mode.size(), "mode %04o", static_cast<unsigned>(object.mode));
    text += mode.data();
    text += ", owner ";
    text += object.owner;
    if (!object.group.empty()) {
        text += ", group ";
        text += object.group;
    }
    return with_token(std::move(text), token);
}

}  // namespace fopd::reqh

#pragma once

#include <expected>
#include <string_view>

#include "core/result.h"
#include "fop/status.h"

namespace fopd::reqh {

// Why a fop is refused, as in its reply.
struct [[nodiscard]] Refusal {
    fop::Status status = fop::Status::kInternal;
    std::string_view words{};  // Static, or stored in RefusalWords.
};

template <typename T = void>
using Granted = std::expected<T, Refusal>;

inline Refusal refusal_of(const Error& error) {
    return {.status = fop::status_of(error.code), .words = error.context};
}
// The refusal for an error before anything was changed: the client may try again.
inline Refusal untraced(const Error& error) {
    if (error.code != Errc::kClosed) return refusal_of(error);
    return {.status = fop::Status::kTryAgain, .words = error.context};
}
inline std::unexpected<Refusal> refused(fop::Status status, std::string_view words) {
    return std::unexpected(Refusal{.status = status, .words = words});
}
inline std::unexpected<Refusal> refused(const Error& error) {
    return std::unexpected(refusal_of(error));
}
inline std::unexpected<Refusal> refused(const Refusal& refusal) {
    return std::unexpected(refusal);
}

}  // namespace fopd::reqh

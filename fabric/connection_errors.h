#pragma once

#include "core/result.h"

// Why a connection or one of its operations ended, in the words of every transport.
namespace fopd::fabric {

inline constexpr Error kEndedHere{.code = Errc::kClosed, .context = "connection closed"};
inline constexpr Error kEndedThere{.code = Errc::kClosed,
                                   .context = "connection closed by the peer"};
inline constexpr Error kRefused{.code = Errc::kDenied, .context = "connection refused"};
inline constexpr Error kTooEarly{.code = Errc::kInvalid, .context = "not connected yet"};
inline constexpr Error kTooLong{.code = Errc::kInvalid, .context = "message longer than a buffer"};
inline constexpr Error kGivenUp{.code = Errc::kCancelled, .context = "transfer given up"};
inline constexpr Error kNotOpened{.code = Errc::kInvalid, .context = "memory that was not opened"};

}  // namespace fopd::fabric

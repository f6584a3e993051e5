#pragma once

#include <span>
#include <string>
#include <string_view>

#include "store/index.h"

namespace fopd::store::testing {

inline Bytes bytes_of(std::string_view text) {
    return std::as_bytes(std::span(text));
}

inline std::string text_of(Bytes bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace fopd::store::testing

#pragma once

// The one place that knows which Catch2 this is: version 2 (Debian 12) or version 3 (Debian 13).
#if FOPD_CATCH_VERSION == 2
#include <catch2/catch.hpp>
#else
#include <catch2/catch_all.hpp>
using Catch::Approx;                       // NOLINT(misc-unused-using-decls)
using Catch::Generators::from_range;       // NOLINT(misc-unused-using-decls)
using Catch::Matchers::ContainsSubstring;  // NOLINT(misc-unused-using-decls)
#endif

#if FOPD_CATCH_VERSION == 2
using Catch::Matchers::Contains;
inline auto ContainsSubstring(const std::string& text) {
    return Contains(text);
}
#endif

#include "daemon/metrics_format.h"

#include <string_view>

#include "tests/catch.h"

using namespace fopd;
using namespace fopd::daemon;

TEST_CASE("daemon metrics format: OpenMetrics only if Accept asks for it", "[daemon]") {
    struct Row {
        std::string_view accept;
        MetricsFormat format;
    };
    constexpr auto kText = MetricsFormat::kText;
    constexpr auto kOpen = MetricsFormat::kOpenMetrics;
    const Row row = GENERATE_COPY(
        Row{"", kText}, Row{"*/*", kText}, Row{"text/html,application/xhtml+xml,*/*;q=0.8", kText},
        Row{"text/plain", kText}, Row{"application/json", kText},
        Row{"application/openmetrics-text", kOpen},
        Row{"Application/OpenMetrics-Text; Version=1.0.0", kOpen},
        Row{"application/openmetrics-text;version=\"1.0.0\"", kOpen},
        // Prometheus 2 and 3.
        Row{"application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;"
            "q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            kOpen},
        Row{"application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
            "application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping="
            "allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
            kOpen},
        // It is the weights that decide, not the order.
        Row{"text/plain, application/openmetrics-text", kOpen},
        Row{"application/openmetrics-text;q=0.4, text/plain;q=0.5", kText},
        Row{"text/plain;q=0.4, application/openmetrics-text;q=0.5", kOpen},
        Row{"application/openmetrics-text;q=0.5, */*", kText},
        Row{"application/openmetrics-text, */*;q=0.5", kOpen},
        Row{"application/openmetrics-text;q=0, text/plain;q=0.1", kText},
        Row{"application/openmetrics-text;q=0", kText}, Row{"text/plain;q=0, */*;q=0.5", kOpen},
        Row{"application/*", kOpen},
        // Only a version that we do not have, and nonsense.
        Row{"application/openmetrics-text;version=2.0.0", kText},
        Row{"application/openmetrics-text;q=high", kText},
        Row{"application/openmetrics-text;q=2", kText}, Row{",,;;=,\"", kText},
        Row{"x;a=\",application/openmetrics-text\"", kText});
    CAPTURE(row.accept);

    REQUIRE(preferred_format(row.accept) == row.format);
}

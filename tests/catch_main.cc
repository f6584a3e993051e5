#if FOPD_CATCH_VERSION == 2
#define CATCH_CONFIG_RUNNER
#endif
#include <iostream>

#include "tests/catch.h"
#include "tests/replay.h"

namespace {

#if FOPD_CATCH_VERSION == 2
using ListenerBase = Catch::TestEventListenerBase;
#else
using ListenerBase = Catch::EventListenerBase;
#endif

// Catch2 names what it calls.
// NOLINTBEGIN(readability-identifier-naming)
class ReplayPrinter final : public ListenerBase {
public:
    using ListenerBase::ListenerBase;

    void testCaseStarting(const Catch::TestCaseInfo&) override { fopd::testing::Replay::forget(); }
    void testCaseEnded(const Catch::TestCaseStats& stats) override {
        const std::string& hint = fopd::testing::Replay::last_hint();
        if (stats.totals.assertions.failed > 0 && !hint.empty()) std::cerr << hint << '\n';
    }
};
// NOLINTEND(readability-identifier-naming)

}  // namespace

CATCH_REGISTER_LISTENER(ReplayPrinter)

int main(int argc, char* argv[]) {
    return Catch::Session().run(argc, argv);
}

#pragma once

#include <cstdint>
#include <string>

namespace fopd::testing {

// A test that fails after one was made prints its seed, the commit and the command that runs the
// test again. A base of the simulated worlds that tests make, so that none is made without it.
class Replay {
public:
    // Whose choice the seed was. One that a test fixed needs no FOPD_SEED to come again.
    enum class Seed : std::uint8_t { kOfTest, kOfSwarm };

    explicit Replay(std::uint64_t seed, Seed whose = Seed::kOfTest);

    // What the last one has to say; empty when there was none since forget(). Catch2's messages
    // break lines, and a command must stay in one piece; so catch_main.cc prints it at the end of a
    // test that failed, also of one that a signal ended.
    static const std::string& last_hint();
    static void forget();
};

}  // namespace fopd::testing

#include "tests/replay.h"

#include <filesystem>
#include <system_error>

#include "tests/catch.h"

namespace fopd::testing {

namespace {

// The program that runs, where it runs from.
std::string program() {
    std::error_code failed;
    const auto path = std::filesystem::read_symlink("/proc/self/exe", failed);
    return failed ? "<this program>" : path.string();
}

// One word for a shell, and one name for Catch2, to which commas and brackets mean more.
std::string test_argument() {
    std::string argument = "'";
    for (const char each : std::string(Catch::getResultCapture().getCurrentTestName())) {
        if (each == '\'') {
            argument += "'\\''";
            continue;
        }
        if (each == ',' || each == '[' || each == '"' || each == '\\') argument += '\\';
        argument += each;
    }
    return argument + "'";
}

std::string hint(std::uint64_t seed, Replay::Seed whose) {
    const std::string number = std::to_string(seed);
    std::string command = program() + ' ' + test_argument();
    if (whose == Replay::Seed::kOfSwarm) command = "FOPD_SEED=" + number + ' ' + command;
    return "seed=" + number + " commit=" FOPD_VERSION "\nreplay: " + command;
}

std::string& kept_hint() {
    static std::string kept;
    return kept;
}

}  // namespace

Replay::Replay(std::uint64_t seed, Seed whose) {
    kept_hint() = hint(seed, whose);
}

const std::string& Replay::last_hint() {
    return kept_hint();
}

void Replay::forget() {
    kept_hint().clear();
}

}  // namespace fopd::testing

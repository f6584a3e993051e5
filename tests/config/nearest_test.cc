#include "config/nearest.h"

#include <optional>
#include <string>
#include <vector>

#include "config/problem.h"
#include "tests/catch.h"

using namespace fopd::config;

namespace {

const std::vector<std::string> kKeys{"name", "data_dir", "drain_timeout", "mode", "policy", "tbf"};

}  // namespace

TEST_CASE("config nearest: a letter missing, added, wrong or two swapped", "[config]") {
    REQUIRE(nearest("nam", kKeys) == "name");
    REQUIRE(nearest("names", kKeys) == "name");
    REQUIRE(nearest("nane", kKeys) == "name");
    REQUIRE(nearest("nmae", kKeys) == "name");
    REQUIRE(nearest("tfb", kKeys) == "tbf");
    REQUIRE(nearest("drian_timeuot", kKeys) == "drain_timeout");
    REQUIRE(nearest("polciy", kKeys) == "policy");
}

TEST_CASE("config nearest: case and the kind of dash do not count", "[config]") {
    REQUIRE(nearest("DATA-DIR", kKeys) == "data_dir");
    REQUIRE(nearest("DrainTimeout", kKeys) == "drain_timeout");
}

TEST_CASE("config nearest: the nearest wins, and the first of equals", "[config]") {
    REQUIRE(nearest("mame", kKeys) == "name");
    REQUIRE(nearest("abx", {"aby", "abz"}) == "aby");
}

TEST_CASE("config nearest: nothing is suggested for another word", "[config]") {
    REQUIRE(nearest("colour", kKeys) == std::nullopt);
    REQUIRE(nearest("", kKeys) == std::nullopt);
    REQUIRE(nearest("x", kKeys) == std::nullopt);
    REQUIRE(nearest("name", {}) == std::nullopt);
    REQUIRE(nearest(std::string(1 << 20, 'n'), kKeys) == std::nullopt);
}

TEST_CASE("config nearest: in words of up to four letters one may be wrong, else two", "[config]") {
    REQUIRE(nearest("--foo", {"--job"}) == std::nullopt);
    REQUIRE(nearest("--jab", {"--job"}) == "--job");
    REQUIRE(nearest("rade", {"rate"}) == "rate");
    REQUIRE(nearest("trad", {"read"}) == std::nullopt);
    REQUIRE(nearest("names", {"nam"}) == std::nullopt);
    REQUIRE(nearest("plocy", kKeys) == "policy");
    REQUIRE(nearest("drain_tiem", kKeys) == std::nullopt);
}

TEST_CASE("config problem: quoted text has no control characters", "[config]") {
    REQUIRE(in_quotes("a\"b\\c") == R"("a\"b\\c")");
    REQUIRE(in_quotes("\x1b[2J\n") == R"("\x1b[2J\x0a")");
    REQUIRE(in_quotes("gr\xc3\xbc\xc3\x9f") == "\"gr\xc3\xbc\xc3\x9f\"");
    REQUIRE(in_quotes("\xc2\x9b\xe2\x80\xae") == R"("\u009b\u202e")");
    REQUIRE(in_quotes("\xff\xc3") == R"("\xff\xc3")");
    REQUIRE(in_quotes(std::string(1000, 'a')).size() < 70);
}

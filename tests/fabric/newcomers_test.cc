// Goal: one host cannot use up the places for connections that have not said anything yet.

#include "fabric/tcp/newcomers.h"

#include <deque>
#include <string>

#include "fabric/address.h"
#include "tests/catch.h"

namespace fopd::fabric {

namespace {

constexpr std::size_t kPlaces = 16;

class Crowd {
public:
    // A newcomer of this host, with a port of its own.
    Newcomer& add(const std::string& host) {
        const Address address{
            .scheme = kTcpScheme, .host = host, .port = next_port_++, .locality = {}};
        Newcomer& newcomer =
            all_.emplace_back(OwnedSocket(), socket_address(address, kTcpScheme).value());
        places_.add(newcomer);
        return newcomer;
    }
    void add(const std::string& host, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) add(host);
    }
    std::size_t present() const { return places_.count(); }
    void remove(Newcomer& newcomer) { places_.remove(newcomer); }

private:
    std::deque<Newcomer> all_;
    Newcomers places_{kPlaces};
    std::uint16_t next_port_ = 1;
};

}  // namespace

TEST_CASE("fabric newcomers: one host gets half of the places", "[fabric]") {
    Crowd crowd;
    Newcomer& first = crowd.add("10.0.0.1");
    crowd.add("10.0.0.1", kPlaces / 2 - 1);
    REQUIRE_FALSE(first.leave.cancelled());

    Newcomer& last = crowd.add("10.0.0.1");

    REQUIRE(first.leave.cancelled());
    REQUIRE_FALSE(last.leave.cancelled());
    REQUIRE(crowd.present() == kPlaces / 2);
}

TEST_CASE("fabric newcomers: addresses of one IPv6 network share the places of one host",
          "[fabric]") {
    Crowd crowd;
    Newcomer& first = crowd.add("2001:db8::1");
    crowd.add("2001:db8::2", kPlaces / 2 - 1);

    crowd.add("2001:db8::3");

    REQUIRE(first.leave.cancelled());
}

TEST_CASE("fabric newcomers: a host that connects often ends none of another host", "[fabric]") {
    Crowd crowd;
    Newcomer& other = crowd.add("10.0.0.2");

    crowd.add("10.0.0.1", 10 * kPlaces);

    REQUIRE_FALSE(other.leave.cancelled());
    REQUIRE(crowd.present() < kPlaces);
}

TEST_CASE("fabric newcomers: when no place is left, a new host gets one of the largest share",
          "[fabric]") {
    Crowd crowd;
    Newcomer& first = crowd.add("10.0.0.1");
    crowd.add("10.0.0.1", kPlaces / 2 - 1);
    for (int host = 2; crowd.present() < kPlaces; ++host)
        crowd.add("10.0.0." + std::to_string(host));

    Newcomer& late = crowd.add("10.0.1.1");

    REQUIRE(first.leave.cancelled());
    REQUIRE_FALSE(late.leave.cancelled());
    REQUIRE(crowd.present() == kPlaces);
}

TEST_CASE("fabric newcomers: a host with more than its share now exchanges its oldest newcomer",
          "[fabric]") {
    Crowd crowd;
    Newcomer& first = crowd.add("10.0.0.1");
    crowd.add("10.0.0.1", kPlaces / 2 - 1);
    // Fewer places are left now than the first host has.
    crowd.add("10.0.0.2", kPlaces / 4);
    const std::size_t before = crowd.present();

    Newcomer& last = crowd.add("10.0.0.1");

    REQUIRE(first.leave.cancelled());
    REQUIRE_FALSE(last.leave.cancelled());
    REQUIRE(crowd.present() == before);
}

TEST_CASE("fabric newcomers: among hosts with as many, the oldest newcomer gives way", "[fabric]") {
    Crowd crowd;
    Newcomer& oldest = crowd.add("200.0.0.1");
    Newcomer& second = crowd.add("10.0.0.1");
    for (int host = 2; crowd.present() < kPlaces; ++host)
        crowd.add("10.0.0." + std::to_string(host));

    crowd.add("10.0.1.1");

    REQUIRE(oldest.leave.cancelled());
    REQUIRE_FALSE(second.leave.cancelled());
}

TEST_CASE("fabric newcomers: one that has left makes room", "[fabric]") {
    Crowd crowd;
    Newcomer& first = crowd.add("10.0.0.1");
    Newcomer& second = crowd.add("10.0.0.1");
    crowd.add("10.0.0.1", kPlaces / 2 - 2);

    crowd.remove(second);
    crowd.remove(second);
    crowd.add("10.0.0.1");

    REQUIRE_FALSE(first.leave.cancelled());
    REQUIRE(crowd.present() == kPlaces / 2);
}

}  // namespace fopd::fabric

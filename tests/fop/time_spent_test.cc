// Goal: durations keep 1/2048 of their value in 16 bits, and travel in a reply as they are.

#include "fop/time_spent.h"

#include <vector>

#include "core/random.h"
#include "fop/message_reader.h"
#include "fop/message_writer.h"
#include "tests/catch.h"

using namespace fopd;
using namespace fopd::fop;

namespace {

Duration packed_and_back(Duration time) {
    TimeSpent spent;
    spent.set(SpentOn::kDisk, time);
    return spent.of(SpentOn::kDisk);
}

}  // namespace

TEST_CASE("fop: a time in a reply is rounded to 100 ns or 1/2048", "[fop]") {
    REQUIRE(packed_and_back(0ns) == 0ns);
    REQUIRE(packed_and_back(-5ns) == 0ns);
    REQUIRE(packed_and_back(99ns) == 0ns);
    REQUIRE(packed_and_back(100ns) == 100ns);
    REQUIRE(packed_and_back(204'700ns) == 204'700ns);  // The last that is kept as it is.
    REQUIRE(packed_and_back(204'800ns) == 204'800ns);
    core::Random random(3);
    for (int i = 0; i < 10'000; ++i) {
        const Duration time(random.below(1ULL << (1 + random.below(48))));
        const Duration lost = time - packed_and_back(time);
        CAPTURE(time.count());
        REQUIRE(lost >= 0ns);
        REQUIRE(lost <= std::max<Duration>(99ns, time / 2048 + 99ns));
    }
    // More than five days are five days.
    REQUIRE(packed_and_back(Duration::max()) > 24h * 5);
}

TEST_CASE("fop: the times of a fop take 24 bytes and survive a message", "[fop]") {
    static_assert(sizeof(TimeSpent) == 24);
    TimeSpent times;
    for (std::size_t i = 0; i < kSpentOnCount; ++i) {
        times.set(static_cast<SpentOn>(i), 1ms * static_cast<int>(i + 1));
    }
    alignas(kMessageAlignment) std::array<std::byte, 4096> memory{};
    MessageWriter writer;
    writer.start_replies(memory);
    REQUIRE(writer.add(Reply{.id = 1024, .body = PingReply{}, .times = times}));
    REQUIRE(writer.add(Reply{.id = 1025, .body = PingReply{}}));
    const std::size_t bytes = writer.seal({});
    const auto replies = read_replies(std::span(memory).first(bytes));
    REQUIRE(replies.has_value());
    REQUIRE((*replies)[0].times == times);
    REQUIRE_FALSE((*replies)[1].times.has_value());
}

TEST_CASE("fop: a message of requests says whether it asks for times", "[fop]") {
    for (const bool wanted : {false, true}) {
        alignas(kMessageAlignment) std::array<std::byte, 4096> memory{};
        MessageWriter writer;
        writer.start_requests(memory, {.wants_times = wanted});
        REQUIRE(writer.add(Request{.id = 1024, .type = 1, .body = Ping{}}));
        const std::size_t bytes = writer.seal({});
        const auto requests = read_requests(std::span(memory).first(bytes));
        REQUIRE(requests.has_value());
        REQUIRE(requests->header().wants_times == wanted);
    }
}

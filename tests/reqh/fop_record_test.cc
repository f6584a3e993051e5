#include "reqh/fop_record.h"

#include "tests/catch.h"

using namespace fopd;
using namespace fopd::reqh;

TEST_CASE("reqh fop id: a written id can be read", "[reqh]") {
    for (const FopId id : {FopId{}, FopId{.session = 0x5f3a, .request = 17},
                           FopId{.session = ~0ULL, .request = ~0ULL}}) {
        CHECK(parse_fop_id(format_fop_id(id)) == id);
    }
    CHECK(format_fop_id({.session = 0x5f3a, .request = 17}) == "5f3a-17");
}

TEST_CASE("reqh fop id: an invalid id is refused", "[reqh]") {
    for (const char* text : {"", "-", "5f3a", "5f3a-", "-17", "5f3a-17 ", "xyz-1", "5f-0x1",
                             "5f-1-2", "fffffffffffffffff-1"}) {
        CAPTURE(text);
        CHECK_FALSE(parse_fop_id(text).has_value());
    }
}

TEST_CASE("reqh short text: what does not fit is cut off", "[reqh]") {
    CHECK(ShortText("alice").view() == "alice");
    CHECK(ShortText(std::string(100, 'x')).view() == std::string(63, 'x'));
    CHECK(ShortText().view().empty());
}

TEST_CASE("reqh fop history: the last 256 are kept, the newest of a name is found", "[reqh]") {
    FopHistory history;
    for (std::uint64_t number = 0; number < 300; ++number) {
        FopRecord& record = history.add();
        record.id = {.session = 1, .request = number};
        record.status = fop::Status::kDone;
    }

    CHECK(history.count() == 256);
    CHECK(history.find({.session = 1, .request = 43}) == nullptr);
    CHECK(history.find({.session = 1, .request = 44}) != nullptr);
    CHECK(history.find({.session = 1, .request = 299}) != nullptr);
    CHECK(history.find({.session = 2, .request = 299}) == nullptr);

    FopRecord& again = history.add();
    again.id = {.session = 1, .request = 299};
    again.status = fop::Status::kDenied;
    CHECK(history.find({.session = 1, .request = 299})->status == fop::Status::kDenied);
}

TEST_CASE("reqh slow fops: a principal cannot drive out those of the others", "[reqh]") {
    SlowFops slow;
    const auto add = [&slow](std::uint64_t request, const char* share) {
        FopRecord record;
        record.id = {.session = 1, .request = request};
        slow.add(record, share);
    };
    const auto is_there = [&slow](std::uint64_t request) {
        return slow.find({.session = 1, .request = request}) != nullptr;
    };
    add(1, "alice");
    for (std::uint64_t request = 1000; request < 2000; ++request) add(request, "greedy");
    add(2, "bob");
    for (std::uint64_t request = 2000; request < 3000; ++request) add(request, "greedy");

    CHECK(is_there(1));
    CHECK(is_there(2));
    CHECK(slow.all().size() == SlowFops::kCountMax);
    CHECK(is_there(2999));
    CHECK(is_there(3000 - SlowFops::kCountMax + 2));
    CHECK_FALSE(is_there(3000 - SlowFops::kCountMax + 1));
    CHECK(slow.all().front().id.request == 1);

    // The others gain no more than their part either.
    for (std::uint64_t request = 3000; request < 4000; ++request) add(request, "bob");
    CHECK(is_there(1));
    CHECK(is_there(2999));
    CHECK(is_there(3999));
}

TEST_CASE("reqh slow fops: with one fop of each principal, another principal finds room",
          "[reqh]") {
    SlowFops slow;
    for (std::uint64_t request = 0; request <= SlowFops::kCountMax; ++request) {
        FopRecord record;
        record.id = {.session = 1, .request = request};
        slow.add(record, "principal " + std::to_string(request));
    }

    CHECK(slow.all().size() == SlowFops::kCountMax);
    CHECK(slow.find({.session = 1, .request = SlowFops::kCountMax}) != nullptr);
}

TEST_CASE("reqh phase times: each phase has what passed in it", "[reqh]") {
    PhaseTimes times;
    times.begin(Instant(1s));
    times.enter(Phase::kAuthenticate, Instant(3s));
    times.enter(Phase::kExecute, Instant(3s));
    times.enter(Phase::kReply, Instant(10s));
    times.end(Instant(10s));

    CHECK(times.of(Phase::kQueued) == 2s);
    CHECK(times.of(Phase::kAuthenticate) == 0s);
    CHECK(times.of(Phase::kExecute) == 7s);
    CHECK(times.total() == 9s);
    CHECK(times.reached(Phase::kExecute));
    CHECK_FALSE(times.reached(Phase::kLocalResources));
}

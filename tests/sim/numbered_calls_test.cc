// Goal: each law of the calls of members can be seen broken. Method: calls and answers made by
// hand.

#include "sim/epochs/numbered_calls.h"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tests/catch.h"

using namespace fopd;
using sim::EpochWatch;
using sim::NumberedCalls;

namespace {

constexpr Instant kCallsBegin{1s};
constexpr Duration kLongestCall = 3s;

// Members a, b and c with their first incarnation, in view 1 with the epochs 1 to 100.
struct Callers {
    Callers() : calls({"a", "b", "c"}) {
        eh::View view{.number = 1, .epoch_low = 1, .epoch_high = 100};
        for (const char* const name : {"a", "b", "c"})
            view.roster.push_back({.name = name, .incarnation = 1, .joined = 1});
        watch.on_commit(std::make_shared<const eh::CommittedView>(std::move(view)));
    }

    // Returns its contribution.
    std::vector<std::byte> call(std::size_t member, std::size_t bytes = 24) {
        auto numbers = calls.numbers(member, bytes);
        calls.on_call(watch, member, {.bytes = bytes, .longest = kLongestCall}, kCallsBegin);
        return numbers;
    }
    void answer(std::size_t member, Result<eh::EpochNumber> epoch,
                const std::vector<std::byte>& result, Duration waited = 1s) {
        const eh::peers::Answer answer{.epoch = epoch, .data = result, .view = epoch ? 1U : 0U};
        const std::string name(1, static_cast<char>('a' + member));
        if (epoch) watch.on_epoch(name, answer);
        calls.on_answer(watch, member, answer, {.incarnation = 1, .numbers = result},
                        kCallsBegin + waited);
    }
    std::string broken_law() const { return watch.broken().substr(0, watch.broken().find(':')); }

    EpochWatch watch;
    NumberedCalls calls;
};

std::vector<std::byte> combined(const std::vector<std::vector<std::byte>>& contributions) {
    std::vector<std::byte> sum = contributions.front();
    for (std::size_t i = 1; i < contributions.size(); ++i)
        NumberedCalls::combine(sum, sum, contributions[i]);
    return sum;
}

constexpr Error kNoEpochNow{.code = Errc::kTimedOut, .context = "none"};

}  // namespace

TEST_CASE("sim numbered calls: nothing is wrong with results of all members", "[sim]") {
    Callers all;
    for (eh::EpochNumber epoch = 1; epoch <= 2; ++epoch) {
        const auto result = combined({all.call(0), all.call(1), all.call(2)});
        for (std::size_t i = 0; i < 3; ++i) all.answer(i, epoch, result);
    }
    CHECK(all.watch.broken() == "");
    CHECK(all.calls.whole_results() == 6);
    CHECK_FALSE(all.calls.is_pending(0));
}

TEST_CASE("sim numbered calls: a call that ended with an error may be in a result", "[sim]") {
    Callers all;
    const auto result = combined({all.call(0), all.call(1), all.call(2)});
    all.answer(0, std::unexpected(kNoEpochNow), {});
    all.call(0);
    all.answer(1, 1, result);
    CHECK(all.watch.broken() == "");
}

TEST_CASE("sim numbered calls: a member contributes once", "[sim]") {
    Callers all;
    const auto of_a = all.call(0);
    all.answer(1, 1, combined({of_a, all.call(1), all.call(2), of_a}));
    CHECK(all.broken_law() == "I3");
}

TEST_CASE("sim numbered calls: only a member that leaves is missing", "[sim]") {
    const bool leaves = GENERATE(false, true);
    Callers all;
    if (leaves) all.calls.on_leave(2, 1);
    const auto result = combined({all.call(0), all.call(1)});
    all.answer(0, 1, result);
    CHECK(all.broken_law() == (leaves ? "" : "I3"));
}

TEST_CASE("sim numbered calls: a result has the present call of who gets it", "[sim]") {
    Callers all;
    const auto result = combined({all.call(0), all.call(1), all.call(2)});
    all.answer(0, std::unexpected(kNoEpochNow), {});
    all.call(0);
    all.answer(0, 1, result);
    CHECK(all.broken_law() == "I3");
}

TEST_CASE("sim numbered calls: a contribution is in one result of a member", "[sim]") {
    Callers all;
    const auto of_b = all.call(1);
    const auto of_c = all.call(2);
    all.answer(0, 1, combined({all.call(0), of_b, of_c}));
    REQUIRE(all.watch.broken() == "");
    all.answer(0, 2, combined({all.call(0), of_b, of_c}));
    CHECK(all.broken_law() == "I3b");
}

TEST_CASE("sim numbered calls: a call has one answer", "[sim]") {
    Callers all;
    all.call(0);
    SECTION("and no second one") {
        all.answer(0, std::unexpected(kNoEpochNow), {});
        all.answer(0, std::unexpected(kNoEpochNow), {});
    }
    SECTION("before the next call") {
        all.call(0);
    }
    CHECK(all.broken_law() == "I5");
}

TEST_CASE("sim numbered calls: a call does not outlast its process", "[sim]") {
    Callers all;
    all.call(0);
    all.calls.on_crash(0);
    all.call(0);
    CHECK(all.watch.broken() == "");
}

TEST_CASE("sim numbered calls: an answer comes in time", "[sim]") {
    const bool is_answered = GENERATE(false, true);
    Callers all;
    all.call(0);
    const Duration late = kLongestCall + 1ms;
    all.calls.look(all.watch, 0, 0s, kCallsBegin + kLongestCall);
    // What the process did not run does not count.
    all.calls.look(all.watch, 0, 1ms, kCallsBegin + late);
    REQUIRE(all.watch.broken() == "");
    if (is_answered) {
        all.answer(0, std::unexpected(kNoEpochNow), {}, late);
    } else {
        all.calls.look(all.watch, 0, 0s, kCallsBegin + late);
    }
    CHECK(all.broken_law() == "I6");
}

TEST_CASE("sim numbered calls: a result is as long as the shortest contribution", "[sim]") {
    const std::size_t bytes = GENERATE(16U, 24U);
    Callers all;
    auto result = combined({all.call(0, bytes), all.call(1)});
    const auto of_c = all.call(2);
    NumberedCalls::combine(result, result, std::span(of_c).first(bytes));
    all.answer(1, 1, result);
    CHECK(all.watch.broken() == "");

    Callers others;
    others.call(0, 16);
    others.answer(0, 1, std::vector<std::byte>(24));
    CHECK(others.broken_law() == "I9");
}

TEST_CASE("sim numbered calls: a result is not shorter than the shortest contribution", "[sim]") {
    // Behind the numbers of all members there is more.
    const std::size_t bytes = GENERATE(24U, 32U);
    Callers all;
    std::vector<std::vector<std::byte>> contributions;
    for (std::size_t i = 0; i < 3; ++i) {
        contributions.push_back(all.call(i, i == 0 ? 40U : 32U));
        contributions.back().resize(bytes);
    }
    all.answer(1, 1, combined(contributions));
    CHECK(all.broken_law() == (bytes == 32 ? "" : "I3"));
}

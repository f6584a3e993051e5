// Goal: the contract of an epoch handler, kept by the one without peers.

#include "eh/local.h"

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "tests/catch.h"

using namespace fopd;
using namespace fopd::eh;

namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
    return std::as_bytes(std::span(text));
}

// Notes what it is told, and is ready again at once as long as it is told to.
class Noting final : public Participant {
public:
    explicit Noting(EpochHandler& handler) : handler_(handler) {}

    void on_epoch(Result<EpochNumber> epoch, std::span<const std::byte> data) override {
        REQUIRE(++depth_ == 1);
        epochs.push_back(epoch);
        said.emplace_back(reinterpret_cast<const char*>(data.data()), data.size());
        if (leave_within) handler_.last_epoch(*epoch);
        if (again > 0) {
            --again;
            const std::string word = "again " + std::to_string(*epoch);
            REQUIRE(handler_.next_epoch(*epoch, bytes_of(word), *this));
            // Who waits already cannot ask.
            CHECK(handler_.next_epoch(*epoch, {}, *this).error().code == Errc::kBusy);
            if (leave_after) handler_.last_epoch(*epoch);
        }
        --depth_;
    }

    std::uint64_t again = 0;
    bool leave_within = false;
    bool leave_after = false;
    std::vector<Result<EpochNumber>> epochs;
    std::vector<std::string> said;

private:
    EpochHandler& handler_;
    int depth_ = 0;
};

}  // namespace

TEST_CASE("eh local: an epoch begins as soon as its participant is ready", "[eh]") {
    LocalEpochHandler handler;
    Noting participant(handler);

    REQUIRE(handler.next_epoch(kFirstEpoch, bytes_of("one"), participant));
    REQUIRE(handler.next_epoch(1, bytes_of("two"), participant));

    REQUIRE(participant.epochs.size() == 2);
    CHECK(participant.epochs[0] == 1);
    CHECK(participant.epochs[1] == 2);
    CHECK(participant.said == std::vector<std::string>{"one", "two"});
}

TEST_CASE("eh local: a participant ready within its callback is called again later", "[eh]") {
    LocalEpochHandler handler;
    Noting participant(handler);
    participant.again = 10'000;

    REQUIRE(handler.next_epoch(kFirstEpoch, bytes_of("first"), participant));

    REQUIRE(participant.epochs.size() == 10'001);
    CHECK(participant.epochs.back() == 10'001);
    CHECK(participant.said[0] == "first");
    CHECK(participant.said[1] == "again 1");
}

TEST_CASE("eh local: a wrong epoch and too much data are refused without a call", "[eh]") {
    LocalEpochHandler handler;
    Noting participant(handler);
    REQUIRE(handler.next_epoch(kFirstEpoch, {}, participant));
    const std::vector<std::byte> most(kEpochBytesMax);
    const std::vector<std::byte> too_many(kEpochBytesMax + 1);

    CHECK(handler.next_epoch(2, {}, participant).error().code == Errc::kInvalid);
    CHECK(handler.next_epoch(-1, {}, participant).error().code == Errc::kInvalid);
    CHECK(handler.next_epoch(1, too_many, participant).error().code == Errc::kInvalid);
    CHECK(participant.epochs.size() == 1);
    CHECK(handler.next_epoch(1, most, participant).has_value());
    CHECK(participant.said.back().size() == kEpochBytesMax);
}

TEST_CASE("eh local: a participant that returns starts without an epoch, and none repeats",
          "[eh]") {
    LocalEpochHandler handler;
    Noting participant(handler);
    REQUIRE(handler.next_epoch(kFirstEpoch, {}, participant));
    handler.last_epoch(1);

    CHECK(handler.next_epoch(1, {}, participant).error().code == Errc::kInvalid);
    REQUIRE(handler.next_epoch(kFirstEpoch, {}, participant));

    CHECK(participant.epochs.back() == 2);
}

TEST_CASE("eh local: a participant that leaves within its callback gets no further one", "[eh]") {
    LocalEpochHandler handler;
    Noting participant(handler);
    participant.leave_within = true;

    REQUIRE(handler.next_epoch(kFirstEpoch, {}, participant));

    CHECK(participant.epochs.size() == 1);
    CHECK(handler.next_epoch(1, {}, participant).error().code == Errc::kInvalid);
}

// Goal: the contract of an epoch handler, kept by the one without peers.

#include "eh/local.h"

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/virtual_world.h"
#include "tests/catch.h"
#include "tests/eh/fake_etcd.h"
#include "tests/eh/memory_file.h"

namespace local_test {

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

    CHECK(handler.next_epoch(2, {}, participant).error().os_errno == EINVAL);
    CHECK(handler.next_epoch(-1, {}, participant).error().os_errno == EINVAL);
    CHECK(handler.next_epoch(1, too_many, participant).error().os_errno == EMSGSIZE);
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

// -- numbers from a file --

namespace {

using eh::testing::EventLines;
using eh::testing::MemoryFile;

// Is ready again at once, until so many epochs have begun.
class Counting final : public Participant {
public:
    explicit Counting(EpochHandler& handler) : handler_(handler) {}

    void on_epoch(Result<EpochNumber> epoch, std::span<const std::byte>) override {
        if (epoch && --left > 0) (void)handler_.next_epoch(*epoch, {}, *this);
    }

    int left = 0;

private:
    EpochHandler& handler_;
};

// A process of a node, whose file outlives it.
class Life {
public:
    explicit Life(MemoryFile& file)
        : reactor_(world.make_reactor()),
          handler({.timeout = 4s},
                  LocalEpochHandler::Numbers{.reactor = *reactor_, .events = events, .file = file}),
          participant(handler) {}

    EpochNumber newest() const { return handler.epoch(); }

    core::VirtualWorld world{1};

private:
    std::unique_ptr<core::Reactor> reactor_;

public:
    EventLines events;
    LocalEpochHandler handler;
    Noting participant;
};

}  // namespace

TEST_CASE("eh local: numbers grow over restarts, whenever the process ends", "[eh]") {
    MemoryFile file;
    EpochNumber newest = 0;
    for (int life = 0; life < 5; ++life) {
        Life process(file);
        REQUIRE(process.handler.next_epoch(kFirstEpoch, {}, process.participant));
        // Not before the numbers are durable.
        CHECK(process.participant.epochs.empty());
        file.finish();
        REQUIRE(process.participant.epochs.size() == 1);
        REQUIRE(process.participant.epochs.front());
        CHECK(process.newest() > newest);
        process.participant.again = static_cast<std::uint64_t>(life);
        REQUIRE(process.handler.next_epoch(process.newest(), {}, process.participant));
        newest = process.newest();
        // The next life has the file as this one leaves it.
        if (life % 2 == 0) file.forget();
    }
}

TEST_CASE("eh local: a block of numbers costs one write, and no epoch waits for the next", "[eh]") {
    MemoryFile file;
    Life process(file);
    REQUIRE(process.handler.next_epoch(kFirstEpoch, {}, process.participant));
    file.finish();
    const std::size_t writes = file.writes;
    CHECK(writes == 1);
    Counting quick(process.handler);
    while (process.newest() < 2 * LocalEpochHandler::kBlock) {
        quick.left = 1000;
        REQUIRE(process.handler.next_epoch(kFirstEpoch, {}, quick));
        REQUIRE(quick.left == 0);
        file.finish();
    }
    CHECK(file.writes == 3);
}

TEST_CASE("eh local: without a durable number calls end with an error, until there is one",
          "[eh]") {
    MemoryFile file;
    Life process(file);
    file.fails_before = true;
    REQUIRE(process.handler.next_epoch(kFirstEpoch, {}, process.participant));
    file.finish();
    REQUIRE(process.participant.epochs.size() == 1);
    CHECK_FALSE(process.participant.epochs[0]);
    CHECK(process.events.take().size() == 1);

    REQUIRE(process.handler.next_epoch(kFirstEpoch, {}, process.participant));
    file.finish();
    CHECK(process.participant.epochs.size() == 1);  // Waits for the next try.
    file.fails_before = false;
    process.world.run_for(1s);
    file.finish();
    REQUIRE(process.participant.epochs.size() == 2);
    CHECK(process.participant.epochs[1]);
}

TEST_CASE("eh local: a file that hangs holds a call no longer than the timeout", "[eh]") {
    MemoryFile file;
    Life process(file);
    REQUIRE(process.handler.next_epoch(kFirstEpoch, {}, process.participant));
    process.world.run_for(3s);
    CHECK(process.participant.epochs.empty());
    process.world.run_for(1s);
    REQUIRE(process.participant.epochs.size() == 1);
    CHECK(process.participant.epochs[0].error().os_errno == ETIMEDOUT);
    REQUIRE(process.handler.next_epoch(kFirstEpoch, {}, process.participant));
    process.handler.stop();
    REQUIRE(process.participant.epochs.size() == 2);
    CHECK(process.participant.epochs[1].error().code == Errc::kCancelled);
    CHECK_FALSE(process.handler.next_epoch(kFirstEpoch, {}, process.participant));
}

}  // namespace local_test

// Goal: the request scheduler asks for epochs in time, and lets its policy speak for each of them.
// Method: an epoch handler that answers when the test says so; time is virtual.

#include <array>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "core/virtual_world.h"
#include "eh/local.h"
#include "lrs/fifo.h"
#include "lrs/scheduler.h"
#include "tests/catch.h"
#include "tests/lrs/requests.h"
#include "tests/replay.h"

using namespace fopd;
using namespace fopd::lrs;
using namespace fopd::lrs::testing;

namespace {

// Runs nothing outside of epochs that it was told to run in.
class InEpochs final : public Policy {
public:
    void push(Request& request, Instant /*now*/) override { waiting_.push_back(request); }
    Next pop(Instant /*now*/) override {
        if (!open_) return {};
        return {.request = static_cast<Request*>(waiting_.pop_front())};
    }
    void remove(Request& request) override { request.PolicyPlace::unlink(); }
    void complete(Request& /*request*/, Instant /*now*/) override {}
    std::string_view epoch_part() const override { return "in_epochs"; }
    void write_epoch(std::span<std::byte> room, Instant /*now*/) override {
        REQUIRE(room.size() == 1);
        room[0] = std::byte{++said_};
    }
    void start_epoch(eh::EpochNumber epoch, const EpochPartData& data, Instant /*now*/) override {
        REQUIRE(data.bytes.size() == 1);
        heard.push_back(epoch);
        filled.push_back(data.filled);
        expires_at = data.expires_at;
        open_ = data.bytes[0] == std::byte{2};
    }
    void lose_epoch(const Error& reason, Instant /*now*/) override {
        open_ = false;
        lost.push_back(reason.code);
    }
    Instant epoch_over_at() const override { return over_at; }

    Instant over_at = kNever;
    std::vector<eh::EpochNumber> heard;
    std::vector<std::uint32_t> filled;
    std::vector<Errc> lost;
    Instant expires_at = kNever;

private:
    core::IntrusiveList<PolicyPlace> waiting_;
    std::uint8_t said_ = 0;
    bool open_ = false;
};

// The sum of numbers of one byte, and of two.
void add_bytes(std::span<std::byte> into, std::span<const std::byte> one,
               std::span<const std::byte> other) {
    into[0] = static_cast<std::byte>(std::to_integer<int>(one[0]) + std::to_integer<int>(other[0]));
}
void add_shorts(std::span<std::byte> into, std::span<const std::byte> one,
                std::span<const std::byte> other) {
    std::uint16_t a = 0;
    std::uint16_t b = 0;
    std::memcpy(&a, one.data(), sizeof a);
    std::memcpy(&b, other.data(), sizeof b);
    a = static_cast<std::uint16_t>(a + b);
    std::memcpy(into.data(), &a, sizeof a);
}
void swap_short(std::span<std::byte> data) {
    std::swap(data[0], data[1]);
}

constexpr std::array kTwoParts{
    EpochPart{.name = "in_epochs", .size_bytes = 1, .combine = add_bytes},
    EpochPart{.name = "others", .size_bytes = 2, .combine = add_shorts, .swap_bytes = swap_short}};

// Notes what it is asked, and answers when the test says so.
class HandedEpochs final : public eh::EpochHandler {
public:
    explicit HandedEpochs(const core::Reactor& reactor) : reactor_(reactor) {}

    const eh::EpochRules& rules() const override { return rules_; }
    void leave_out_after(Duration span) { rules_.left_out_after = span; }
    Result<void> next_epoch(eh::EpochNumber current, std::span<const std::byte> data,
                            eh::Participant& participant) override {
        REQUIRE(waiting == nullptr);
        if (refuse) return std::unexpected(Error{.code = Errc::kInvalid});
        asked.push_back(current);
        asked_at.push_back(reactor_.now());
        waiting = &participant;
        frame.assign(data.begin(), data.end());
        return {};
    }
    void last_epoch(eh::EpochNumber current) override {
        left.push_back(current);
        if (waiting == nullptr) return;
        answer(std::unexpected(Error{.code = Errc::kCancelled}));
    }
    void answer(Result<eh::EpochNumber> epoch) {
        const std::vector<std::byte> said = epoch ? frame : std::vector<std::byte>();
        std::exchange(waiting, nullptr)->on_epoch(epoch, said);
    }

    bool refuse = false;
    std::vector<std::byte> frame;  // What the scheduler contributed.
    eh::Participant* waiting = nullptr;
    std::vector<eh::EpochNumber> asked;
    std::vector<Instant> asked_at;
    std::vector<eh::EpochNumber> left;

private:
    const core::Reactor& reactor_;
    eh::EpochRules rules_{.timeout = 4s};
};

struct EpochShell : fopd::testing::Replay {
    explicit EpochShell(std::unique_ptr<Policy> policy = make_fifo())
        : Replay(6),
          world(6),
          reactor(world.make_reactor()),
          epochs(*reactor),
          scheduler(*reactor, std::move(policy), &epochs, kTwoParts) {}

    core::VirtualWorld world;
    std::unique_ptr<core::Reactor> reactor;
    HandedEpochs epochs;
    Scheduler scheduler;
};

}  // namespace

TEST_CASE("lrs scheduler: it is ready for the first epoch at once, and for others in time",
          "[lrs]") {
    EpochShell shell;
    CHECK(shell.epochs.asked == std::vector<eh::EpochNumber>{0});
    CHECK(shell.scheduler.policy_figures().epoch.get() == 0);

    shell.epochs.answer(7);
    CHECK(shell.scheduler.policy_figures().epoch.get() == 7);
    CHECK(shell.epochs.waiting == nullptr);
    shell.world.run_for(shell.epochs.rules().timeout);
    CHECK(shell.epochs.asked == std::vector<eh::EpochNumber>{0, 7});

    // It waits for others for as long as it takes.
    shell.world.run_for(1min);
    CHECK(shell.epochs.asked.size() == 2);
    shell.epochs.answer(8);
    shell.world.run_for(shell.epochs.rules().timeout);
    CHECK(shell.epochs.asked == std::vector<eh::EpochNumber>{0, 7, 8});
    CHECK(shell.epochs.left.empty());
}

TEST_CASE("lrs scheduler: without an epoch it asks again as one that knows none", "[lrs]") {
    EpochShell shell;
    shell.epochs.answer(3);
    shell.world.run_for(4s);
    shell.epochs.refuse = true;
    shell.epochs.answer(std::unexpected(Error{.code = Errc::kClosed}));
    CHECK(shell.scheduler.policy_figures().epoch.get() == 0);
    shell.world.run_for(10s);
    shell.epochs.refuse = false;
    shell.world.run_for(4s);

    CHECK(shell.epochs.asked == std::vector<eh::EpochNumber>{0, 3, 0});
}

TEST_CASE("lrs scheduler: with the shutdown it leaves the epochs", "[lrs]") {
    EpochShell shell;
    shell.epochs.answer(3);
    shell.scheduler.shutdown();
    shell.scheduler.shutdown();
    CHECK(shell.epochs.left == std::vector<eh::EpochNumber>{3});
    shell.world.run_for(1min);
    CHECK(shell.epochs.asked.size() == 1);

    // Also while it waits for one.
    EpochShell waiting;
    waiting.scheduler.shutdown();
    CHECK(waiting.epochs.left == std::vector<eh::EpochNumber>{0});
    CHECK(waiting.epochs.waiting == nullptr);
    waiting.world.run_for(1min);
    CHECK(waiting.epochs.asked.size() == 1);
}

TEST_CASE("lrs scheduler: the policy speaks for an epoch, and lets run what it brings", "[lrs]") {
    fopd::testing::Replay replay(8);
    core::VirtualWorld world(8);
    const auto reactor = world.make_reactor();
    eh::LocalEpochHandler epochs({.timeout = 1s});
    Scheduler scheduler(*reactor, std::make_unique<InEpochs>(), &epochs, kTwoParts);
    RequestMaker requests(8);
    TakingGetter getter(scheduler);
    scheduler.incoming(requests.make());
    getter.ask(1);
    CHECK(getter.taken().empty());

    world.run_for(1s);

    CHECK(getter.taken() == std::vector<std::uint64_t>{0});
    CHECK(scheduler.policy_figures().epoch.get() >= 2);
}

TEST_CASE("lrs scheduler: the policy says when an epoch is over", "[lrs]") {
    auto made = std::make_unique<InEpochs>();
    InEpochs& policy = *made;
    EpochShell shell(std::move(made));
    RequestMaker requests(8);
    const Instant began = shell.reactor->now();

    policy.over_at = began + 300ms;
    shell.epochs.answer(5);
    CHECK(shell.epochs.waiting == nullptr);
    shell.world.run_for(300ms);
    CHECK(shell.epochs.asked_at == std::vector<Instant>{began, began + 300ms});

    // Over because of what arrives or ends.
    policy.over_at = kNever;
    shell.epochs.answer(6);
    shell.world.run_for(100ms);
    policy.over_at = Instant{};
    shell.scheduler.incoming(requests.make());
    CHECK(shell.epochs.waiting == nullptr);
    shell.world.run_for(1ms);
    CHECK(shell.epochs.asked == std::vector<eh::EpochNumber>{0, 5, 6});
    CHECK(shell.epochs.asked_at.back() < began + 401ms);

    // Later than half of the timeout.
    policy.over_at = kNever - 1ns;
    shell.epochs.answer(7);
    shell.world.run_for(2s);
    CHECK(shell.epochs.asked.size() == 4);
    CHECK(policy.heard == std::vector<eh::EpochNumber>{5, 6, 7});
    CHECK(policy.lost.empty());
}

TEST_CASE("lrs scheduler: the policy hears that an epoch was lost, and does not hasten the next",
          "[lrs]") {
    auto made = std::make_unique<InEpochs>();
    InEpochs& policy = *made;
    EpochShell shell(std::move(made));
    policy.over_at = Instant{};

    shell.epochs.answer(std::unexpected(Error{.code = Errc::kTimedOut}));
    shell.world.run_for(1s);

    CHECK(policy.lost == std::vector<Errc>{Errc::kTimedOut});
    CHECK(shell.epochs.asked.size() == 1);
    shell.world.run_for(1s);
    CHECK(shell.epochs.asked.size() == 2);
}

TEST_CASE("lrs scheduler: a policy that came after the node was ready finds its part empty",
          "[lrs]") {
    EpochShell shell;
    auto made = std::make_unique<InEpochs>();
    InEpochs& policy = *made;
    shell.scheduler.use(std::move(made));
    CHECK(shell.epochs.frame.size() == 4 + 1 + 4 + 2);

    shell.epochs.answer(5);
    shell.world.run_for(2s);
    shell.epochs.answer(6);

    CHECK(policy.filled == std::vector<std::uint32_t>{0, 1});
}

TEST_CASE("lrs scheduler: a policy without a part keeps nobody waiting who has one", "[lrs]") {
    EpochShell shell;
    // Nobody has a part.
    shell.epochs.answer(5);
    shell.world.run_for(1s);
    CHECK(shell.epochs.asked.size() == 1);
    shell.world.run_for(1s);
    REQUIRE(shell.epochs.waiting != nullptr);
    // Another node has one.
    const EpochFrame frame(kTwoParts);
    frame.fill(shell.epochs.frame, "others")[0] = std::byte{1};
    shell.epochs.answer(6);
    shell.world.run_for(1ms);
    CHECK(shell.epochs.asked == std::vector<eh::EpochNumber>{0, 5, 6});
    // Its own contribution is empty, so that it does not keep itself going.
    shell.epochs.answer(7);
    shell.world.run_for(1s);
    CHECK(shell.epochs.asked.size() == 3);
}

TEST_CASE("lrs frame: nodes with different policies take part in the same epoch", "[lrs]") {
    const EpochFrame frame(kTwoParts);
    const auto made_by = [&](std::string_view policy, int value) {
        std::vector<std::byte> bytes(frame.size_bytes());
        const auto room = frame.fill(bytes, policy);
        if (!room.empty()) room[0] = static_cast<std::byte>(value);
        return bytes;
    };
    const auto combined = [&](std::vector<std::byte> one, const std::vector<std::byte>& other) {
        frame.combine(one, one, other);
        return one;
    };
    const auto a = made_by("in_epochs", 3);
    const auto b = made_by("in_epochs", 4);
    const auto c = made_by("others", 5);
    const auto none = made_by("fifo", 6);

    const auto all = combined(combined(combined(a, c), none), b);

    CHECK(all == combined(a, combined(none, combined(b, c))));
    CHECK(combined(none, a) == a);
    CHECK(frame.part(all, "in_epochs").filled == 2);
    CHECK(frame.part(all, "in_epochs").bytes[0] == std::byte{7});
    CHECK(frame.part(all, "others").filled == 1);
    CHECK(frame.part(all, "others").bytes[0] == std::byte{5});
    CHECK(frame.part(none, "others").filled == 0);
    CHECK(frame.part(all, "fifo").bytes.empty());
    CHECK(frame.part(std::span(all).first(4), "others").bytes.empty());

    auto foreign = all;
    frame.swap_bytes(foreign);
    CHECK(frame.part(foreign, "others").filled == std::uint32_t{1} << 24);
    CHECK(frame.part(foreign, "others").bytes[1] == std::byte{5});
    frame.swap_bytes(foreign);
    CHECK(foreign == all);
}

TEST_CASE("lrs scheduler: an epoch counts from when the node was ready for it", "[lrs]") {
    auto made = std::make_unique<InEpochs>();
    InEpochs& policy = *made;
    EpochShell shell(std::move(made));
    const Instant ready = shell.world.now();
    shell.world.run_for(3s);
    shell.epochs.answer(7);
    CHECK(policy.expires_at == ready + 4s);

    // A participant may be left out earlier than by the timeout.
    shell.epochs.leave_out_after(1s);
    shell.world.run_for(2s);
    const Instant again = shell.epochs.asked_at.back();
    shell.epochs.answer(8);
    CHECK(policy.expires_at == again + 1s);
}

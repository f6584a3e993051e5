// Goal: the contract of the shell, whatever the policy.
// Method: fifo, and a policy that lets one request through every 10 ms; time is virtual.

#include "lrs/scheduler.h"

#include <map>
#include <string>

#include "core/virtual_world.h"
#include "lrs/fifo.h"
#include "tests/catch.h"
#include "tests/lrs/requests.h"
#include "tests/replay.h"

using namespace fopd;
using namespace fopd::lrs;
using namespace fopd::lrs::testing;

namespace {

constexpr Duration kInterval = 10ms;

// One request every kInterval.
class Slow final : public Policy {
public:
    void push(Request& request, Instant /*now*/) override { waiting_.push_back(request); }
    Next pop(Instant now) override {
        if (waiting_.empty()) return {};
        if (now < free_at_) return {.again = free_at_};
        free_at_ = now + kInterval;
        return {.request = static_cast<Request*>(waiting_.pop_front())};
    }
    void remove(Request& request) override { request.PolicyPlace::unlink(); }
    void complete(Request& /*request*/, Instant /*now*/) override {}

private:
    core::IntrusiveList<PolicyPlace> waiting_;
    Instant free_at_{};
};

// One request at a time.
class Single final : public Policy {
public:
    void push(Request& request, Instant /*now*/) override { waiting_.push_back(request); }
    Next pop(Instant /*now*/) override {
        if (busy_ || waiting_.empty()) return {};
        busy_ = true;
        return {.request = static_cast<Request*>(waiting_.pop_front())};
    }
    void remove(Request& request) override { request.PolicyPlace::unlink(); }
    void complete(Request& /*request*/, Instant /*now*/) override { busy_ = false; }

private:
    core::IntrusiveList<PolicyPlace> waiting_;
    bool busy_ = false;
};

struct Shell : fopd::testing::Replay {
    explicit Shell(std::unique_ptr<Policy> policy = make_fifo())
        : Replay(5),
          world(5),
          reactor(world.make_reactor()),
          scheduler(*reactor, std::move(policy)),
          getter(scheduler) {}

    NumberedRequest& bring(Lane lane = Lane::kData) {
        NumberedRequest& request = requests.make(lane);
        scheduler.incoming(request);
        return request;
    }

    core::VirtualWorld world;
    std::unique_ptr<core::Reactor> reactor;
    RequestMaker requests{5};
    Scheduler scheduler;
    TakingGetter getter;
};

using Numbers = std::vector<std::uint64_t>;

// What was shown, as "name{label,label}".
class FigureSink final : public core::MetricSink {
public:
    void counter(std::string_view name, std::string_view /*help*/,
                 std::span<const core::Label> labels, double value) override {
        keep(name, labels, value);
    }
    void gauge(std::string_view name, std::string_view /*help*/,
               std::span<const core::Label> labels, double value) override {
        keep(name, labels, value);
    }
    void time_histogram(std::string_view, std::string_view, std::span<const core::Label>,
                        const core::Histogram&) override {}

    std::map<std::string, double> figures;

private:
    void keep(std::string_view name, std::span<const core::Label> labels, double value) {
        std::string key(name);
        for (const core::Label& label : labels) key += " " + std::string(label.value);
        REQUIRE(figures.emplace(key, value).second);
    }
};

}  // namespace

TEST_CASE("lrs scheduler: a getter that waits gets what arrives", "[lrs]") {
    Shell shell;
    shell.getter.ask(1);
    CHECK(shell.getter.taken().empty());

    shell.bring();

    CHECK(shell.getter.taken() == Numbers{0});
}

TEST_CASE("lrs scheduler: getters are served in the order they asked", "[lrs]") {
    Shell shell;
    TakingGetter second(shell.scheduler);
    shell.getter.ask(1);
    second.ask(1);

    shell.bring();
    shell.bring();

    CHECK(shell.getter.taken() == Numbers{0});
    CHECK(second.taken() == Numbers{1});
}

TEST_CASE("lrs scheduler: control goes before data", "[lrs]") {
    Shell shell;
    shell.bring(Lane::kData);
    shell.bring(Lane::kControl);
    shell.bring(Lane::kData);
    shell.bring(Lane::kControl);

    shell.getter.ask(4);

    CHECK(shell.getter.taken() == Numbers{1, 3, 0, 2});
}

TEST_CASE("lrs scheduler: a flood of control requests lets data through", "[lrs]") {
    Shell shell;
    const auto& data = shell.bring(Lane::kData);
    for (int i = 0; i < 100; ++i) shell.bring(Lane::kControl);

    shell.getter.ask(33);

    CHECK(shell.getter.taken().back() == data.number);
}

TEST_CASE("lrs scheduler: what a policy holds back comes when its time comes", "[lrs]") {
    Shell shell(std::make_unique<Slow>());
    for (int i = 0; i < 3; ++i) shell.bring();
    shell.getter.ask(3);
    CHECK(shell.getter.taken() == Numbers{0});

    shell.world.run_for(kInterval - 1ns);
    CHECK(shell.getter.taken() == Numbers{0});
    shell.world.run_for(1ns);
    CHECK(shell.getter.taken() == Numbers{0, 1});
    shell.world.run_for(kInterval);
    CHECK(shell.getter.taken() == Numbers{0, 1, 2});
}

TEST_CASE("lrs scheduler: no policy holds control requests back", "[lrs]") {
    Shell shell(std::make_unique<Slow>());
    for (int i = 0; i < 2; ++i) shell.bring();
    shell.getter.ask(3);

    shell.bring(Lane::kControl);

    CHECK(shell.getter.taken() == Numbers{0, 2});
}

TEST_CASE("lrs scheduler: a policy is asked again when a request has ended", "[lrs]") {
    Shell shell(std::make_unique<Single>());
    for (int i = 0; i < 2; ++i) shell.bring();
    shell.getter.ask(2);
    CHECK(shell.getter.taken() == Numbers{0});

    shell.scheduler.complete(shell.requests[0]);

    CHECK(shell.getter.taken() == Numbers{0, 1});
}

TEST_CASE("lrs scheduler: a removed request is not delivered and may come again", "[lrs]") {
    Shell shell;
    NumberedRequest& request = shell.bring();
    shell.bring();
    shell.scheduler.remove(request);
    CHECK_FALSE(request.queued());
    shell.scheduler.incoming(request);

    shell.getter.ask(2);

    CHECK(shell.getter.taken() == Numbers{1, 0});
}

TEST_CASE("lrs scheduler: after shutdown all is delivered, then nothing", "[lrs]") {
    Shell shell(std::make_unique<Slow>());
    for (int i = 0; i < 3; ++i) shell.bring();
    shell.bring(Lane::kControl);

    shell.scheduler.shutdown();
    shell.getter.ask(5);

    CHECK(shell.getter.taken() == Numbers{3, 0, 1, 2});
    CHECK(shell.getter.nothing_count() == 1);
}

TEST_CASE("lrs scheduler: shutdown ends the getters that wait", "[lrs]") {
    Shell shell;
    TakingGetter second(shell.scheduler);
    shell.getter.ask(1);
    second.ask(1);

    shell.scheduler.shutdown();

    CHECK(shell.getter.nothing_count() == 1);
    CHECK(second.nothing_count() == 1);
}

TEST_CASE("lrs scheduler: a getter that is gone asks no more", "[lrs]") {
    Shell shell;
    {
        TakingGetter gone(shell.scheduler);
        gone.ask(1);
    }
    shell.bring();

    shell.getter.ask(1);

    CHECK(shell.getter.taken() == Numbers{0});
}

TEST_CASE("lrs scheduler: many requests do not grow the stack", "[lrs]") {
    Shell shell;
    for (int i = 0; i < 200'000; ++i) shell.bring();

    shell.getter.ask(200'000);

    CHECK(shell.getter.taken().size() == 200'000);
}

TEST_CASE("lrs scheduler: the figures tell what waits, and since when", "[lrs]") {
    Shell shell;
    shell.world.run_for(1s);
    shell.reactor->turn(shell.world.now());
    shell.bring();
    shell.world.run_for(1s);
    shell.reactor->turn(shell.world.now());
    NumberedRequest& second = shell.bring();
    shell.bring(Lane::kControl);
    shell.world.run_for(1s);
    shell.reactor->turn(shell.world.now());

    const LaneFigures& data = shell.scheduler.figures(Lane::kData);
    CHECK(data.queued.get() == 2);
    CHECK(shell.scheduler.oldest_wait(Lane::kData) == 2s);
    CHECK(shell.scheduler.oldest_wait(Lane::kControl) == 1s);

    shell.getter.ask(2);
    CHECK(shell.scheduler.oldest_wait(Lane::kData) == 1s);
    CHECK(shell.scheduler.oldest_wait(Lane::kControl) == 0s);

    shell.scheduler.remove(second);
    CHECK(data.queued.get() == 0);
    CHECK(data.oldest_ns.get() == 0);
    FigureSink sink;
    shell.scheduler.collect(sink, "0");
    CHECK(sink.figures["fopd_lrs_delivered 0 data"] == 1);
    CHECK(sink.figures["fopd_lrs_delivered 0 control"] == 1);
    CHECK(sink.figures["fopd_lrs_removed 0 data"] == 1);
    CHECK(sink.figures["fopd_lrs_queued 0 data"] == 0);
}

// Goal: the contract of the shell, whatever the policy.
// Method: fifo, and a policy that lets one request through every 10 ms; time is virtual.

#include "lrs/scheduler.h"

#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <utility>

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

    // The text of `principal` outlives the request.
    NumberedRequest& bring(Lane lane = Lane::kData, std::string_view principal = "alice") {
        NumberedRequest& request = requests.make(lane);
        request.attributes.share = principal;
        scheduler.incoming(request);
        return request;
    }

    core::VirtualWorld world;
    std::unique_ptr<core::Reactor> reactor;
    RequestMaker requests{5};
    Scheduler scheduler;
    TakingGetter getter;
};

// Counts how many it gave out that have not ended; knows no others.
class Counting final : public Policy {
public:
    void push(Request& request, Instant /*now*/) override { waiting_.push_back(request); }
    Next pop(Instant /*now*/) override {
        running += waiting_.empty() ? 0 : 1;
        return {.request = static_cast<Request*>(waiting_.pop_front())};
    }
    void remove(Request& request) override { request.PolicyPlace::unlink(); }
    void complete(Request& /*request*/, Instant /*now*/) override { REQUIRE(running-- > 0); }

    int running = 0;

private:
    core::IntrusiveList<PolicyPlace> waiting_;
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
    void time_histogram(std::string_view name, std::string_view /*help*/,
                        std::span<const core::Label> labels, const core::Histogram& value,
                        core::Buckets /*buckets*/) override {
        keep(name, labels, static_cast<double>(value.count()));
    }

    std::map<std::string, double> figures;

private:
    void keep(std::string_view name, std::span<const core::Label> labels, double value) {
        std::string key(name);
        for (const core::Label& label : labels) key += " " + std::string(label.value);
        REQUIRE(figures.emplace(key, value).second);
    }
};

}  // namespace

TEST_CASE("lrs scheduler: a waiting getter gets the next request", "[lrs]") {
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
    shell.bring(Lane::kControl, "bob");

    shell.getter.ask(4);

    CHECK(shell.getter.taken() == Numbers{1, 3, 0, 2});
}

TEST_CASE("lrs scheduler: a principal's flood of control requests delays others by one each",
          "[lrs]") {
    Shell shell;
    for (int i = 0; i < 3; ++i) shell.bring(Lane::kData);
    for (int i = 0; i < 100; ++i) shell.bring(Lane::kControl);
    shell.bring(Lane::kControl, "bob");

    shell.getter.ask(7);
    CHECK(shell.getter.taken() == Numbers{3, 103, 0, 4, 1, 5, 2});

    // No data waits any more.
    shell.bring(Lane::kControl, "bob");
    shell.getter.ask(99);
    CHECK(shell.getter.taken()[7] == 6);
    CHECK(shell.getter.taken()[8] == 104);
    CHECK(shell.getter.taken().size() == shell.requests.count());
}

TEST_CASE("lrs scheduler: a principal that sends one control request after the other has no more",
          "[lrs]") {
    Shell shell;
    shell.bring(Lane::kData);
    shell.bring(Lane::kControl);
    shell.getter.ask(1);
    shell.bring(Lane::kControl);
    shell.getter.ask(2);
    CHECK(shell.getter.taken() == Numbers{1, 0, 2});
}

TEST_CASE("lrs scheduler: control requests of many principals let data through", "[lrs]") {
    Shell shell;
    const auto& data = shell.bring(Lane::kData);
    std::deque<std::string> principals;
    for (int i = 0; i < 100; ++i) {
        shell.bring(Lane::kControl, principals.emplace_back("p" + std::to_string(i)));
    }

    shell.getter.ask(33);

    CHECK(shell.getter.taken().back() == data.number);
}

TEST_CASE("lrs scheduler: a getter that asks for data gets no control request", "[lrs]") {
    Shell shell;
    shell.getter.ask(1);
    shell.scheduler.next(shell.getter, Asked::kData);
    shell.bring(Lane::kControl);
    CHECK(shell.getter.taken().empty());
    shell.bring(Lane::kData);
    CHECK(shell.getter.taken() == Numbers{1});
}

TEST_CASE("lrs scheduler: a throttled request is delivered at its time", "[lrs]") {
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

TEST_CASE("lrs scheduler: figures have the queued requests and the oldest wait", "[lrs]") {
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
    const auto oldest_wait = [&shell](Lane lane) {
        const auto arrived = shell.scheduler.figures(lane).oldest_ns.get();
        return shell.world.now() - Instant(Duration(static_cast<Duration::rep>(arrived)));
    };
    CHECK(oldest_wait(Lane::kData) == 2s);
    CHECK(oldest_wait(Lane::kControl) == 1s);

    shell.getter.ask(2);
    CHECK(oldest_wait(Lane::kData) == 1s);
    CHECK(shell.scheduler.figures(Lane::kControl).oldest_ns.get() == 0);

    shell.scheduler.remove(second);
    CHECK(data.queued.get() == 0);
    CHECK(data.oldest_ns.get() == 0);
    FigureSink sink;
    shell.scheduler.collect(sink, "0");
    CHECK(sink.figures["fopd_lrs_delivered 0 data"] == 1);
    CHECK(sink.figures["fopd_lrs_delivered 0 control"] == 1);
    CHECK(sink.figures["fopd_lrs_removed 0 data"] == 1);
    CHECK(sink.figures["fopd_lrs_queued 0 data"] == 0);
    CHECK(sink.figures["fopd_lrs_wait_seconds 0 data"] == 1);
    CHECK(sink.figures["fopd_lrs_policy_switches 0"] == 0);
    CHECK(data.waits.max() >= 2'000'000'000);
}

// -- policies that take over --

TEST_CASE("lrs scheduler: requests throttled by the previous policy run at once", "[lrs]") {
    Shell shell(std::make_unique<Slow>());
    for (int i = 0; i < 5; ++i) shell.bring();
    shell.getter.ask(5);
    CHECK(shell.getter.taken() == Numbers{0});

    shell.scheduler.use(make_fifo());

    CHECK(shell.getter.taken() == Numbers{0, 1, 2, 3, 4});
    CHECK(shell.scheduler.policy_figures().switches.get() == 1);
}

TEST_CASE("lrs scheduler: a policy hears of the end of its own requests only", "[lrs]") {
    auto made = std::make_unique<Counting>();
    Counting* counting = made.get();
    Shell shell(std::move(made));
    for (int i = 0; i < 4; ++i) shell.bring();
    shell.getter.ask(2);
    CHECK(counting->running == 2);

    made = std::make_unique<Counting>();
    counting = made.get();
    shell.scheduler.use(std::move(made));
    shell.getter.ask(1);
    CHECK(counting->running == 1);
    for (const std::size_t number : {0U, 1U, 2U}) shell.scheduler.complete(shell.requests[number]);
    CHECK(counting->running == 0);

    // Nor of what is taken away from it at the end.
    shell.scheduler.shutdown();
    shell.getter.ask(1);
    shell.scheduler.complete(shell.requests[3]);
    CHECK(counting->running == 0);
}

TEST_CASE("lrs scheduler: a policy may take over from within a getter", "[lrs]") {
    class Switching final : public Getter {
    public:
        explicit Switching(Scheduler& scheduler) : scheduler_(scheduler) {}
        void on_request(Request* request) override {
            if (request == nullptr) return;
            taken.push_back(static_cast<NumberedRequest*>(request)->number);
            scheduler_.use(make_fifo());
            scheduler_.complete(*request);
            scheduler_.next(*this);
        }
        Numbers taken;

    private:
        Scheduler& scheduler_;
    };
    Shell shell;
    Switching getter(shell.scheduler);
    for (int i = 0; i < 3; ++i) shell.bring();

    shell.scheduler.next(getter);

    CHECK(getter.taken == Numbers{0, 1, 2});
}

TEST_CASE("lrs scheduler: the time in which a policy held requests back is known", "[lrs]") {
    Shell shell(std::make_unique<Slow>());
    const auto held_back = [&] {
        return shell.scheduler.policy_figures().held_back_ns.get() / 1'000'000;
    };
    shell.bring();
    shell.world.run_for(1s);
    shell.getter.ask(1);
    CHECK(held_back() == 0);

    // Nobody asks, nobody waits, and then both.
    shell.world.run_for(1s);
    shell.reactor->turn(shell.world.now());
    shell.getter.ask(3);
    shell.world.run_for(1s);
    shell.reactor->turn(shell.world.now());
    for (int i = 0; i < 3; ++i) shell.bring();
    shell.world.run_for(1s);

    CHECK(shell.getter.taken().size() == 4);
    CHECK(held_back() == 20);
}

// -- deadlines --

namespace {

// Waits no longer than until its deadline.
struct HurriedRequest final : NumberedRequest {
    HurriedRequest() : NumberedRequest(&on_late) {}
    static void on_late(Request& request, Waited, const ClassLabel&) {
        CHECK_FALSE(request.queued());
        static_cast<HurriedRequest&>(request).is_late = true;
    }
    bool is_late = false;
};

}  // namespace

TEST_CASE("lrs scheduler: a queued request is removed at its deadline", "[lrs]") {
    const Lane lane = GENERATE(Lane::kControl, Lane::kData);
    Shell shell;
    HurriedRequest late;
    late.attributes.lane = lane;
    late.attributes.deadline = Instant(5ms);
    HurriedRequest in_time;
    in_time.attributes.lane = lane;
    in_time.attributes.deadline = Instant(20ms);
    shell.scheduler.incoming(late);
    shell.scheduler.incoming(in_time);

    shell.world.run_for(4ms);
    CHECK_FALSE(late.is_late);
    shell.world.run_for(1ms);
    CHECK(late.is_late);
    const LaneFigures& figures = shell.scheduler.figures(lane);
    CHECK(figures.queued.get() == 1);
    CHECK(figures.removed.get() == 1);
    shell.getter.ask(1);
    shell.world.run_for(1s);

    CHECK_FALSE(in_time.is_late);
    CHECK(in_time.delivered());
    CHECK(figures.delivered.get() == 1);
    CHECK(figures.removed.get() == 1);
}

TEST_CASE("lrs scheduler: expired requests take no turn, however many there are", "[lrs]") {
    constexpr std::size_t kCount = 3 * Scheduler::kLateMax + 1;
    // What asked before comes back when all are late already: whoever is late is not given out.
    Shell shell(std::make_unique<Slow>());
    std::deque<HurriedRequest> late(kCount);
    shell.getter.ask(kCount + 1);
    shell.bring();
    for (HurriedRequest& each : late) {
        each.attributes.deadline = Instant(5ms);
        shell.scheduler.incoming(each);
    }
    shell.bring();
    shell.world.stall(*shell.reactor, Instant(50ms));
    shell.world.run_for(1s);

    CHECK(std::ranges::all_of(late, &HurriedRequest::is_late));
    CHECK(shell.scheduler.figures(Lane::kData).delivered.get() == 2);
    CHECK(shell.scheduler.figures(Lane::kData).removed.get() == kCount);
    CHECK(shell.scheduler.figures(Lane::kData).queued.get() == 0);
}

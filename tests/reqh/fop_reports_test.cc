// Goal: events, lists, traces and metrics say what fops do and how long each phase takes. Method: a
// handler in the simulated world; fops, transfers and tokens are fakes.

#include <array>
#include <map>
#include <string>

#include "lrs/policies.h"
#include "objects/fids.h"
#include "reqh/request_handler.h"
#include "tests/reqh/fake_fop.h"
#include "tests/reqh/store_stage.h"

using namespace fopd;
using namespace fopd::reqh;
using namespace fopd::reqh::testing;
using fop::Status;

TEST_CASE("reqh: a slow fop is an event with the time of each phase", "[reqh]") {
    HandlerWorld node({.max_foms = 1, .buffer_count = 1});
    node.send(bulk_echo(kOneBuffer, 100ms));
    node.send(bulk_echo(kOneBuffer, 300ms));

    node.world.run_for(10s);

    REQUIRE(node.events.events.size() == 1);
    const auto& event = node.events.events.front();
    CHECK(event.name == "reqh.slow_fop");
    CHECK(event.texts.at("fop") == "5f-2");
    CHECK(event.texts.at("op") == "bulk_echo");
    CHECK(event.texts.at("peer") == "mem://client:1");
    CHECK(event.texts.at("principal") == "alice");
    CHECK(event.texts.at("result") == "done");
    CHECK(event.numbers.at("seconds") == Approx(0.8));
    CHECK(event.numbers.at("queued_s") == Approx(0.2));
    CHECK(event.numbers.at("execute_s") == Approx(0.6));
    CHECK(event.numbers.at("local_resources_s") == 0);
    CHECK(event.numbers.at("client_s") == Approx(0.6).epsilon(0.001));
    CHECK(event.numbers.at("policy_s") + event.numbers.at("buffer_s") ==
          Approx(0.2).epsilon(0.001));
    CHECK_FALSE(event.numbers.contains("disk_s"));
    CHECK(event.numbers.at("server_s") < 0.05 * 0.8);

    const FopList slow = node.handler.slow();
    REQUIRE(slow.fops.size() == 1);
    CHECK(format_fop_id(slow.fops.front().id) == "5f-2");
    CHECK(slow.fops.front().spent.of(fop::SpentOn::kTotal) >= 799ms);
    CHECK(in_seconds(slow.fops.front().spent.of(fop::SpentOn::kClient)) ==
          event.numbers.at("client_s"));
}

TEST_CASE("reqh: the last slow fops are kept when many others have finished since", "[reqh]") {
    HandlerWorld node;
    node.send(bulk_echo(kOneBuffer, 300ms));
    node.world.run_for(10s);
    for (std::size_t i = 0; i < 2 * FopHistory::kCountMax; ++i) {
        node.send(ping());
        node.world.run_for(10ms);
    }

    const FopList slow = node.handler.slow();
    REQUIRE(slow.fops.size() == 1);
    CHECK(slow.fops.front().type->name == "bulk_echo");
    REQUIRE(node.handler.trace(slow.fops.front().id).has_value());
}

TEST_CASE("reqh: a slow fop's event has its object, job, class, bytes and locality", "[reqh]") {
    StoreStage node({.localities = 2});
    for (const std::uint32_t locality : {0U, 1U}) {
        node.handler(locality).set_limits({.slow_fop = 0s});
    }
    const fop::Fid fid = node.create("photos/1");
    const std::string id = objects::format_fid(objects::store_fid(fid));
    const auto* event = node.last_event("reqh.slow_fop");
    REQUIRE(event != nullptr);
    CHECK(event->texts.at("op") == "create");
    CHECK(event->texts.at("object") == "photos/1");
    CHECK(event->texts.at("fid") == id);
    CHECK(event->texts.at("class") == "all");
    CHECK(event->numbers.at("locality") == 0);

    const ReadSpec blocks(fid, {{.offset = 0, .length = 3 * objects::kBlock}});
    FopSpec read = blocks.spec(WriteSpec::Way::kMemory);
    read.job = "backup";
    node.call(read, 1);
    event = node.last_event("reqh.slow_fop", 1);
    REQUIRE(event != nullptr);
    CHECK(event->texts.at("op") == "read");
    CHECK(event->texts.at("pool") == "fast");
    CHECK(event->texts.at("object") == "photos/1");
    CHECK(event->texts.at("device") == node.volume().device_name());
    CHECK(event->texts.at("fid") == id);
    CHECK(event->texts.at("job") == "backup");
    CHECK(event->numbers.at("bytes") == 3 * objects::kBlock);
    CHECK(event->numbers.at("locality") == 1);

    node.call(ping());
    event = node.last_event("reqh.slow_fop");
    REQUIRE(event != nullptr);
    CHECK(event->texts.at("op") == "ping");
    CHECK(event->texts.at("class").empty());  // No policy delays it.
    CHECK(event->texts.at("object").empty());
    CHECK(event->texts.at("device").empty());
    CHECK(event->texts.at("fid").empty());
}

TEST_CASE("reqh: fops that were slow only in the queue are listed, and an event once a second",
          "[reqh]") {
    HandlerWorld node({.max_foms = 1});
    // Each takes 20 ms, so short a wait for the client that the next one waits for its turn.
    for (int i = 0; i < 100; ++i) node.send(bulk_echo(kOneBuffer, 10ms));

    node.world.run_for(10s);

    CHECK(node.handler.running_count() == 0);
    const FopList slow = node.handler.slow();
    REQUIRE(slow.fops.size() == 76);
    CHECK(format_fop_id(slow.fops.front().id) == "5f-25");
    CHECK(in_seconds(slow.fops.front().spent.of(fop::SpentOn::kPolicy)) ==
          Approx(0.48).epsilon(0.001));
    CHECK(to_text(slow.fops.front().waited.wait) == "its turn");
    CHECK(in_seconds(slow.fops.front().waited.span) == Approx(0.48).epsilon(0.001));
    REQUIRE(node.events.events.size() == 2);
    for (const auto& event : node.events.events) {
        CHECK(event.name == "reqh.slow_fop");
        CHECK(event.level == core::Level::kInfo);
    }
    CHECK(node.events.events[0].numbers.at("policy_s") == Approx(0.48).epsilon(0.001));
    CHECK(node.events.events[0].texts.at("waited_for") == "its turn");
    CHECK(node.events.events[0].numbers.at("waited_s") == Approx(0.48).epsilon(0.001));
    CHECK(node.events.events[1].texts.at("fop") == "5f-75");
}

TEST_CASE("reqh: a fop that its rule held back is a slow fop with class, rule and wait", "[reqh]") {
    HandlerWorld node;
    node.requests.use(
        lrs::make_tbf({.rules = {"slow op=bulk_echo rate=1/s burst=1 by=job"}}, {}, 1));
    FopSpec spec = bulk_echo(kOneBuffer, 0ms);
    spec.job = "dd";
    node.send(spec);
    node.send(spec);
    FopSpec late = spec;
    late.deadline = after(node.world.now(), 700ms);
    node.send(late);
    node.world.run_for(100ms);
    const auto waiting = node.handler.trace({.session = 0x5f, .request = 2});
    REQUIRE(waiting.has_value());
    CHECK(waiting->of_rule.view() == "slow");
    CHECK(to_text(waiting->wait) == "the limit of its class");

    node.world.run_for(10s);

    const FopList slow = node.handler.slow();
    REQUIRE(slow.fops.size() == 2);
    for (const FopRecord& each : slow.fops) {
        CHECK(each.of_class.view() == "slow{job=dd}");
        CHECK(each.of_rule.view() == "slow");
    }
    const auto policy_seconds = [](const FopRecord& of) {
        return in_seconds(of.spent.of(fop::SpentOn::kPolicy));
    };
    CHECK(slow.fops[0].status == Status::kTimedOut);
    CHECK(policy_seconds(slow.fops[0]) == Approx(0.7).epsilon(0.001));
    CHECK(slow.fops[1].status == Status::kDone);
    CHECK(policy_seconds(slow.fops[1]) == Approx(1).epsilon(0.001));
    REQUIRE(!node.events.events.empty());
    for (const auto& event : node.events.events) {
        CHECK(event.name == "reqh.slow_fop");
        CHECK(event.texts.at("class") == "slow{job=dd}");
        CHECK(event.texts.at("rule") == "slow");
        CHECK(event.numbers.at("policy_s") == Approx(event.numbers.at("seconds")).epsilon(0.001));
    }
}

TEST_CASE("reqh: the limit for slow fops can be changed", "[reqh]") {
    HandlerWorld node;
    node.handler.set_limits({.max_foms = 8, .slow_fop = 1ms});
    node.send(bulk_echo(kOneBuffer, 1ms));
    node.world.run_for(1s);
    CHECK(node.events.events.size() == 1);
}

TEST_CASE("reqh: a hung fom is reported once", "[reqh]") {
    HandlerWorld node;
    node.send(bulk_echo(64 * kOneBuffer, 20s));
    node.world.run_for(30s);
    node.send(bulk_echo(64 * kOneBuffer, 20s));
    FopSpec brief = bulk_echo(2 * kOneBuffer, 25s);
    node.send(brief);

    node.world.run_for(10min);

    REQUIRE(node.events.events.size() == 3);
    const auto& hung = node.events.events[0];
    // It is not the node that keeps it waiting.
    CHECK(hung.name == "reqh.waits_for_client");
    CHECK(node.handler.hung_count() == 0);
    CHECK(hung.texts.at("waits_for").find("the client") != std::string::npos);
    CHECK(hung.texts.at("fop") == "5f-1");
    CHECK(hung.texts.at("phase") == "execute");
    CHECK(hung.texts.at("peer") == "mem://client:1");
    CHECK(hung.numbers.at("age_s") == Approx(120));
    CHECK(node.events.events[1].name == "reqh.slow_fop");
    CHECK(node.events.events[1].texts.at("fop") == "5f-3");
    CHECK(node.events.events[1].texts.at("waited_for").find("the client") != std::string::npos);
    CHECK(node.events.events[1].numbers.at("waited_s") == Approx(25));
    CHECK(node.events.events[2].texts.at("fop") == "5f-2");
    CHECK(node.events.events[2].numbers.at("age_s") == Approx(120));
}

TEST_CASE("reqh: what runs is listed with its phase", "[reqh]") {
    HandlerWorld node;
    node.send(bulk_echo(kOneBuffer, 10s));
    node.send(bulk_echo(kOneBuffer, 10s));
    node.world.run_for(2s);

    const std::vector<FopRecord> running = node.handler.in_flight(100).fops;

    REQUIRE(running.size() == 2);
    CHECK(running[0].id == FopId{.session = 0x5f, .request = 1});
    CHECK(running[0].times.phase() == Phase::kExecute);
    CHECK(running[1].times.phase() == Phase::kExecute);
    CHECK(running[1].type->name == "bulk_echo");
    CHECK(running[1].peer.view() == "mem://client:1");
    CHECK(running[1].principal.view() == "alice");
}

TEST_CASE("reqh: what waits for its turn is listed after what runs, the oldest first", "[reqh]") {
    HandlerWorld node({.max_foms = 1});
    for (int i = 0; i < 5; ++i) {
        node.send(bulk_echo(kOneBuffer, 10s));
        node.world.run_for(1ms);
    }

    const FopList list = node.handler.in_flight(3);

    REQUIRE(list.fops.size() == 4);
    CHECK(list.left_out == 1);
    CHECK(list.fops[0].state == FopRecord::State::kRunning);
    for (std::uint64_t i = 0; i < 4; ++i) CHECK(list.fops[i].id.request == i + 1);
    for (std::size_t i = 1; i < 4; ++i) {
        CHECK(list.fops[i].state == FopRecord::State::kQueued);
        CHECK(to_text(list.fops[i].wait) == "its turn");
    }
    CHECK(to_text(node.handler.trace(list.fops[3].id)->wait) == "its turn");
}

TEST_CASE("reqh: the lists of two localities are one list with the same limit", "[reqh]") {
    const auto fop = [](int arrived, FopRecord::State state) {
        FopRecord record;
        record.arrived_at = Instant(Duration(arrived));
        record.state = state;
        return record;
    };
    using enum FopRecord::State;
    FopList all{.fops = {fop(1, kQueued), fop(5, kQueued), fop(6, kRunning)}, .left_out = 3};
    all.add({.fops = {fop(2, kQueued), fop(3, kQueued), fop(4, kQueued)}, .left_out = 1}, 3);

    REQUIRE(all.fops.size() == 4);
    CHECK(all.left_out == 6);
    for (std::size_t i = 0; i < 3; ++i) {
        CHECK(all.fops[i].arrived_at == Instant(Duration(static_cast<int>(i) + 1)));
    }
    CHECK(all.fops[3].state == kRunning);
}

TEST_CASE("reqh: a fop can be traced while it waits, runs, and afterwards", "[reqh]") {
    HandlerWorld node({.max_foms = 1});
    node.send(bulk_echo(kOneBuffer, 10ms));
    node.send(bulk_echo(kOneBuffer, 10ms));
    const FopId second{.session = 0x5f, .request = 2};
    node.settle();
    CHECK(node.handler.trace(second)->state == FopRecord::State::kQueued);

    node.world.run_for(25ms);
    CHECK(node.handler.trace(second)->state == FopRecord::State::kRunning);
    CHECK(node.handler.trace(second)->times.of(Phase::kQueued) == 20ms);

    node.world.run_for(1s);
    const auto finished = node.handler.trace(second);
    REQUIRE(finished.has_value());
    CHECK(finished->state == FopRecord::State::kFinished);
    CHECK(finished->status == Status::kDone);
    CHECK(finished->times.of(Phase::kExecute) == 20ms);
    CHECK(finished->times.total() == 40ms);
    CHECK_FALSE(node.handler.trace({.session = 0x5f, .request = 3}).has_value());
}

TEST_CASE("reqh: figures count how fops ended and time each phase they reached", "[reqh]") {
    HandlerWorld node;
    node.send(ping());
    FopSpec denied = echo("x");
    denied.rights = {};
    node.send(denied);
    node.send(bulk_echo(kOneBuffer, 1ms));
    node.world.run_for(1s);

    const FopMetrics& metrics = node.handler.metrics();
    CHECK(metrics.counted(&node.type("ping"), Status::kDone) == 1);
    CHECK(metrics.counted(&node.type("echo"), Status::kDenied) == 1);
    CHECK(metrics.seconds(node.type("ping"), Phase::kExecute).count() == 1);
    CHECK(metrics.seconds(node.type("ping"), Phase::kLocalResources).count() == 0);
    CHECK(metrics.seconds(node.type("echo"), Phase::kAuthenticate).count() == 1);
    CHECK(metrics.seconds(node.type("echo"), Phase::kExecute).count() == 0);
    CHECK(metrics.seconds(node.type("echo"), Phase::kReply).count() == 1);
    CHECK(metrics.seconds(node.type("bulk_echo"), Phase::kExecute).sum() == 2'000'000);
    CHECK(metrics.duration(node.type("ping")).count() == 1);
    CHECK(metrics.duration(node.type("echo")).count() == 1);
    CHECK(metrics.duration(node.type("bulk_echo")).sum() == 2'000'000);
}

namespace {

class CountedFigures final : public core::MetricSink {
public:
    void counter(std::string_view name, std::string_view /*help*/,
                 std::span<const core::Label> labels, double value) override {
        REQUIRE(figures.emplace(key(name, labels), value).second);
    }
    void gauge(std::string_view, std::string_view, std::span<const core::Label>, double) override {}
    void time_histogram(std::string_view name, std::string_view /*help*/,
                        std::span<const core::Label> labels, const core::Histogram& value,
                        core::Buckets /*buckets*/) override {
        const auto count = static_cast<double>(value.count());
        REQUIRE(figures.emplace(key(name, labels), count).second);
    }

    std::map<std::string, double> figures;

private:
    static std::string key(std::string_view name, std::span<const core::Label> labels) {
        std::string text(name);
        for (const core::Label& label : labels) text += " " + std::string(label.value);
        return text;
    }
};

}  // namespace

TEST_CASE("reqh: the figures of a node are those of its localities as one", "[reqh]") {
    HandlerWorld first;
    HandlerWorld second;
    for (HandlerWorld* node : {&first, &second, &second}) {
        node->send(ping());
        node->settle();
    }
    CountedFigures sink;
    const std::array localities{&first.handler.metrics(), &second.handler.metrics()};

    FopMetrics::collect(localities, sink);

    CHECK(sink.figures.at("fopd_fops ping done") == 3);
    CHECK(sink.figures.at("fopd_fop_duration_seconds ping") == 3);
    CHECK(sink.figures.at("fopd_fop_seconds ping execute") == 3);
    CHECK_FALSE(sink.figures.contains("fopd_fops echo done"));
}

TEST_CASE("reqh: the data of fops are counted by type", "[reqh]") {
    HandlerWorld first;
    HandlerWorld second;
    for (HandlerWorld* node : {&first, &second}) {
        node->send(ping());
        node->send(bulk_echo(kOneBuffer, 1ms));
        node->world.run_for(1s);
    }
    CountedFigures sink;
    const std::array localities{&first.handler.metrics(), &second.handler.metrics()};

    FopMetrics::collect(localities, sink);

    const LoadFigures& echoed = first.handler.metrics().load(first.type("bulk_echo"));
    REQUIRE(echoed.bytes.get() > 0);
    CHECK(sink.figures.at("fopd_bytes bulk_echo") == 2 * static_cast<double>(echoed.bytes.get()));
    CHECK_FALSE(sink.figures.contains("fopd_bytes ping"));
}

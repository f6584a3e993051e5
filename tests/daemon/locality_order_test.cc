// Goal: the control reactor learns when a locality's task has ended, and waits no longer than it
// wants to.

#include "daemon/locality_order.h"

#include "core/virtual_world.h"
#include "tests/catch.h"

using namespace fopd;
using namespace fopd::daemon;

namespace {

struct OrderStage {
    core::VirtualWorld world{1};
    std::unique_ptr<core::Reactor> control = world.make_reactor();
    std::unique_ptr<core::Reactor> locality = world.make_reactor();
    core::Gate gate;
    core::WaitQueue ended{*control};
    LocalityOrder order{*control, *locality, gate, ended};
    Instant done_at = kNever;
};

Task<void> take_a_second(OrderStage* stage) {
    const auto slept = co_await stage->locality->sleep_for(1s);
    if (slept) stage->done_at = stage->locality->now();
}

Task<bool> wait_for_order(OrderStage* stage, Duration patience) {
    co_await stage->order.wait(after(stage->control->now(), patience));
    co_return !stage->order.under_way();
}

}  // namespace

TEST_CASE("daemon order: a wait ends when the task has ended", "[daemon]") {
    OrderStage stage;
    stage.order.send([&stage] { return take_a_second(&stage); });

    const auto ended = stage.world.run(*stage.control, wait_for_order(&stage, 1min));

    REQUIRE(ended == true);
    REQUIRE(stage.done_at != kNever);
    REQUIRE(stage.control->now() < after(stage.done_at, 1s));
}

TEST_CASE("daemon order: a locality that does not answer keeps the order", "[daemon]") {
    OrderStage stage;
    stage.order.send([&stage] { return take_a_second(&stage); });

    const auto ended = stage.world.run(*stage.control, wait_for_order(&stage, 10ms));

    REQUIRE(ended == false);
    REQUIRE(stage.done_at == kNever);

    const auto later = stage.world.run(*stage.control, wait_for_order(&stage, 1min));

    REQUIRE(later == true);
    REQUIRE(stage.done_at != kNever);
}

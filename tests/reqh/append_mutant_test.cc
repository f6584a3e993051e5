// Goal: what is promised of clients that stand still is proven by tests that can fail. Method: a
// request handler with one of its rules broken, by mutate.cmake, serves one that does not send.

#include "tests/catch.h"
#include "tests/reqh/store_stage.h"

namespace fopd::reqh::testing {

TEST_CASE("reqh mutant: an append whose client does not send keeps others waiting", "[reqh]") {
    StoreStage node;
    const fop::Fid fid = node.create();
    const AppendSpec append(fid, pattern(objects::kBlock, 1));
    FopSpec spec = append.spec(WriteSpec::Way::kMemory);
    spec.transfer_time = 1h;
    const FakeFop& stuck = node.send(spec);
    node.run_for(1s);
    REQUIRE_FALSE(stuck.transfers.empty());
    const FakeFop& stat = node.send({.type = type_of("stat"), .body = fop::Stat{.fid = fid}});
    node.run_for(10s);
    REQUIRE_FALSE(stat.answer.has_value());
}

}  // namespace fopd::reqh::testing

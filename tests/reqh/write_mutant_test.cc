// Goal: what is promised of clients that stand still is proven by tests that can fail. Method: a
// request handler whose writes take their lock before they pull, by mutate.cmake, serves one that
// does not send.

#include "tests/catch.h"
#include "tests/reqh/store_stage.h"

namespace fopd::reqh::testing {

TEST_CASE("reqh mutant: a write whose client does not send keeps the users of its block waiting",
          "[reqh]") {
    StoreStage node;
    const fop::Fid fid = node.create();
    node.write(fid, 0, pattern(2 * objects::kBlock, 1));
    const auto block = [](std::uint64_t number) {
        return std::vector{
            fop::Range{.offset = number * objects::kBlock, .length = objects::kBlock}};
    };
    const WriteSpec write(fid, block(0), pattern(objects::kBlock, 2));
    FopSpec spec = write.spec(WriteSpec::Way::kMemory);
    spec.transfer_time = 1h;
    const FakeFop& stuck = node.send(spec);
    node.run_for(1s);
    REQUIRE_FALSE(stuck.transfers.empty());

    const WriteSpec same(fid, block(0), pattern(objects::kBlock, 3));
    const WriteSpec other(fid, block(1), pattern(objects::kBlock, 4));
    const FakeFop& writer = node.send(same.spec(WriteSpec::Way::kInline));
    const FakeFop& elsewhere = node.send(other.spec(WriteSpec::Way::kInline));
    const ReadSpec read(fid, block(0));
    const FakeFop& reader = node.send(read.spec(WriteSpec::Way::kInline));
    node.run_for(10s);
    REQUIRE(elsewhere.answer.has_value());
    REQUIRE_FALSE(writer.answer.has_value());
    REQUIRE_FALSE(reader.answer.has_value());
}

}  // namespace fopd::reqh::testing

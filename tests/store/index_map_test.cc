// Goal: the simulated index loses what a crash may lose, and nothing else.
#include "tests/store/index_stage.h"

using namespace fopd;
using namespace fopd::store;
using namespace fopd::store::testing;

namespace {

Task<void> apply_and_forget(Index* index, Index::Step step) {
    const auto ignored = co_await index->apply(step);
    static_cast<void>(ignored);
}

}  // namespace

TEST_CASE("store map index: a crash finds all of a change or nothing", "[store]") {
    bool seen_all = false;
    bool seen_nothing = false;
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        IndexStage stage(IndexKind::kMap, seed);
        REQUIRE(stage.apply({{"a", "1"}}, 1).has_value());
        const Changes changes{{"a", std::nullopt}, {"b", "2"}};
        ListedChanges listed(changes);
        core::Gate gate;

        stage.reactor().spawn(gate, apply_and_forget(&stage.index(), {&listed, 2}));
        stage.world().run_for(1ms * static_cast<int>(seed));
        stage.reactor().drop_coroutines();
        stage.close();

        const auto& image = stage.image();
        const bool all = image.applied == 2;
        REQUIRE(image.entries == (all ? Entries{{"b", "2"}} : Entries{{"a", "1"}}));
        seen_all = seen_all || all;
        seen_nothing = seen_nothing || !all;
    }
    REQUIRE(seen_all);
    REQUIRE(seen_nothing);
}

TEST_CASE("store map index: lack of space passes, other errors do not", "[store]") {
    IndexStage stage(IndexKind::kMap);
    stage.image().refusal = Error{.code = Errc::kNoSpace};
    REQUIRE(stage.apply({{"a", "1"}}, 1).error().code == Errc::kNoSpace);
    stage.image().refusal.reset();
    REQUIRE(stage.apply({{"a", "1"}}, 1).has_value());

    stage.image().refusal = Error{.code = Errc::kIo};
    REQUIRE(stage.apply({{"a", "2"}}, 2).error().code == Errc::kIo);
    stage.image().refusal.reset();
    REQUIRE(stage.apply({{"a", "2"}}, 2).error().code == Errc::kIo);

    REQUIRE(stage.all() == Entries{{"a", "1"}});
}

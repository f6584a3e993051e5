// Goal: changes and the index behind them are one ordered view, whatever lies where, also while a
// checkpoint is under way. Method: random operations against a std::map.
#include "store/layered_index.h"

#include "core/random.h"
#include "tests/store/index_stage.h"

using namespace fopd;
using namespace fopd::store;
using namespace fopd::store::testing;
using Found = LayeredIndex::Found;

namespace {

std::string number_key(std::uint64_t number) {
    std::string key = "k0000";
    for (std::size_t at = key.size(); at-- > 1; number /= 10) {
        key[at] = static_cast<char>('0' + number % 10);
    }
    return key;
}

// The entries between two keys as the index walks them.
std::vector<std::pair<std::string, std::string>> walk(LayeredIndex& index, bool up,
                                                      const std::string& from,
                                                      const std::string& to) {
    std::vector<std::pair<std::string, std::string>> entries;
    const LayeredIndex::Range range{.from = bytes_of(from), .to = bytes_of(to)};
    for (auto found = up ? index.at_or_after(range) : index.at_or_before(range);;
         found = index.next()) {
        REQUIRE(found.has_value());
        if (*found == Found::kNothing) break;
        if (*found == Found::kErasedKeys) continue;
        entries.emplace_back(text_of(index.entry().key), text_of(index.entry().value));
    }
    index.release();
    return entries;
}

void require_same(LayeredIndex& index, const Entries& model, const std::string& a,
                  const std::string& b) {
    const auto& from = std::min(a, b);
    const auto& to = std::max(a, b);
    std::vector<std::pair<std::string, std::string>> expected(model.lower_bound(from),
                                                              model.upper_bound(to));
    REQUIRE(walk(index, true, from, to) == expected);
    std::ranges::reverse(expected);
    REQUIRE(walk(index, false, to, from) == expected);
    const auto value = index.get(bytes_of(a));
    REQUIRE(value.has_value());
    const auto there = model.find(a);
    REQUIRE(value->has_value() == (there != model.end()));
    if (*value) REQUIRE(text_of(**value) == there->second);
    index.release();
}

Task<void> checkpoint_layers(LayeredIndex* index, std::uint64_t applied, int* running) {
    const auto done = co_await index->checkpoint(applied);
    static_cast<void>(done);  // It may have been refused: nothing is lost then.
    --*running;
}

}  // namespace

TEST_CASE("store layered index: it is one map, whatever lies where", "[store][swarm]") {
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
        IndexStage stage(seed % 3 == 0 ? IndexKind::kLmdb : IndexKind::kMap, seed);
        core::Random random(seed);
        core::Gate gate;
        LayeredIndex index(stage.index());
        Entries model;
        int running = 0;
        for (std::uint64_t step = 1; step < 1500; ++step) {
            const auto key = number_key(random.below(300));
            if (random.chance_ppm(400'000)) {
                index.erase(bytes_of(key));
                model.erase(key);
            } else {
                const auto value = std::to_string(step);
                index.put(bytes_of(key), bytes_of(value));
                model[key] = value;
            }
            if (running == 0 && random.chance_ppm(10'000)) {
                const bool refused = seed % 3 != 0 && random.chance_ppm(300'000);
                stage.image().refusal.reset();
                if (refused) stage.image().refusal = Error{.code = Errc::kNoSpace};
                ++running;
                stage.reactor().spawn(gate, checkpoint_layers(&index, step, &running));
            }
            if (random.chance_ppm(100'000)) stage.world().run_for(3ms);
            if (random.chance_ppm(100'000)) {
                require_same(index, model, key, number_key(random.below(300)));
            }
        }
        stage.world().run_for(1s);
        REQUIRE(running == 0);
        stage.image().refusal.reset();
        REQUIRE(stage.run(index.checkpoint(5000)).has_value());
        REQUIRE(index.changed_bytes() == 0);
        REQUIRE(stage.index().applied() == 5000);
        REQUIRE(stage.all() == model);
    }
}

TEST_CASE("store layered index: a search looks at a bounded number of erased keys", "[store]") {
    IndexStage stage(IndexKind::kMap);
    LayeredIndex index(stage.index());
    for (std::uint64_t i = 0; i < 3000; ++i) index.put(bytes_of(number_key(i)), bytes_of("v"));
    REQUIRE(stage.run(index.checkpoint(1)).has_value());
    for (std::uint64_t i = 0; i < 2999; ++i) index.erase(bytes_of(number_key(i)));

    const auto from = number_key(0);
    const auto to = number_key(9999);
    std::uint32_t pauses = 0;
    auto found = index.at_or_after({.from = bytes_of(from), .to = bytes_of(to)});
    for (; found && *found == Found::kErasedKeys; found = index.next()) ++pauses;

    REQUIRE(found.has_value());
    REQUIRE(*found == Found::kEntry);
    REQUIRE(text_of(index.entry().key) == number_key(2999));
    REQUIRE(pauses == 2999 / LayeredIndex::kSkipMax);
    index.release();
}

TEST_CASE("store layered index: a refused checkpoint is made up for by the next", "[store]") {
    IndexStage stage(IndexKind::kMap);
    LayeredIndex index(stage.index());
    index.put(bytes_of("a"), bytes_of("1"));
    stage.image().refusal = Error{.code = Errc::kNoSpace};
    REQUIRE(stage.run(index.checkpoint(1)).error().code == Errc::kNoSpace);
    index.put(bytes_of("b"), bytes_of("2"));
    REQUIRE(stage.index().applied() == 0);
    require_same(index, {{"a", "1"}, {"b", "2"}}, "a", "c");

    stage.image().refusal.reset();
    REQUIRE(stage.run(index.checkpoint(2)).has_value());

    REQUIRE(stage.index().applied() == 2);
    REQUIRE(stage.all() == Entries{{"a", "1"}, {"b", "2"}});
}

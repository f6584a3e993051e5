// Goal: every index keeps the promises of store/index.h. Method: the same tests over all of them.
#include "core/random.h"
#include "tests/store/index_stage.h"

using namespace fopd;
using namespace fopd::store;
using namespace fopd::store::testing;

namespace {

IndexKind any_kind() {
    return GENERATE(from_range(kIndexKinds.begin(), kIndexKinds.end()));
}

std::string key_of(const Result<std::optional<IndexEntry>>& entry) {
    if (!entry) return "error: " + describe(entry.error());
    return *entry ? text_of((*entry)->key) : "none";
}

// Long ones that differ at their ends too.
std::string random_key(core::Random& random) {
    std::string key(random.chance_ppm(200'000) ? 40 : 1, 'k');
    for (auto left = random.below(4) + 1; left > 0; --left) {
        key += static_cast<char>(random.below(4) * 85);
    }
    return key;
}

Changes random_changes(core::Random& random, Entries& model) {
    Changes changes;
    for (auto left = random.below(200); left > 0; --left) {
        const auto key = random_key(random);
        if (random.chance_ppm(300'000)) {
            changes[key] = std::nullopt;
            model.erase(key);
        } else {
            const auto value = std::string(random.below(random.chance_ppm(50'000) ? 2001 : 40),
                                           static_cast<char>(random.below(256)));
            changes[key] = value;
            model[key] = value;
        }
    }
    return changes;
}

class Collected final : public IndexShow {
public:
    explicit Collected(std::size_t count_max = 100'000) : count_max_(count_max) {}
    Result<void> begin(std::uint64_t with_applied) override {
        applied = with_applied;
        return {};
    }
    Result<void> entry(const IndexEntry& entry) override {
        if (entries.size() == count_max_) {
            return std::unexpected(Error{.code = Errc::kNoSpace, .context = "enough"});
        }
        entries[text_of(entry.key)] = text_of(entry.value);
        return {};
    }

    std::uint64_t applied = 0;
    Entries entries;

private:
    const std::size_t count_max_;
};

}  // namespace

TEST_CASE("store index: a new one is empty", "[store]") {
    IndexStage stage(any_kind());

    REQUIRE(stage.index().applied() == 0);
    REQUIRE(stage.all().empty());
}

TEST_CASE("store index: entries are found in their order", "[store]") {
    IndexStage stage(any_kind());
    REQUIRE(stage.apply({{"b", "1"}, {"bb", "2"}, {"d", ""}}, 5).has_value());
    auto& reader = stage.index().reader();

    REQUIRE(key_of(reader.at_or_after(bytes_of("a"))) == "b");
    REQUIRE(key_of(reader.next()) == "bb");
    REQUIRE(key_of(reader.next()) == "d");
    REQUIRE(key_of(reader.next()) == "none");
    REQUIRE(key_of(reader.at_or_after(bytes_of("bb"))) == "bb");
    REQUIRE(key_of(reader.at_or_after(bytes_of("e"))) == "none");
    REQUIRE(key_of(reader.at_or_before(bytes_of("e"))) == "d");
    REQUIRE(key_of(reader.previous()) == "bb");
    REQUIRE(key_of(reader.previous()) == "b");
    REQUIRE(key_of(reader.previous()) == "none");
    REQUIRE(key_of(reader.at_or_before(bytes_of("ba"))) == "b");
    REQUIRE(key_of(reader.next()) == "bb");
    REQUIRE(key_of(reader.at_or_before(bytes_of("a"))) == "none");
    reader.release();
    REQUIRE(stage.index().applied() == 5);
}

TEST_CASE("store index: it holds the longest keys and values", "[store]") {
    IndexStage stage(any_kind());
    const Entries longest{
        {std::string(kIndexKeyBytesMax, 'a'), std::string(kIndexValueBytesMax, 'b')},
        {std::string(kIndexKeyBytesMax, 'c'), std::string()}};

    REQUIRE(stage.apply({longest.begin(), longest.end()}, 1).has_value());
    stage.close();
    REQUIRE(stage.open().has_value());

    REQUIRE(stage.all() == longest);
}

TEST_CASE("store index: it is what was changed, also when it is opened again", "[store]") {
    const auto kind = any_kind();
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        IndexStage stage(kind, seed);
        core::Random random(seed);
        Entries model;
        for (std::uint64_t applied = 1; applied <= 30; ++applied) {
            const auto changes = random_changes(random, model);
            REQUIRE(stage.apply(changes, applied).has_value());
            if (random.chance_ppm(200'000)) {
                stage.close();
                REQUIRE(stage.open().has_value());
            }
            REQUIRE(stage.index().applied() == applied);
            REQUIRE(stage.all() == model);
        }
    }
}

TEST_CASE("store index: it grows far beyond what it began with", "[store]") {
    IndexStage stage(any_kind(), 1, 1UL << 20);
    Changes changes;
    for (int i = 0; i < 4000; ++i) changes[std::to_string(i)] = std::string(1500, 'v');

    REQUIRE(stage.apply(changes, 9).has_value());

    REQUIRE(stage.index().applied() == 9);
    REQUIRE(stage.all().size() == 4000);
}

TEST_CASE("store index: all of it is shown, with what it was told last", "[store]") {
    IndexStage stage(any_kind());
    core::Random random(3);
    Entries model;
    for (std::uint64_t number = 1; number <= 5; ++number) {
        REQUIRE(stage.apply(random_changes(random, model), number).has_value());
    }
    Collected all;

    REQUIRE(stage.run(stage.index().show_all(&all)).has_value());

    REQUIRE(all.entries == model);
    REQUIRE(all.applied == 5);
    REQUIRE(stage.apply(random_changes(random, model), 6).has_value());
    REQUIRE(stage.all() == model);
}

TEST_CASE("store index: a visitor of show_all may end it", "[store]") {
    IndexStage stage(any_kind());
    Changes changes;
    for (char c = 'a'; c <= 'z'; ++c) changes[std::string(1, c)] = "value";
    REQUIRE(stage.apply(changes, 1).has_value());
    Collected some(7);

    const auto shown = stage.run(stage.index().show_all(&some));

    REQUIRE(shown.error().code == Errc::kNoSpace);
    REQUIRE(some.entries.size() == 7);
    Collected all;
    REQUIRE(stage.run(stage.index().show_all(&all)).has_value());
    REQUIRE(all.entries.size() == 26);
}

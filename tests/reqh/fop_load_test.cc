// Goal: the load by operation, class and principal is complete, and its memory bounded. Method:
// figures by themselves, and a handler in the simulated world.

#include "reqh/fop_load.h"

#include <map>
#include <string>

#include "reqh/request_handler.h"
#include "tests/reqh/fake_fop.h"

using namespace fopd;
using namespace fopd::reqh;
using namespace fopd::reqh::testing;

namespace {

std::map<std::string, const LoadFigures*> figures_of(const FopLoad& load, FopLoad::By by) {
    std::map<std::string, const LoadFigures*> all;
    for (const FopLoad::Row& row : load.rows()) {
        if (row.by == by) all.emplace(row.name, row.figures);
    }
    return all;
}

}  // namespace

TEST_CASE("reqh load: a fop counts for its operation, class and principal", "[reqh]") {
    HandlerWorld node;
    node.send(bulk_echo(kOneBuffer, 100ms));
    node.send(bulk_echo(2 * kOneBuffer, 100ms));
    node.world.run_for(10s);

    const FopLoad& load = node.handler.load();
    const auto ops = figures_of(load, FopLoad::By::kOp);
    REQUIRE(ops.size() == 1);
    CHECK(ops.at("bulk_echo")->latency.count() == 2);
    CHECK(ops.at("bulk_echo")->latency.max() >= 200'000'000);
    CHECK(ops.at("bulk_echo")->bytes.get() == 3 * kOneBuffer);
    CHECK(figures_of(load, FopLoad::By::kClass).at("all")->latency.count() == 2);
    CHECK(figures_of(load, FopLoad::By::kPrincipal).at("alice")->bytes.get() == 3 * kOneBuffer);
}

TEST_CASE("reqh load: names beyond the limit are counted together", "[reqh]") {
    NamedLoad load;
    const Instant begin{1h};
    const auto add = [&load](const std::string& name, Instant now) {
        load.at(load.row_of(name, now)).bytes.add(1);
    };
    for (std::size_t i = 0; i < 3 * NamedLoad::kNamedMax; ++i) add(std::to_string(i), begin);
    for (std::size_t i = 0; i < 3 * NamedLoad::kNamedMax; ++i) add(std::to_string(i), begin);

    std::map<std::string, std::uint64_t> bytes;
    load.for_each([&bytes](const std::string& name, const LoadFigures& figures) {
        bytes[name] += figures.bytes.get();
    });
    CHECK(bytes.size() == NamedLoad::kNamedMax + 1);
    CHECK(bytes.at("0") == 2);
    CHECK(bytes.at(std::to_string(NamedLoad::kNamedMax - 1)) == 2);
    CHECK(bytes.at("other") == 4 * NamedLoad::kNamedMax);
}

TEST_CASE("reqh load: a new name gets the row of a name without fops", "[reqh]") {
    NamedLoad load;
    const Instant begin{1h};
    for (std::size_t i = 0; i < NamedLoad::kNamedMax; ++i) load.row_of(std::to_string(i), begin);
    const Instant later = begin + NamedLoad::kForgottenAfter;
    for (std::size_t i = 1; i < NamedLoad::kNamedMax; ++i) load.row_of(std::to_string(i), later);
    CHECK(load.row_of("early", later - 1ns) == 0);
    const NamedLoad::Row row = load.row_of("new", later);
    CHECK(row != 0);
    CHECK(load.row_of("new", later) == row);
    CHECK(load.row_of("newer", later) == 0);
    CHECK(load.row_of("0", later) == 0);
    CHECK(load.row_of("1", later) != row);
}

TEST_CASE("reqh load: the figures of a new name do not begin with those of another one", "[reqh]") {
    NamedLoad load;
    const Instant begin{1h};
    const auto figures_of = [&load](const std::string& wanted) {
        const LoadFigures* found = nullptr;
        load.for_each([&](const std::string& name, const LoadFigures& figures) {
            if (name == wanted) found = &figures;
        });
        return found;
    };
    for (std::size_t i = 0; i < NamedLoad::kNamedMax; ++i) {
        LoadFigures& figures = load.at(load.row_of(std::to_string(i), begin));
        figures.bytes.add(1'000'000);
        figures.latency.record(7);
    }
    const LoadFigures* const before = figures_of("0");
    const Instant later = begin + NamedLoad::kForgottenAfter;
    for (std::size_t i = 1; i < NamedLoad::kNamedMax; ++i) load.row_of(std::to_string(i), later);

    load.at(load.row_of("new", later)).bytes.add(5);
    CHECK(figures_of("0") == nullptr);
    REQUIRE(figures_of("new") != nullptr);
    CHECK(figures_of("new")->bytes.get() == 5);
    CHECK(figures_of("new")->latency.count() == 0);
    // Whoever has asked before can still read them.
    CHECK(before->bytes.get() == 1'000'000);
    CHECK(figures_of("1")->bytes.get() == 1'000'000);
}

// Goal: a name has one holder at a time, waits for names end as they should, and versions rise.
// Method: single things, over every index.

#include <optional>
#include <string>
#include <utility>

#include "tests/store/name_shelf.h"

using namespace fopd;
using namespace fopd::store;
using namespace fopd::store::testing;

namespace {

Task<void> want_to_remove(NameShard* names, std::string name, core::WaitOptions wait,
                          Wanting* wanting) {
    PoolName wanted(kShelfPool, name);
    auto hold = co_await names->reserve_to_remove(std::move(wanted), wait);
    wanting->hold.emplace(std::move(hold));
}

Task<void> wait_for_replaced(NameShard* names, bool* done) {
    const core::WaitOptions wait{};
    const auto waited = co_await names->wait_replaced(names->replaced_count(), wait);
    *done = waited.has_value();
}

}  // namespace

TEST_CASE("store names: a name that is held is handed on in order", "[store]") {
    NameShelf shelf(IndexKind::kMap);
    std::vector<Wanting> wanting(3);
    for (Wanting& each : wanting) shelf.begin(want(&shelf.names(), "a", {}, &each));
    Wanting other;
    shelf.begin(want(&shelf.names(), "b", {}, &other));
    REQUIRE(other.hold.has_value());
    REQUIRE(wanting[0].hold.has_value());
    REQUIRE_FALSE(wanting[1].hold.has_value());

    REQUIRE(shelf.made(claim("a", wanting[0].hold->value().version(), 1)).has_value());
    wanting[0].hold.reset();
    Wanting late;
    shelf.begin(want(&shelf.names(), "a", {}, &late));
    REQUIRE(wanting[1].hold.has_value());
    REQUIRE(wanting[1].hold->value().owner()->fid == fid(1));
    REQUIRE_FALSE(wanting[2].hold.has_value());
    REQUIRE_FALSE(late.hold.has_value());

    wanting[1].hold.reset();
    shelf.pass(1ms);
    REQUIRE(wanting[2].hold.has_value());
    wanting[2].hold.reset();
    shelf.pass(1ms);
    REQUIRE(late.hold.has_value());
}

TEST_CASE("store names: a wait for a name ends at its deadline or when cancelled", "[store]") {
    NameShelf shelf(IndexKind::kMap);
    Wanting first;
    Wanting timed;
    Wanting cancelled;
    Wanting last;
    core::CancelSource cancel;
    shelf.begin(want(&shelf.names(), "a", {}, &first));
    shelf.begin(want(&shelf.names(), "a",
                     {.deadline = after(shelf.reactor().now(), 10ms), .cancel = nullptr}, &timed));
    shelf.begin(want(&shelf.names(), "a", {.deadline = kNever, .cancel = &cancel}, &cancelled));
    shelf.begin(want(&shelf.names(), "a", {}, &last));
    shelf.pass(20ms);
    cancel.cancel();
    shelf.pass(1ms);
    REQUIRE(timed.hold->error().code == Errc::kTimedOut);
    REQUIRE(cancelled.hold->error().code == Errc::kCancelled);
    REQUIRE_FALSE(last.hold.has_value());

    first.hold.reset();
    shelf.pass(1ms);
    REQUIRE(last.hold.has_value());
}

TEST_CASE("store names: a version is higher than what was told or given, and than the time",
          "[store]") {
    NameShelf shelf(IndexKind::kMap);
    const auto now = static_cast<std::uint64_t>(shelf.world().clock().wall().unix_ns);
    Wanting first;
    shelf.begin(want(&shelf.names(), "a", {}, &first));
    const std::uint64_t version = first.hold->value().version();
    REQUIRE(version >= now);

    Wanting second;
    shelf.begin(want(&shelf.names(), "b", {}, &second));
    REQUIRE(second.hold->value().version() > version);

    REQUIRE(shelf.made(claim("c", kNameVersionEnd - 10, 1)).has_value());
    Wanting third;
    shelf.begin(want(&shelf.names(), "c", {}, &third));
    REQUIRE(third.hold->value().version() == kNameVersionEnd - 9);
}

TEST_CASE("store names: a name without an owner cannot be reserved to leave", "[store]") {
    NameShelf shelf(IndexKind::kMap);
    Wanting leaving;
    shelf.begin(want_to_remove(&shelf.names(), "a", {}, &leaving));
    REQUIRE(leaving.hold->error().code == Errc::kNotFound);

    Wanting next;
    shelf.begin(want(&shelf.names(), "a", {}, &next));
    REQUIRE(next.hold.has_value());
}

TEST_CASE("store names: a name is left when what it replaced is gone", "[store]") {
    NameShelf shelf(IndexKind::kMap);
    REQUIRE(shelf.made(claim("a", 1, 1)).has_value());
    REQUIRE(shelf.made(claim("a", 2, 2)).has_value());
    Wanting leaving;
    Wanting impatient;
    shelf.begin(want_to_remove(&shelf.names(), "a", {}, &leaving));
    shelf.pass(1s);
    REQUIRE_FALSE(leaving.hold.has_value());

    REQUIRE(shelf.ended(claim("a", 1, 1)).has_value());
    shelf.pass(1ms);
    REQUIRE(leaving.hold.has_value());
    REQUIRE(leaving.hold->value().owner()->fid == fid(2));

    leaving.hold.reset();
    REQUIRE(shelf.made(claim("a", 1, 1)).has_value());
    shelf.begin(want_to_remove(&shelf.names(), "a",
                               {.deadline = after(shelf.reactor().now(), 10ms), .cancel = nullptr},
                               &impatient));
    shelf.pass(20ms);
    REQUIRE(impatient.hold->error().code == Errc::kTimedOut);
}

TEST_CASE("store names: a new replaced object wakes the waiter", "[store]") {
    NameShelf shelf(IndexKind::kMap);
    bool heard = false;
    REQUIRE(shelf.made(claim("a", 1, 1)).has_value());
    shelf.begin(wait_for_replaced(&shelf.names(), &heard));
    REQUIRE(shelf.made(claim("b", 1, 2)).has_value());
    shelf.pass(1ms);
    REQUIRE_FALSE(heard);

    REQUIRE(shelf.made(claim("a", 2, 3)).has_value());
    shelf.pass(1ms);
    REQUIRE(heard);
}

TEST_CASE("store names: an owner that reserved the name replaced the old one knowingly",
          "[store]") {
    NameShelf shelf(any_kind());
    const NameClaim first = claim("a", 1, 1);
    REQUIRE(shelf.made(first).has_value());
    Wanting wanting;
    shelf.begin(want(&shelf.names(), "a", {}, &wanting));
    const std::uint64_t version = wanting.hold->value().version();
    const NameClaim second = claim("a", version, 2);
    // Of a disk that has come meanwhile.
    const NameClaim unknown = claim("a", version - 1, 3);

    SECTION("and nobody else's") {
        REQUIRE(shelf.made(unknown).has_value());
        REQUIRE(shelf.made(second).has_value());
        REQUIRE_FALSE(shelf.names().was_replaced_knowingly(unknown));
    }
    SECTION("until that is gone") {
        REQUIRE(shelf.made(second).has_value());
        REQUIRE(shelf.made(unknown).has_value());
        REQUIRE(shelf.names().was_replaced_knowingly(first));
        REQUIRE_FALSE(shelf.names().was_replaced_knowingly(unknown));
        REQUIRE(shelf.ended(first).has_value());
        REQUIRE_FALSE(shelf.names().was_replaced_knowingly(first));
    }
    SECTION("but not one of another life") {
        REQUIRE(shelf.made(second).has_value());
        wanting.hold.reset();
        REQUIRE(shelf.keep(1, 1).has_value());
        REQUIRE(shelf.open().has_value());
        REQUIRE(shelf.replaced() == std::vector{first});
        REQUIRE_FALSE(shelf.names().was_replaced_knowingly(first));
    }
}

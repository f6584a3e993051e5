// Goal: a fop that its sender may not do has no effect and costs nobody anything; tokens lend
// rights. Method: a handler in the simulated world; fops, transfers and tokens are fakes.

#include <optional>
#include <utility>

#include "lrs/mclock/mclock.h"
#include "lrs/tbf/tbf.h"
#include "reqh/request_handler.h"
#include "tests/reqh/fake_fop.h"

using namespace fopd;
using namespace fopd::reqh;
using namespace fopd::reqh::testing;
using fop::Status;

// Whoever shares its class would wait for ever until its bytes are paid for.
TEST_CASE("reqh: a denied fop uses nothing of its class's rate", "[reqh]") {
    const bool is_mclock = GENERATE(false, true);
    CAPTURE(is_mclock);
    HandlerWorld node;
    const lrs::TbfSettings rates{.rules = {"shared * rate={1/s 1MB/s} by=none"}};
    const lrs::MclockSettings shares{.rules = {"shared * limit=1/s by=none"}};
    node.requests.use(is_mclock ? lrs::make_mclock(shares, {}, 1) : lrs::make_tbf(rates, {}, 1));

    for (int i = 0; i < 5; ++i) {
        FopSpec denied = bulk_echo(1UL << 63);
        denied.rights = fop::kRead;
        CHECK(node.send(denied).status() == Status::kDenied);
    }
    const FakeFop& allowed = node.send(echo("x"));
    node.settle();

    CHECK(allowed.status() == Status::kDone);
    CHECK(node.requests.figures(lrs::Lane::kData).delivered.get() == 1);
}

TEST_CASE("reqh: without the right a fop is denied and does nothing", "[reqh]") {
    HandlerWorld node;
    FopSpec spec = bulk_echo(kOneBuffer);
    spec.rights = fop::kRead;

    const FakeFop& fop = node.send(spec);
    node.world.run_for(1s);

    CHECK(fop.status() == Status::kDenied);
    CHECK(fop.transfers.empty());
    CHECK(node.all_buffers_are_back());
}

TEST_CASE("reqh: a ping needs no right", "[reqh]") {
    HandlerWorld node;
    FopSpec spec = ping();
    spec.rights = {};
    const FakeFop& fop = node.send(spec);
    node.settle();
    CHECK(fop.status() == Status::kDone);
}

TEST_CASE("reqh: a token lends rights, and takes none away", "[reqh]") {
    struct Row {
        const char* token;
        fop::Rights rights;
        bool may_echo;
        bool may_sync;
    };
    const std::vector<Row> rows{
        {"", fop::kAllRights, true, true},
        {"", fop::kNoRights, false, false},
        {"lends admin//0.0", fop::kAllRights, true, true},
        {"lends admin//0.0", fop::kNoRights, true, false},
        {"lends admin//0.0", fop::kWrite, true, true},
        {"any ", fop::kRead, true, true},
        {"alice's", fop::kNoRights, true, true},
        {"mallory's", fop::kAllRights, true, true},
        {"mallory's", fop::kWrite, false, true},
        {"for pool fast", fop::kNoRights, false, true},
        {"for pool fast", fop::kAdmin, true, true},
        {"of an object", fop::kNoRights, false, true},
        {"made up", fop::kAllRights, true, true},
        {"made up", fop::kNoRights, false, false},
    };
    for (const Row& row : rows) {
        CAPTURE(row.token, fop::to_text(row.rights));
        HandlerWorld node;
        FopSpec echoed = echo("x");
        FopSpec synced{.type = node.type("sync").number, .body = fop::Sync{}};
        for (FopSpec* spec : {&echoed, &synced}) {
            spec->token = row.token;
            spec->rights = row.rights;
        }

        const FakeFop& first = node.send(echoed);
        const FakeFop& second = node.send(synced);
        node.world.run_for(1s);

        CHECK(first.status() == (row.may_echo ? Status::kDone : Status::kDenied));
        CHECK((second.status() != Status::kDenied) == row.may_sync);
        CHECK(node.verdicts.checks <= 2);
    }
}

TEST_CASE("reqh: a denial says what is missing, and why the token does not help", "[reqh]") {
    const auto [token, words] = GENERATE(
        std::pair("", "the right admin is needed; your rights are create"),
        std::pair("made up", "the right admin is needed; your rights are create; no token"),
        std::pair("mallory's",
                  "the right admin is needed; your rights are create; the token is bound to "
                  "another principal"),
        std::pair("for pool fast",
                  "the right admin is needed; your rights are create; the token is for one pool"),
        std::pair("of an object",
                  "the right admin is needed; your rights are create; the token is for one object"),
        std::pair("lends write,create//0.0",
                  "the right admin is needed; your rights are create; the token does not grant "
                  "this right"));
    HandlerWorld node;
    FopSpec spec = echo("x");
    spec.token = token;
    spec.rights = fop::kCreate;
    const FakeFop& fop = node.send(spec);
    node.settle();
    REQUIRE(fop.status() == Status::kDenied);
    CHECK(fop.answer->words == words);
}

TEST_CASE("reqh: a token bound to a principal needs a proved name", "[reqh]") {
    HandlerWorld node;
    FopSpec spec = echo("x");
    spec.token = "alice's";
    spec.rights = fop::kNoRights;
    spec.kind = GENERATE(fop::AuthKind::kNone, fop::AuthKind::kPeer);
    const FakeFop& fop = node.send(spec);
    node.settle();
    CHECK(fop.status() == Status::kDenied);
}

// A check of a signature costs more than all else that is done before a fop's turn.
TEST_CASE("reqh: ever new tokens cost a bounded number of checks, and their class nothing",
          "[reqh]") {
    HandlerWorld node;
    const auto send = [&node](std::string token, std::string principal) {
        FopSpec spec = echo("x");
        spec.rights = {};
        spec.token = std::move(token);
        spec.principal = std::move(principal);
        const FakeFop& fop = node.send(spec);
        node.settle();
        return fop.status();
    };
    REQUIRE(send("any known", "mallory") == Status::kDone);
    for (int i = 0; i < 1000; ++i) {
        const Status status = send("made up " + std::to_string(i), "mallory");
        CHECK((status == Status::kDenied || status == Status::kTryAgain));
    }
    CHECK(node.verdicts.checks <= 100);
    CHECK(node.requests.figures(lrs::Lane::kData).delivered.get() == 1);

    // What is known already needs no check, and others have checks of their own.
    CHECK(send("any new", "mallory") == Status::kTryAgain);
    CHECK(send("any known", "mallory") == Status::kDone);
    CHECK(send("any new", "alice") == Status::kDone);
    CHECK(send("any new", "mallory") == Status::kDone);
    node.world.run_for(1s);
    CHECK(send("any newer", "mallory") == Status::kDone);
}

TEST_CASE("reqh: a token that is too long is malformed", "[reqh]") {
    HandlerWorld node;
    FopSpec spec = echo("x");
    spec.token = std::string(fop::kTokenBytesMax + 1, 't');
    const FakeFop& fop = node.send(spec);
    node.settle();
    CHECK(fop.status() == Status::kMalformed);
}

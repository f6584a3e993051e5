// Goal: every fop is answered once, with the right word, and nothing it held is left behind.
// Method: a handler in the simulated world; fops, transfers and tokens are fakes.

#include "reqh/request_handler.h"

#include <memory>
#include <optional>
#include <utility>

#include "core/crc32c.h"
#include "lrs/mclock/mclock.h"
#include "lrs/tbf/tbf.h"
#include "tests/reqh/fake_fop.h"

using namespace fopd;
using namespace fopd::reqh;
using namespace fopd::reqh::testing;
using fop::Status;

namespace {

constexpr std::uint64_t kPiece = core::kBufferBytes;

std::size_t running_transfers(const HandlerWorld& node) {
    std::size_t count = 0;
    for (const FakeFop& fop : node.fops) count += !fop.transfers.empty() && !fop.answer ? 1 : 0;
    return count;
}

// Keeps what it was told of each request.
class NotingPolicy final : public lrs::Policy {
public:
    explicit NotingPolicy(std::vector<lrs::RequestAttributes>& seen) : seen_(seen) {}

    void push(lrs::Request& request, Instant /*now*/) override {
        seen_.push_back(request.attributes);
        waiting_.push_back(request);
    }
    Next pop(Instant /*now*/) override {
        return {.request = static_cast<lrs::Request*>(waiting_.pop_front())};
    }
    void remove(lrs::Request& request) override { request.PolicyPlace::unlink(); }
    void complete(lrs::Request& /*request*/, Instant /*now*/) override {}

private:
    std::vector<lrs::RequestAttributes>& seen_;
    core::IntrusiveList<lrs::PolicyPlace> waiting_;
};

}  // namespace

// -- what a fop comes to --

TEST_CASE("reqh: a ping is answered", "[reqh]") {
    HandlerWorld node;

    const FakeFop& fop = node.send(ping());
    node.settle();

    CHECK(fop.status() == Status::kDone);
    CHECK(fop.answer->id == 1);
    CHECK(std::holds_alternative<fop::PingReply>(fop.answer->body));
}

TEST_CASE("reqh: an echo brings its payload back", "[reqh]") {
    HandlerWorld node;

    const FakeFop& fop = node.send(echo("hello"));
    node.settle();

    CHECK(fop.status() == Status::kDone);
    CHECK(fop.answer->payload == bytes_of("hello"));
    CHECK(std::holds_alternative<fop::EchoReply>(fop.answer->body));
}

TEST_CASE("reqh: a bulk echo moves all its bytes, piece by piece", "[reqh]") {
    HandlerWorld node;

    const FakeFop& fop = node.send(bulk_echo(2 * kPiece + 5));
    node.world.run_for(1s);

    REQUIRE(fop.status() == Status::kDone);
    CHECK(fop.target == fop.source);
    const auto& reply = std::get<fop::BulkEchoReply>(fop.answer->body);
    CHECK(reply.bytes == 2 * kPiece + 5);
    CHECK(reply.crc == core::crc32c(fop.source));
    REQUIRE(fop.transfers.size() == 6);
    for (std::size_t i = 0; i < 6; ++i) {
        CHECK(fop.transfers[i].is_pull == (i % 2 == 0));
        CHECK(fop.transfers[i].offset == (i / 2) * kPiece);
        CHECK(fop.transfers[i].size_bytes == (i < 4 ? kPiece : 5));
    }
    CHECK(node.all_pieces_are_back());
}

TEST_CASE("reqh: a bulk echo of nothing is done", "[reqh]") {
    HandlerWorld node;
    const FakeFop& fop = node.send(bulk_echo(0));
    node.settle();
    CHECK(fop.status() == Status::kDone);
    CHECK(fop.transfers.empty());
}

TEST_CASE("reqh: a failed transfer is answered, and its piece is back", "[reqh]") {
    // Who lost the session may try again: nothing has changed here.
    const auto [error, status] = GENERATE(std::pair(Errc::kDenied, Status::kDenied),
                                          std::pair(Errc::kClosed, Status::kTryAgain));
    const auto which = GENERATE(std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{3});
    CAPTURE(status, which);
    HandlerWorld node;
    FopSpec spec = bulk_echo(2 * kPiece);
    spec.failing_transfer = which;
    spec.transfer_error = error;

    const FakeFop& fop = node.send(spec);
    node.world.run_for(1s);

    CHECK(fop.status() == status);
    CHECK(fop.transfers.size() == which + 1);
    CHECK(node.all_pieces_are_back());
}

TEST_CASE("reqh: unknown and malformed fops are answered at once", "[reqh]") {
    HandlerWorld node;
    FopSpec unknown = ping();
    unknown.type = 999;
    unknown.body = std::monostate{};
    FopSpec malformed = echo("");
    malformed.fault = Status::kMalformed;

    const FakeFop& first = node.send(unknown);
    const FakeFop& second = node.send(malformed);

    CHECK(first.status() == Status::kUnknownFop);
    CHECK(second.status() == Status::kMalformed);
    CHECK(node.handler.metrics().counted(nullptr, Status::kUnknownFop) == 1);
}

// -- who may do what --

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
    FopSpec spec = bulk_echo(kPiece);
    spec.rights = fop::kRead;

    const FakeFop& fop = node.send(spec);
    node.world.run_for(1s);

    CHECK(fop.status() == Status::kDenied);
    CHECK(fop.transfers.empty());
    CHECK(node.all_pieces_are_back());
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
        std::pair("", "may not admin: your rights are create"),
        std::pair("made up", "may not admin: your rights are create; no token"),
        std::pair("mallory's",
                  "may not admin: your rights are create; the token is bound to another principal"),
        std::pair("for pool fast",
                  "may not admin: your rights are create; the token is for one pool"),
        std::pair("of an object",
                  "may not admin: your rights are create; the token is for one object"),
        std::pair("lends write,create//0.0",
                  "may not admin: your rights are create; the token does not lend that"));
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

// -- admission --

TEST_CASE("reqh: never do more foms run than are allowed", "[reqh]") {
    HandlerWorld node({.max_foms = 3});
    std::size_t most = 0;
    for (int i = 0; i < 20; ++i) node.send(bulk_echo(kPiece));
    while (node.work.count() > 0) {
        node.world.run_for(100us);
        most = std::max(most, running_transfers(node));
        REQUIRE(node.handler.running_count() <= 3);
    }

    CHECK(most == 3);
    for (const FakeFop& fop : node.fops) CHECK(fop.status() == Status::kDone);
}

TEST_CASE("reqh: a changed limit holds at once", "[reqh]") {
    HandlerWorld node({.max_foms = 2, .piece_count = 64});
    for (int i = 0; i < 20; ++i) node.send(bulk_echo(kPiece, 10ms));
    node.settle();
    CHECK(node.handler.running_count() == 2);

    node.handler.set_limits({.max_foms = 5, .io_wait_goal = std::nullopt});
    CHECK(node.handler.running_count() == 5);

    node.handler.set_limits({.max_foms = 1, .io_wait_goal = std::nullopt});
    node.world.run_for(20ms);
    CHECK(node.handler.running_count() == 1);
    node.world.run_for(1s);
    for (const FakeFop& fop : node.fops) CHECK(fop.status() == Status::kDone);
}

TEST_CASE("reqh: a lowered limit also applies to waiting getters", "[reqh]") {
    HandlerWorld node({.max_foms = 2});
    node.send(bulk_echo(kPiece, 10ms));
    node.handler.set_limits({.max_foms = 1, .io_wait_goal = std::nullopt});

    node.send(bulk_echo(kPiece, 10ms));
    node.settle();

    CHECK(node.handler.running_count() == 1);
}

TEST_CASE("reqh: control fops overtake data that waits", "[reqh]") {
    HandlerWorld node({.max_foms = 1});
    node.send(bulk_echo(kPiece, 10ms));
    const FakeFop& data = node.send(bulk_echo(kPiece, 10ms));
    const FakeFop& control = node.send(ping());

    node.world.run_for(20ms);

    CHECK(control.answer.has_value());
    CHECK_FALSE(data.answer.has_value());
}

TEST_CASE("reqh: a fop without a piece of buffer waits until its deadline", "[reqh]") {
    HandlerWorld node({.piece_count = 1});
    node.send(bulk_echo(kPiece, 10s));
    FopSpec hurried = bulk_echo(kPiece);
    hurried.deadline = Instant(1s);
    const FakeFop& first = node.send(hurried);
    const FakeFop& second = node.send(bulk_echo(kPiece));

    node.world.run_for(100s);

    CHECK(first.status() == Status::kTimedOut);
    CHECK(first.answer->at == Instant(1s));
    CHECK(second.status() == Status::kDone);
    CHECK(second.answer->at >= Instant(10s));
    CHECK(node.all_pieces_are_back());
}

// -- deadlines and those who give up --

TEST_CASE("reqh: a fop whose deadline passed in the queue does nothing", "[reqh]") {
    HandlerWorld node({.max_foms = 1});
    node.send(bulk_echo(kPiece, 10ms));
    FopSpec late = bulk_echo(kPiece);
    late.deadline = Instant(5ms);
    const FakeFop& fop = node.send(late);

    node.world.run_for(1s);

    CHECK(fop.status() == Status::kTimedOut);
    CHECK(fop.answer->words == "the deadline passed before it could run");
    CHECK(fop.transfers.empty());
    CHECK(node.handler.metrics().seconds(node.type("bulk_echo"), Phase::kExecute).count() == 1);
}

// Those behind them have the tokens.
TEST_CASE("reqh: who is late or gone while it waits takes nothing of its class", "[reqh]") {
    const bool is_mclock = GENERATE(false, true);
    const bool is_gone = GENERATE(false, true);
    CAPTURE(is_mclock, is_gone);
    HandlerWorld node;
    const lrs::TbfSettings rates{.rules = {"shared * rate=1/s burst=1 by=none"}};
    const lrs::MclockSettings shares{.cost_unit = {}, .rules = {"shared * limit=1/s by=none"}};
    node.requests.use(is_mclock ? lrs::make_mclock(shares, {}, 1) : lrs::make_tbf(rates, {}, 1));
    node.send(echo("first"));
    std::vector<FakeFop*> waiting;
    for (int i = 0; i < 10; ++i) {
        FopSpec spec = echo("late");
        if (!is_gone) spec.deadline = Instant(500ms);
        waiting.push_back(&node.send(std::move(spec)));
    }
    const FakeFop& last = node.send(echo("last"));

    node.world.run_for(500ms);
    if (is_gone) {
        for (FakeFop* const each : waiting) each->cancel_source().cancel();
    }
    for (const FakeFop* const each : waiting) {
        CHECK(each->status() == (is_gone ? Status::kCancelled : Status::kTimedOut));
        CHECK_FALSE(each->has_started);
        const std::string_view words = each->answer->words;
        if (!is_gone) CHECK(words == "over its limit: it had no turn before its deadline");
    }
    node.world.run_for(501ms);

    CHECK(last.status() == Status::kDone);
    const lrs::LaneFigures& figures = node.requests.figures(lrs::Lane::kData);
    CHECK(figures.delivered.get() == 2);
    CHECK(figures.removed.get() == 10);
    std::uint64_t served = 0;
    for (const lrs::ClassFigures& each : node.requests.class_figures()) served += each.served;
    CHECK(served == 2);
}

TEST_CASE("reqh: a deadline ends a transfer, and the piece is back", "[reqh]") {
    HandlerWorld node;
    FopSpec spec = bulk_echo(kPiece, 10ms);
    spec.deadline = Instant(15ms);
    const FakeFop& fop = node.send(spec);
    node.world.run_for(1s);
    CHECK(fop.status() == Status::kTimedOut);
    CHECK(node.all_pieces_are_back());
}

TEST_CASE("reqh: a fop given up in the queue is answered at once", "[reqh]") {
    HandlerWorld node({.max_foms = 1});
    node.send(bulk_echo(kPiece, 10ms));
    FakeFop& fop = node.send(bulk_echo(kPiece));
    node.settle();

    fop.cancel_source().cancel();

    CHECK(fop.status() == Status::kCancelled);
    CHECK(node.requests.figures(lrs::Lane::kData).removed.get() == 1);
    CHECK(node.requests.figures(lrs::Lane::kData).queued.get() == 0);
}

TEST_CASE("reqh: a fop given up while it runs ends, and its piece is back", "[reqh]") {
    HandlerWorld node;
    FakeFop& fop = node.send(bulk_echo(kPiece, 10ms));
    node.world.run_for(5ms);
    REQUIRE(node.handler.running_count() == 1);

    fop.cancel_source().cancel();
    node.settle();

    CHECK(fop.status() == Status::kCancelled);
    CHECK(node.handler.running_count() == 0);
    CHECK(node.all_pieces_are_back());
}

TEST_CASE("reqh: a fop given up while it waits for a piece ends", "[reqh]") {
    HandlerWorld node({.piece_count = 1});
    node.send(bulk_echo(kPiece, 10ms));
    FakeFop& fop = node.send(bulk_echo(kPiece));
    node.settle();

    fop.cancel_source().cancel();
    node.settle();

    CHECK(fop.status() == Status::kCancelled);
    node.world.run_for(1s);
    CHECK(node.all_pieces_are_back());
}

TEST_CASE("reqh: a fop given up between its turn and its first step does nothing", "[reqh]") {
    HandlerWorld node;
    FakeFop& fop = node.send(bulk_echo(kPiece));

    fop.cancel_source().cancel();
    node.settle();

    CHECK(fop.status() == Status::kCancelled);
    CHECK(fop.transfers.empty());
}

// -- the drain --

TEST_CASE("reqh: a drain answers what waits and lets end what runs", "[reqh]") {
    HandlerWorld node({.max_foms = 1});
    const FakeFop& running = node.send(bulk_echo(kPiece, 10ms));
    const FakeFop& queued = node.send(bulk_echo(kPiece));
    const FakeFop& control = node.send(ping());
    node.settle();

    node.handler.drain();
    node.handler.drain();

    CHECK(queued.status() == Status::kTryAgain);
    CHECK(control.status() == Status::kDone);
    CHECK(node.send(ping()).status() == Status::kTryAgain);
    CHECK_FALSE(running.answer.has_value());
    const bool closed = node.world.run(*node.reactor, [](HandlerWorld* of) -> Task<void> {
        co_await of->work.close(*of->reactor);
    }(&node));
    CHECK(closed);
    CHECK(running.status() == Status::kDone);
}

TEST_CASE("reqh: a fop that is cut off reports whether it may have run", "[reqh]") {
    HandlerWorld node({.piece_count = 1});
    const FakeFop& begun = node.send(bulk_echo(kPiece, 10ms));
    const FakeFop& waiting = node.send(bulk_echo(kPiece, 10ms));
    node.settle();
    node.handler.drain();

    node.handler.cut_off();
    node.settle();

    CHECK(begun.status() == Status::kOutcomeUnknown);
    CHECK(waiting.status() == Status::kTryAgain);
    CHECK(node.handler.running_count() == 0);
    CHECK(node.all_pieces_are_back());
}

// -- what can be seen --

TEST_CASE("reqh: a slow fop is an event with the time of each phase", "[reqh]") {
    HandlerWorld node({.max_foms = 1, .piece_count = 1});
    node.send(bulk_echo(kPiece, 100ms));
    node.send(bulk_echo(kPiece, 300ms));

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
}

TEST_CASE("reqh: a long wait for the turn is not a slow fop", "[reqh]") {
    HandlerWorld node({.max_foms = 1});
    node.send(bulk_echo(kPiece, 40ms));
    for (int i = 0; i < 20; ++i) node.send(bulk_echo(kPiece, 40ms));

    node.world.run_for(10s);

    CHECK(node.handler.running_count() == 0);
    CHECK(node.events.events.empty());
}

TEST_CASE("reqh: the limit for slow fops can be changed", "[reqh]") {
    HandlerWorld node;
    node.handler.set_limits({.max_foms = 8, .slow_fop = 1ms});
    node.send(bulk_echo(kPiece, 1ms));
    node.world.run_for(1s);
    CHECK(node.events.events.size() == 1);
}

TEST_CASE("reqh: a hung fom is reported once", "[reqh]") {
    HandlerWorld node;
    node.send(bulk_echo(64 * kPiece, 20s));
    node.world.run_for(30s);
    node.send(bulk_echo(64 * kPiece, 20s));
    FopSpec brief = bulk_echo(2 * kPiece, 25s);
    node.send(brief);

    node.world.run_for(10min);

    REQUIRE(node.events.events.size() == 3);
    const auto& hung = node.events.events[0];
    // It is not the node that keeps it waiting.
    CHECK(hung.name == "reqh.waits_for_client");
    CHECK(hung.texts.at("waits_for").starts_with("its client to "));
    CHECK(hung.texts.at("fop") == "5f-1");
    CHECK(hung.texts.at("phase") == "execute");
    CHECK(hung.texts.at("peer") == "mem://client:1");
    CHECK(hung.numbers.at("age_s") == Approx(120));
    CHECK(node.events.events[1].name == "reqh.slow_fop");
    CHECK(node.events.events[1].texts.at("fop") == "5f-3");
    CHECK(node.events.events[1].texts.at("waited_for").starts_with("its client to "));
    CHECK(node.events.events[1].numbers.at("waited_s") == Approx(25));
    CHECK(node.events.events[2].texts.at("fop") == "5f-2");
    CHECK(node.events.events[2].numbers.at("age_s") == Approx(120));
}

TEST_CASE("reqh: what runs is listed with its phase", "[reqh]") {
    HandlerWorld node;
    node.send(bulk_echo(kPiece, 10s));
    node.send(bulk_echo(kPiece, 10s));
    node.world.run_for(2s);

    const std::vector<FopRecord> running = node.handler.running();

    REQUIRE(running.size() == 2);
    CHECK(running[0].id == FopId{.session = 0x5f, .request = 1});
    CHECK(running[0].times.phase() == Phase::kExecute);
    CHECK(running[1].times.phase() == Phase::kExecute);
    CHECK(running[1].type->name == "bulk_echo");
    CHECK(running[1].peer.view() == "mem://client:1");
    CHECK(running[1].principal.view() == "alice");
}

TEST_CASE("reqh: a fop can be traced while it waits, runs, and afterwards", "[reqh]") {
    HandlerWorld node({.max_foms = 1});
    node.send(bulk_echo(kPiece, 10ms));
    node.send(bulk_echo(kPiece, 10ms));
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
    node.send(bulk_echo(kPiece, 1ms));
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
                        std::span<const core::Label> labels,
                        const core::Histogram& value) override {
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
    CHECK(sink.figures.at("fopd_fop_seconds ping execute") == 3);
    CHECK_FALSE(sink.figures.contains("fopd_fops echo done"));
}

// -- all of it --

TEST_CASE("reqh: whatever happens, each fop is answered once and all pieces come back", "[reqh]") {
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
        CAPTURE(seed);
        HandlerWorld node({.max_foms = 4, .piece_count = 2, .seed = seed});
        core::Random& random = node.world.random();
        for (int step = 0; step < 300; ++step) {
            FopSpec spec = ping();
            if (random.below(3) == 0) spec = echo("payload");
            if (random.below(2) == 0) {
                spec = bulk_echo(random.below(3 * kPiece), Duration(random.below(3'000'000)));
                if (random.below(5) == 0) spec.failing_transfer = random.below(3);
            }
            if (random.below(4) == 0)
                spec.deadline = node.world.now() + Duration(random.below(20'000'000));
            if (random.below(10) == 0) spec.rights = fop::kRead;
            if (random.below(10) == 0) spec.token = "read";
            if (random.below(20) == 0) spec.type = 77;
            node.send(spec);
            if (random.below(5) == 0)
                node.fops[random.below(node.fops.size())].cancel_source().cancel();
            if (random.below(20) == 0)
                node.handler.set_limits(
                    {.max_foms = static_cast<std::uint32_t>(1 + random.below(8))});
            node.world.run_for(Duration(random.below(2'000'000)));
        }
        node.handler.drain();
        if (seed % 2 == 0) node.handler.cut_off();
        const bool closed = node.world.run(*node.reactor, [](HandlerWorld* of) -> Task<void> {
            co_await of->work.close(*of->reactor);
        }(&node));

        CHECK(closed);
        for (const FakeFop& fop : node.fops) REQUIRE(fop.answer.has_value());
        CHECK(node.all_pieces_are_back());
        CHECK(node.handler.running_count() == 0);
    }
}

TEST_CASE("reqh: a killed process leaves nothing behind", "[reqh]") {
    HandlerWorld node({.max_foms = 4, .piece_count = 2});
    for (int i = 0; i < 20; ++i) node.send(bulk_echo(kPiece, 10ms));
    node.world.run_for(15ms);
    CHECK(node.handler.running_count() > 0);
}

// -- what its order is decided by --

TEST_CASE("reqh: a policy learns what a fop is about", "[reqh]") {
    HandlerWorld node;
    std::vector<lrs::RequestAttributes> seen;
    node.requests.use(std::make_unique<NotingPolicy>(seen));
    const fop::Fid fid{.high = (std::uint64_t{3} << 48) | 1, .low = 9};
    const std::array<fop::Range, 2> ranges{fop::Range{.offset = 8192, .length = 100},
                                           fop::Range{.offset = 0, .length = 28}};
    const auto send = [&](std::string_view type, fop::RequestBody body, std::string payload = {}) {
        node.send({.type = node.type(type).number,
                   .body = std::move(body),
                   .payload = std::move(payload),
                   .groups = {"crew", "staff"}});
        node.settle();
        REQUIRE_FALSE(seen.empty());
        return seen.back();
    };

    const auto read = send("read", fop::Read{.fid = fid, .ranges = ranges});
    CHECK(read.direction == lrs::Direction::kRead);
    CHECK(read.object == fid);
    CHECK(read.offset == 8192);
    CHECK(read.size_bytes == 128);
    CHECK(read.device == 3);
    CHECK(read.user == "alice");
    CHECK(std::ranges::equal(read.groups, std::array{"crew", "staff"}));
    CHECK(read.peer == "mem://client:1");

    const auto append = send("append", fop::Append{.fid = fid, .length = 5}, "bytes");
    CHECK(append.direction == lrs::Direction::kWrite);
    CHECK(append.offset == lrs::kAtEnd);
    CHECK(append.size_bytes == 5);

    const auto upload =
        send("upload_write", fop::UploadWrite{.fid = fid, .range = {.offset = 4096}});
    CHECK(upload.direction == lrs::Direction::kWrite);
    CHECK(upload.offset == 4096);

    const auto truncate = send("truncate", fop::Truncate{.fid = fid});
    CHECK(truncate.direction == lrs::Direction::kNone);
    CHECK(truncate.object == fid);

    const auto create = send("create", fop::Create{.name = "new", .slot = 5});
    CHECK_FALSE(create.object.is_set());
    CHECK(create.device == 5);

    const auto list = send("list", fop::ListObjects{});
    CHECK_FALSE(list.object.is_set());
    CHECK(list.device == lrs::kNoDevice);
}

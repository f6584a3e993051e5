// Goal: when loans are short, unused ones are asked back seldom and a few sessions at a time, and
// reach each session that lacks some. Method: a server with few loans, and clients each on a host
// of its own.
#include <deque>
#include <string>

#include "tests/catch.h"
#include "tests/fabric/send_stage.h"

namespace fopd::fabric::testing {

TEST_CASE("fabric loans: who does not return unused ones is asked seldom", "[fabric]") {
    HostOptions options = server_host_options();
    options.fop_loans_total = 64;
    std::deque<Echoed> echoes(80);
    SendStage stage(options);
    stage.ask_little();
    Client& keeps = stage.add("keeps");
    Client& lacks = stage.add("lacks", key_of(2));
    stage.run_for(100ms);
    stage.queue();
    for (std::size_t i = 0; i < 20; ++i) stage.ask(keeps, echoes[i]);
    stage.run_for(10ms);
    stage.network().block({.from = "keeps", .to = "server"});
    stage.answer_held();
    stage.queue();
    for (std::size_t i = 20; i < 80; ++i) stage.ask(lacks, echoes[i]);
    stage.run_for(100ms);
    const std::uint64_t before = stage.messages_to(0);

    stage.run_for(10s);

    std::uint32_t unused = 0;
    for (const SessionInfo& each : stage.sessions()) {
        if (each.principal == "tester") unused = each.fop_loans - each.fops_waiting;
        if (each.principal == "greedy") CHECK(each.fops_waiting > each.fop_loans);
    }
    CHECK(unused > 0);
    CHECK(stage.messages_to(0) - before >= 9);
    CHECK(stage.messages_to(0) - before <= 11);
    // When it can answer, it returns them.
    stage.network().unblock({.from = "keeps", .to = "server"});
    stage.run_for(2s);
    for (const SessionInfo& each : stage.sessions()) {
        if (each.principal == "tester") CHECK(each.fop_loans == 0);
    }
    stage.answer_held();
    stage.run_for(100ms);
    CHECK(std::ranges::all_of(echoes, &Echoed::done));
}

TEST_CASE("fabric loans: when they are short, few sessions are looked at in a turn", "[fabric]") {
    constexpr std::size_t kKeepers = 5;
    constexpr std::size_t kOfEach = 12;
    constexpr std::size_t kOfLacks = 300;
    HostOptions options = server_host_options();
    options.fop_loans_total = 512;
    options.loans_settled_per_pass = 2;
    std::deque<Echoed> echoes(kKeepers * kOfEach + kOfLacks);
    SendStage stage(options);
    stage.ask_little();
    std::vector<std::string> hosts;
    std::vector<Client*> keepers;
    for (std::size_t i = 0; i < kKeepers; ++i) {
        hosts.push_back("keeper" + std::to_string(i));
        keepers.push_back(&stage.add(hosts.back()));
    }
    Client& lacks = stage.add("lacks", key_of(2));
    stage.run_for(100ms);
    stage.queue();
    for (std::size_t i = 0; i < kKeepers * kOfEach; ++i) {
        stage.ask(*keepers[i % kKeepers], echoes[i]);
    }
    stage.run_for(10ms);
    // They cannot return what they need no more.
    for (const std::string& host : hosts) stage.network().block({.from = host, .to = "server"});
    stage.answer_held();
    stage.run_for(10ms);
    std::vector<std::uint64_t> before;
    for (std::size_t i = 0; i < kKeepers; ++i) before.push_back(stage.messages_to(i));
    stage.queue();
    for (std::size_t i = kKeepers * kOfEach; i < echoes.size(); ++i) stage.ask(lacks, echoes[i]);

    // In less time than is between two passes.
    std::size_t asked = 0;
    for (int i = 0; i < 200; ++i) {
        stage.run_for(1ms);
        std::size_t now_asked = 0;
        for (std::size_t each = 0; each < kKeepers; ++each) {
            if (stage.messages_to(each) > before[each]) ++now_asked;
        }
        CHECK(now_asked <= asked + options.loans_settled_per_pass);
        asked = now_asked;
    }
    CHECK(asked == kKeepers);

    for (const std::string& host : hosts) stage.network().unblock({.from = host, .to = "server"});
    stage.run_for(3s);
    for (const SessionInfo& each : stage.sessions()) {
        if (each.principal == "tester") CHECK(each.fop_loans == 0);
    }
    stage.answer_held();
    stage.run_for(1s);
    CHECK(std::ranges::all_of(echoes, &Echoed::done));
}

TEST_CASE("fabric loans: who lacks some gets those that are returned in later passes", "[fabric]") {
    constexpr std::size_t kKeepers = 5;
    constexpr std::size_t kOfEach = 12;
    constexpr std::size_t kOfLacks = 300;
    HostOptions options = server_host_options();
    options.fop_loans_total = 512;
    options.loans_settled_per_pass = 2;
    std::deque<Echoed> echoes(kKeepers * kOfEach + kOfLacks);
    SendStage stage(options);
    stage.ask_little();
    // Of all sessions the first: no session of the last pass lacks loans.
    Client& lacks = stage.add("lacks", key_of(2));
    stage.run_for(100ms);
    std::vector<Client*> keepers;
    for (std::size_t i = 0; i < kKeepers; ++i) {
        keepers.push_back(&stage.add("keeper" + std::to_string(i)));
    }
    stage.run_for(100ms);
    stage.queue();
    for (std::size_t i = 0; i < kKeepers * kOfEach; ++i) {
        stage.ask(*keepers[i % kKeepers], echoes[i]);
    }
    stage.run_for(10ms);
    stage.answer_held();
    stage.run_for(10ms);
    std::uint32_t kept = 0;
    for (const SessionInfo& each : stage.sessions()) kept += each.fop_loans;
    REQUIRE(kept > 0);
    stage.queue();
    for (std::size_t i = kKeepers * kOfEach; i < echoes.size(); ++i) stage.ask(lacks, echoes[i]);

    stage.run_for(2s);

    // A session alone may have a quarter of all loans.
    for (const SessionInfo& each : stage.sessions()) {
        CHECK(each.fop_loans == (each.principal == "greedy" ? options.fop_loans_total / 4 : 0));
    }
    stage.answer_held();
    stage.run_for(1s);
    CHECK(std::ranges::all_of(echoes, &Echoed::done));
}

}  // namespace fopd::fabric::testing

// Goal: over an RDMA adapter no message, no buffer and no connection is lost because a queue of the
// adapter has an end.
// Method: FOPD_TEST_VERBS is the address of an RDMA adapter of this host, over which a server and a
// client talk; without it nothing is tested. What all transports have in common is tested by
// transport_conformance_test.cc.

#include <string>

#include "tests/fabric/transport_kinds.h"

namespace verbs_test {

using namespace fopd;
using namespace fopd::fabric;
using namespace fopd::fabric::testing;

TEST_CASE("fabric verbs: more is sent than the completion queue has room for", "[fabric][real]") {
    const auto kinds = verbs_kinds();
    if (kinds.empty()) return;
    constexpr std::size_t kConnections = 16;
    constexpr std::size_t kMessages = 400;
    // Few buffers at the receiver, so that the sender's queue fills.
    Stage stage(kinds.back(), {.receive_buffer_count = 16, .receive_buffer_bytes = 4096});
    std::vector<End*> ends;
    for (std::size_t i = 0; i < kConnections; ++i) ends.push_back(&stage.connect().client);
    Memory& memory = stage.client().memory(std::string(64, 'm'));

    stage.server().loop().pause();
    stage.client().run([&] {
        for (std::size_t i = 0; i < kMessages; ++i) {
            for (End* const end : ends) end->send(memory);
        }
    });
    stage.server().loop().resume();

    REQUIRE(stage.client().wait([&] { return std::ranges::all_of(ends, &End::idle); }));
    REQUIRE(stage.server().wait(
        [&] { return stage.server().messages.size() == kConnections * kMessages; }));
    for (const End* const end : ends) REQUIRE(std::ranges::all_of(end->ops, &Op::fine));
}

TEST_CASE("fabric verbs: a message longer than the buffer ends its connection alone",
          "[fabric][real]") {
    const auto kinds = verbs_kinds();
    if (kinds.empty()) return;
    Stage stage(kinds.back(), {.receive_buffer_count = 8, .receive_buffer_bytes = 4096});
    const Pair innocent = stage.connect();
    // More often than there are buffers.
    for (int i = 0; i < 12; ++i) {
        const Pair guilty = stage.connect();
        Op& op = guilty.client.send(std::string(4097, 'l'));
        REQUIRE(stage.client().wait([&] { return op.done() && guilty.client.closed; }));
        REQUIRE(op.failed());
        REQUIRE(stage.server().wait([&] { return guilty.server.closed.has_value(); }));
    }

    for (int i = 0; i < 20; ++i) innocent.client.send(std::string(4096, 'c'));
    REQUIRE(stage.server().wait([&] { return stage.server().messages.size() == 20; }));
}

// In a process of its own, whose environment does not have FI_MR_CACHE_MAX_COUNT.
TEST_CASE("fabric verbs alone: no machine opens while libfabric caches registrations", "[.]") {
    const auto kinds = verbs_kinds();
    if (kinds.empty()) return;
    // The first use of libfabric, which reads the environment.
    const Kind& tcp = *std::ranges::find(kAllKinds, &make_ofi_tcp, &Kind::make);
    const Stage other(tcp);
    const auto transport = make_verbs(nullptr);
    RealLoop loop;
    struct Messages final : MessageUser {
        void on_message(std::span<const std::byte>, const Connection*) override {}
    } messages;
    std::string reason;

    loop.run([&] {
        const auto machine = transport->make_machine(loop.reactor(), messages, {});
        reason = machine ? "opened" : describe(machine.error());
    });

    REQUIRE_THAT(reason, ContainsSubstring("caches registrations"));
}

}  // namespace verbs_test

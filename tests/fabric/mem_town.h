#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "tests/fabric/transport_kinds.h"

namespace fopd::fabric::testing {

// A simulated world with a network, and processes that come and go.
class Town {
public:
    explicit Town(std::uint64_t seed = 11, const DelayRange& delay = kSimulatedDelay)
        : world_(seed), transport_({.seed = seed, .delay = delay}) {}

    core::VirtualWorld& world() { return world_; }
    MemNetwork& network() { return transport_.network(); }
    Process& add(const std::string& host, MachineOptions options = {}) {
        options.host = host;
        House& house = houses_.emplace_back();
        house.loop = std::make_unique<VirtualLoop>(world_);
        house.process = std::make_unique<Process>(transport_, *house.loop, options);
        return *house.process;
    }
    // And one that listens at "mem://HOST:1".
    Process& add_server(const std::string& host, const MachineOptions& options = {}) {
        Process& server = add(host, options);
        REQUIRE(server.listen("mem://" + host + ":1").has_value());
        return server;
    }
    // Nothing is left of it, not even its reactor.
    void crash(Process& process, Process::Crash order = Process::Crash::kMachineFirst) {
        process.crash(order);
        const auto same = [&](const House& house) { return house.process.get() == &process; };
        houses_.erase(std::ranges::find_if(houses_, same));
    }
    Pair connect(Process& client, Process& server) {
        End& from = client.connect(server.acceptor->address());
        End& to = server.accept(server.request());
        REQUIRE(client.wait([&] { return from.connected; }));
        return {.client = from, .server = to};
    }

private:
    struct House {
        std::unique_ptr<VirtualLoop> loop;
        std::unique_ptr<Process> process;
    };

    ReplayedWorld world_;
    MemTransport transport_;
    std::deque<House> houses_;
};

inline constexpr MemRoute kThere{.from = "a", .to = "b"};
inline constexpr MemRoute kBack{.from = "b", .to = "a"};
inline constexpr DelayRange kTenMs{.min = 10ms, .max = 10ms};
inline const Address kAtB{.scheme = "mem", .host = "b", .port = 1, .locality = {}};

inline std::vector<std::string> numbers(int count) {
    std::vector<std::string> all;
    for (int i = 0; i < count; ++i) all.push_back(std::to_string(i));
    return all;
}

inline void send_all(End& end, const std::vector<std::string>& messages) {
    for (const std::string& each : messages) end.send(each);
}

inline std::size_t done_count(const End& end) {
    return static_cast<std::size_t>(std::ranges::count_if(end.ops, &Op::done));
}

}  // namespace fopd::fabric::testing

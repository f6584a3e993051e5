#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "bench/child.h"
#include "core/entropy.h"
#include "core/events.h"
#include "core/gate.h"
#include "core/reactor.h"
#include "fabric/rpc/client.h"
#include "fabric/rpc/server.h"
#include "fabric/transport.h"

namespace fopd::bench {

inline constexpr std::size_t kBufferBytes = 256U << 10;

// The server's action on a request.
enum class Service : std::uint8_t {
    kEcho,     // The payload goes back.
    kReply4k,  // 4 KiB come back.
    kPull,     // Memory of the client is fetched, buffer after buffer.
    kPush,     // Memory of the client is written.
};

// The scheme of the addresses of all stages of this process; kTcpScheme if it is not called.
void choose_scheme(const char* scheme);
// The protection of the sessions of all later stages; kSeal if it is not called.
void choose_protection(fop::Protection protection);

struct StageOptions {
    Service service = Service::kEcho;
    Duration spin{};  // Of both sides.
    std::uint32_t fops_per_message_max = fop::kFopsMax;
};

// A server on the first core, in a process of its own, and clients of it on the second: sessions
// with a principal's key over the chosen transport, reactors over io_uring. One at a time.
class FabricStage {
public:
    explicit FabricStage(const StageOptions& options);
    ~FabricStage();
    FabricStage(const FabricStage&) = delete;
    FabricStage& operator=(const FabricStage&) = delete;

    const Child& server() const { return server_; }
    core::Reactor& reactor() { return *reactor_; }

    // Opens so many more sessions, each of a client of its own.
    void connect(std::size_t count);
    // Opens `count` sessions and ends each at once, unused; `at_once` of them exist at a time.
    void connect_and_leave(std::size_t count, std::size_t at_once);
    // Ends all sessions.
    void leave();

    // The calls to measure, with `depth` in flight in each session.
    struct Load {
        fop::RequestBody body{};
        std::size_t payload_bytes = 0;  // Of each request.
        std::size_t depth = 1;
        std::size_t source_bytes = 0;  // Of each call's memory that is opened to the server.
        std::size_t target_bytes = 0;
        Duration warm_up = 100ms;
        Duration measured = 300ms;
    };
    struct Cost {
        double per_s = 0;
        double server_cpu_us = 0;  // For each call.
        double client_cpu_us = 0;
    };
    Cost measure(const Load& load);
    // Lets the reactor turn for that long.
    void idle(Duration span);

private:
    struct Running;
    Task<void> call_again_and_again(fabric::Client* client, Running* running);
    Task<void> run(Running* running);
    Task<void> open(std::span<const std::unique_ptr<fabric::Client>> clients);
    Task<void> come_and_go(std::size_t* left);
    Task<void> come_and_go_many(std::size_t count, std::size_t at_once);
    Task<void> sleep(Duration span);
    Task<void> close_clients();
    Task<void> stop();
    std::unique_ptr<fabric::Client> make_client();

    const Child server_;
    core::NullEventSink events_;
    core::SystemEntropy entropy_;
    fabric::Address address_;
    std::unique_ptr<fabric::Transport> transport_;
    std::unique_ptr<core::Reactor> reactor_;
    std::unique_ptr<fabric::SessionHost> host_;
    std::vector<std::unique_ptr<fabric::Client>> clients_;
};

}  // namespace fopd::bench

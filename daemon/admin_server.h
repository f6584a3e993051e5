#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "config/address.h"
#include "core/events.h"
#include "core/time.h"
#include "daemon/start_problem.h"

namespace fopd::daemon {

struct AdminRequest {
    std::string method;  // GET (also for HEAD) or POST.
    std::string path;
    std::map<std::string, std::string> query;
    std::string body;
};

struct AdminReply {
    int status = 200;
    std::string content_type = "application/json";
    std::string body;
};

inline constexpr std::size_t kAdminBodyMax = 64UL << 10;

// A path that is answered, and the one method it takes; HEAD goes wherever GET does.
struct AdminRoute {
    // Whether the answer may be long in coming. Those that wait are counted apart, so that they
    // cannot keep the others out.
    enum class Answers : std::uint8_t { kSoon, kLate };

    std::string_view method;
    std::string_view path;
    Answers answers = Answers::kSoon;
    std::size_t body_max = kAdminBodyMax;
};

// What the requests mean. Called on the server's threads, on several at once and never on a
// locality's; may wait. Throws nothing.
class AdminHandler {
public:
    virtual ~AdminHandler() = default;
    // Every path but /metrics. The same at each call.
    virtual std::span<const AdminRoute> routes() const = 0;
    virtual AdminReply handle(const AdminRequest& request) = 0;
    // The text of /metrics, in OpenMetrics form.
    virtual std::string metrics() = 0;
};

// HTTP/1.1 on the admin socket, and `GET /metrics` alone on a TCP address. One thread for each
// connection, one request on each connection. Unknown paths, wrong methods and bodies beyond
// kBodyMax, or what the route says, never reach the handler, nor do more than a few larger bodies
// at a time; every refusal is JSON with an "error",
// except of what is no HTTP at all or has headers beyond kHeaderMax: that the HTTP library answers
// itself.
//
// Any process that may open the socket may do everything. The socket's mode (0660, group fopd)
// protects it.
class AdminServer {
public:
    static constexpr std::size_t kBodyMax = kAdminBodyMax;
    static constexpr std::size_t kHeaderMax = 16UL << 10;
    // On the socket and on TCP, each. One more ends another one: of the address that has the most,
    // the oldest whose request the handler does not have. So slow peers keep nobody out.
    static constexpr std::uint32_t kConnectionsMax = 128;

    struct Options {
        std::string socket = {};                      // Path of the UNIX socket.
        std::optional<config::Address> metrics = {};  // None: no TCP.
        // With the handler, of each kind of route; others are told to come later.
        std::uint32_t requests_max = 32;
        std::uint32_t late_requests_max = 32;
        Duration idle_timeout = 10s;  // Of a connection that neither sends nor takes.
        Duration stop_wait = 2s;      // For replies under way.
    };

    // `handler` and `events` outlive the server. The problem has one line: 73 the socket cannot be
    // made, 75 socket or port in use (by whom), 78 the address is not one of this host.
    static Started<std::unique_ptr<AdminServer>> start(const Options& options,
                                                       AdminHandler& handler,
                                                       core::EventSink& events);
    // Stops.
    ~AdminServer();
    AdminServer(const AdminServer&) = delete;
    AdminServer& operator=(const AdminServer&) = delete;

    // Removes the socket file, takes no new connections, gives requests under way `stop_wait`, and
    // closes. A call of the handler cannot be cut short: whoever stops the server makes waiting
    // ones return first. Later calls do nothing. From one thread.
    void stop();

    // Removes the socket file if it is still the server's own, for a process that ends without
    // stopping the server. From any thread, also while another is in stop().
    void remove_file() const;

    // Where /metrics is served over TCP, as bound, or "" and 0.
    const std::string& metrics_address() const;
    std::uint16_t metrics_port() const;

private:
    class Surfaces;
    explicit AdminServer(std::unique_ptr<Surfaces> surfaces);

    std::unique_ptr<Surfaces> surfaces_;
};

}  // namespace fopd::daemon

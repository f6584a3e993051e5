#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/address.h"
#include "config/type.h"
#include "core/events.h"
#include "core/time.h"
#include "daemon/metrics_format.h"
#include "daemon/start_problem.h"

namespace fopd::daemon {

// The sender of a request over the admin socket, as the kernel reports it; unknown over TCP.
struct AdminCaller {
    std::int64_t uid = -1;
    std::int64_t pid = -1;
    std::string user{};  // The name of `uid` in /etc/passwd, or empty.
};

struct AdminRequest {
    std::string method;  // GET (also for HEAD) or POST.
    std::string path;
    std::map<std::string, std::string> query{};
    std::string body{};
    std::string accept{};  // The header, for /metrics.
    AdminCaller caller{};
};

struct AdminReply {
    int status = 200;
    std::string content_type = "application/json";
    std::string body{};
    // For the audit trail: why it was refused, and which settings it has changed.
    std::string reason{};
    config::Changes changes{};
};

inline constexpr std::size_t kAdminBodyMax = 64UL << 10;

// A served path and the one method it accepts; HEAD is accepted wherever GET is.
struct AdminRoute {
    // Whether the answer may take long. Slow requests are counted separately, so that they cannot
    // use up the places of the fast ones.
    enum class Answers : std::uint8_t { kSoon, kLate };

    std::string_view method;
    std::string_view path;
    Answers answers = Answers::kSoon;
    std::size_t body_max = kAdminBodyMax;
};

// Handles the requests. Called on the server's threads, several at once, never on a locality's
// thread; may block. Must not throw.
class AdminHandler {
public:
    virtual ~AdminHandler() = default;
    // Every path except /metrics. Returns the same routes at each call.
    virtual std::span<const AdminRoute> routes() const = 0;
    virtual AdminReply handle(const AdminRequest& request) = 0;
    // The text of /metrics.
    virtual std::string metrics(MetricsFormat format) = 0;
};

// HTTP/1.1 on the admin socket, and only `GET /metrics` on a TCP address. One thread per
// connection, one request per connection. The handler never sees unknown paths, wrong methods, or
// bodies beyond kBodyMax (or the route's own limit); only a few bodies larger than kBodyMax are
// held at a time. Every refusal is JSON with an "error", except that the HTTP library itself
// answers input that is not HTTP or has headers beyond kHeaderMax.
//
// Any process that can open the socket may do everything. The socket's mode (0660, group fopd)
// protects it.
class AdminServer {
public:
    static constexpr std::size_t kBodyMax = kAdminBodyMax;
    static constexpr std::size_t kHeaderMax = 16UL << 10;
    // Separate limits for the socket and for TCP. A connection beyond the limit ends another one:
    // of the address with the most connections, the oldest whose request the handler does not have.
    // So slow peers cannot keep others out.
    static constexpr std::uint32_t kConnectionsMax = 128;

    struct Options {
        std::string socket = {};                      // Path of the UNIX socket.
        std::optional<config::Address> metrics = {};  // None: no TCP.
        std::vector<std::uint16_t> kept_ports = {};   // Not taken for metrics at port 0.
        // Requests the handler may have at a time, for each kind of route; more are refused with
        // "try later".
        std::uint32_t requests_max = 32;
        std::uint32_t late_requests_max = 32;
        Duration idle_timeout = 10s;  // For a connection that neither sends nor receives.
        // A body larger than kBodyMax that has not come in this time gives way to another one.
        Duration large_body_timeout = 10s;
        Duration stop_wait = 2s;  // For replies still being sent.
    };

    // `handler` and `events` outlive the server. The problem is one line with an exit code: 73 the
    // socket cannot be created, 75 socket or port in use (with its holder), 78 the address does not
    // belong to this host.
    static Started<std::unique_ptr<AdminServer>> start(const Options& options,
                                                       AdminHandler& handler,
                                                       core::EventSink& events);
    // Calls stop().
    ~AdminServer();
    AdminServer(const AdminServer&) = delete;
    AdminServer& operator=(const AdminServer&) = delete;

    // Removes the socket file, accepts no more connections, gives requests in progress `stop_wait`,
    // and closes. A handler call cannot be interrupted: the caller first makes waiting handler
    // calls return. Later calls do nothing. From one thread.
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

#include "daemon/admin_server.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>

#include <microhttpd.h>
#include <netinet/in.h>
#include <pwd.h>
#include <strings.h>
#include <sys/socket.h>

#include "config/units.h"
#include "core/ensure.h"
#include "core/ip_network.h"
#include "core/printable.h"
#include "core/signal_mask.h"
#include "daemon/admin_audit.h"
#include "daemon/listen_socket.h"

namespace fopd::daemon {

namespace {

constexpr AdminRoute kMetricsRoute{.method = "GET", .path = "/metrics"};

// An oversized body is read up to this size, so that its sender reads the refusal; beyond it the
// connection is cut.
constexpr std::size_t kBodyReadMax = 8UL << 20;
// Room for connections beyond kConnectionsMax that were ended and whose threads have not finished:
// when libmicrohttpd has no room left, it closes each new connection.
constexpr std::uint32_t kEndedMax = 512;
// Bodies larger than kBodyMax that are held at a time, per surface.
constexpr std::uint32_t kLargeBodiesMax = 4;

struct Refusal {
    unsigned status;
    std::string reason;
    std::string_view allow = {};
};

enum class Serves { kEverything, kMetrics };

// One request from its first header to its last byte of reply.
struct Exchange {
    AdminRequest request;
    const AdminRoute* route = nullptr;  // Null: no such path.
    std::size_t body_bytes = 0;
    bool has_large_place = false;

    std::size_t body_max() const {
        return route == nullptr ? AdminServer::kBodyMax : route->body_max;
    }
    // The number of bytes of the body that are kept.
    std::size_t room_bytes() const {
        return has_large_place ? body_max() : std::min(body_max(), AdminServer::kBodyMax);
    }
};

MHD_Result send_reply(MHD_Connection* connection, unsigned status, const std::string& type,
                      const std::string& body, std::string_view allow) {
    MHD_Response* const response = MHD_create_response_from_buffer(
        body.size(), const_cast<char*>(body.data()), MHD_RESPMEM_MUST_COPY);
    if (response == nullptr) return MHD_NO;
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type.c_str());
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    if (!allow.empty()) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, std::string(allow).c_str());
    }
    const MHD_Result result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

MHD_Result refuse(MHD_Connection* connection, const Refusal& refusal) {
    const std::string body = R"({"error":")" + refusal.reason + "\"}\n";
    return send_reply(connection, refusal.status, "application/json", body, refusal.allow);
}

Refusal too_large(const Exchange& exchange) {
    return {MHD_HTTP_CONTENT_TOO_LARGE,
            "the body is larger than " + config::format_size(exchange.body_max())};
}

Refusal too_many() {
    return {MHD_HTTP_SERVICE_UNAVAILABLE, "too many requests at once; try again"};
}

std::size_t announced_bytes(MHD_Connection* connection) {
    const char* const length =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
    return length == nullptr ? 0 : std::strtoull(length, nullptr, 10);
}

struct QueryArguments {
    std::map<std::string, std::string>& query;
    std::string doubled{};  // A parameter that was given twice.
};

// The user's name in /etc/passwd. A directory service is not asked, because administration must
// work while it does not answer.
std::string local_user(uid_t uid) {
    const std::unique_ptr<std::FILE, decltype(&std::fclose)> file(std::fopen("/etc/passwd", "re"),
                                                                  &std::fclose);
    if (file == nullptr) return {};
    std::vector<char> strings(16UL << 10);
    passwd entry{};
    passwd* found = nullptr;
    while (fgetpwent_r(file.get(), &entry, strings.data(), strings.size(), &found) == 0) {
        if (entry.pw_uid == uid) return entry.pw_name;
    }
    return {};
}

AdminCaller caller_of(int socket) {
    ucred peer{};
    socklen_t size = sizeof peer;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return {};
    return {.uid = peer.uid, .pid = peer.pid, .user = local_user(peer.uid)};
}

// A header that is there several times is a list in parts.
MHD_Result take_accept(void* to, MHD_ValueKind, const char* key, const char* value) noexcept {
    auto& accept = *static_cast<std::string*>(to);
    if (::strcasecmp(key, MHD_HTTP_HEADER_ACCEPT) != 0 || value == nullptr) return MHD_YES;
    if (!accept.empty()) accept += ',';
    accept += value;
    return MHD_YES;
}

MHD_Result take_argument(void* to, MHD_ValueKind, const char* key, const char* value) noexcept {
    auto& arguments = *static_cast<QueryArguments*>(to);
    if (!arguments.query.emplace(key, value == nullptr ? "" : value).second)
        arguments.doubled = key;
    return MHD_YES;
}

}  // namespace

// The requests in progress, on all surfaces.
class RequestsUnderWay {
public:
    void enter() {
        const std::lock_guard lock(mutex_);
        ++count_;
    }
    void leave() {
        const std::lock_guard lock(mutex_);
        --count_;
        changed_.notify_all();
    }
    void wait_none(Duration limit) {
        std::unique_lock lock(mutex_);
        changed_.wait_for(lock, limit, [this] { return count_ == 0; });
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::size_t count_ = 0;
};

// The /64 network of an IPv6 address, an IPv4 address, or zeros for all peers on the admin socket.
using PeerHost = core::IpAddress;

// The connections of a surface, in the order of arrival.
class Connections {
public:
    // When there are more than `count_max`, ends one of the host with the most connections: the
    // oldest whose request the handler does not have.
    void add(int fd, const PeerHost& host, std::size_t count_max) {
        const std::lock_guard lock(mutex_);
        all_.push_back({.fd = fd, .host = host});
        std::map<PeerHost, std::size_t> counts;
        std::size_t open_count = 0;
        for (const Each& each : all_) {
            if (each.state == State::kEnded) continue;
            ++counts[each.host];
            ++open_count;
        }
        if (open_count <= count_max) return;
        Each* to_end = nullptr;
        for (Each& each : all_) {
            if (each.state != State::kAwaited) continue;
            if (to_end == nullptr || counts[each.host] > counts[to_end->host]) to_end = &each;
        }
        if (to_end == nullptr) return;
        to_end->state = State::kEnded;
        ::shutdown(to_end->fd, SHUT_RDWR);
    }
    // While the handler has the connection's request, the connection is not ended for being slow.
    void enter_handler(int fd) { change(fd, State::kAwaited, State::kWithHandler); }
    void leave_handler(int fd) { change(fd, State::kWithHandler, State::kAwaited); }
    // Called before the descriptor is closed, so that its number cannot be reused yet.
    void remove(int fd) {
        const std::lock_guard lock(mutex_);
        std::erase_if(all_, [fd](const Each& each) { return each.fd == fd; });
    }

private:
    enum class State : std::uint8_t { kAwaited, kWithHandler, kEnded };
    struct Each {
        int fd;
        PeerHost host;
        State state = State::kAwaited;
    };
    void change(int fd, State from, State to) {
        const std::lock_guard lock(mutex_);
        const auto found = std::ranges::find(all_, fd, &Each::fd);
        if (found != all_.end() && found->state == from) found->state = to;
    }

    std::mutex mutex_;
    std::vector<Each> all_;
};

// The bodies larger than kBodyMax that a surface holds, in the order in which they became that
// large.
class LargeBodies {
public:
    explicit LargeBodies(Duration time_max) : time_max_(time_max) {}

    // Returns false if there are kLargeBodiesMax already. But if one of them has not come in its
    // time, ends the connection of the oldest such, and takes its place.
    bool take(int fd) {
        const auto now = std::chrono::steady_clock::now();
        const std::lock_guard lock(mutex_);
        if (all_.size() >= kLargeBodiesMax) {
            const auto late = std::ranges::find_if(
                all_, [now](const Each& each) { return !each.has_come && each.due <= now; });
            if (late == all_.end()) return false;
            ::shutdown(late->fd, SHUT_RDWR);
            all_.erase(late);
        }
        all_.push_back({.fd = fd, .due = now + time_max_});
        return true;
    }
    // The whole body is there, and keeps its place.
    void has_come(int fd) {
        const std::lock_guard lock(mutex_);
        const auto found = std::ranges::find(all_, fd, &Each::fd);
        if (found != all_.end()) found->has_come = true;
    }
    // Called before the descriptor is closed, so that its number cannot be reused yet.
    void give_back(int fd) {
        const std::lock_guard lock(mutex_);
        std::erase_if(all_, [fd](const Each& each) { return each.fd == fd; });
    }

private:
    struct Each {
        int fd;
        std::chrono::steady_clock::time_point due;
        bool has_come = false;
    };

    const Duration time_max_;
    std::mutex mutex_;
    std::vector<Each> all_;
};

// One listening socket and libmicrohttpd's threads behind it.
class Surface {
public:
    Surface(Serves serves, const AdminServer::Options& options, AdminHandler& handler,
            core::EventSink& events, RequestsUnderWay& under_way)
        : serves_(serves),
          idle_seconds_(static_cast<unsigned>(
              std::chrono::ceil<std::chrono::seconds>(options.idle_timeout).count())),
          handler_(handler),
          events_(events),
          under_way_(under_way),
          soon_{.count_max = options.requests_max},
          late_{.count_max = options.late_requests_max},
          large_(options.large_body_timeout) {}

    // Returns false if the threads cannot be created.
    bool start(core::OwnedFd socket) {
        const core::SignalsBlocked blocked;
        constexpr unsigned kFlags = MHD_USE_THREAD_PER_CONNECTION |
                                    MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL | MHD_USE_ITC |
                                    MHD_USE_ERROR_LOG;
        // The logger comes first, because problems with later options are reported to it.
        daemon_ = MHD_start_daemon(
            kFlags, 0, nullptr, nullptr, &Surface::serve, this, MHD_OPTION_EXTERNAL_LOGGER,
            &Surface::log, this, MHD_OPTION_LISTEN_SOCKET, socket.release(),
            MHD_OPTION_CONNECTION_LIMIT, AdminServer::kConnectionsMax + kEndedMax,
            MHD_OPTION_CONNECTION_TIMEOUT, idle_seconds_, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
            AdminServer::kHeaderMax, MHD_OPTION_NOTIFY_COMPLETED, &Surface::completed, this,
            MHD_OPTION_NOTIFY_CONNECTION, &Surface::connection_changed, this, MHD_OPTION_END);
        return daemon_ != nullptr;
    }

    void refuse_new() {
        if (daemon_ != nullptr) quiet_ = core::OwnedFd(MHD_quiesce_daemon(daemon_));
    }
    // Returns when no thread is left; until then a thread may still use the listening socket.
    void stop() {
        if (daemon_ != nullptr) MHD_stop_daemon(std::exchange(daemon_, nullptr));
        quiet_ = core::OwnedFd();
    }

private:
    struct Places {
        const std::uint32_t count_max;
        std::atomic<std::uint32_t> taken_count = 0;

        bool take() {
            if (taken_count.fetch_add(1) < count_max) return true;
            give_back();
            return false;
        }
        void give_back() { taken_count.fetch_sub(1); }
    };

    // Called by libmicrohttpd: once with the headers, once for each part of the body, once at the
    // end. Must not throw.
    static MHD_Result serve(void* self, MHD_Connection* connection, const char* path,
                            const char* method, const char*, const char* data, size_t* data_size,
                            void** exchange) noexcept {
        auto& surface = *static_cast<Surface*>(self);
        if (*exchange == nullptr) return surface.begin(connection, path, method, exchange);
        auto& current = *static_cast<Exchange*>(*exchange);
        if (*data_size == 0) return surface.answer(connection, current);
        return surface.take_body(connection, current, {data, std::exchange(*data_size, 0)});
    }

    MHD_Result take_body(MHD_Connection* connection, Exchange& exchange, std::string_view part) {
        const bool was_small = exchange.body_bytes <= AdminServer::kBodyMax;
        exchange.body_bytes += part.size();
        if (exchange.body_bytes > kBodyReadMax) return MHD_NO;
        const bool is_large = exchange.body_bytes > AdminServer::kBodyMax;
        if (was_small && is_large && exchange.body_max() > AdminServer::kBodyMax) {
            exchange.has_large_place = large_.take(descriptor_of(connection));
        }
        if (exchange.body_bytes > exchange.room_bytes()) {
            drop_body(connection, exchange);
        } else {
            exchange.request.body += part;
        }
        return MHD_YES;
    }

    void drop_body(MHD_Connection* connection, Exchange& exchange) {
        exchange.request.body = {};
        if (!std::exchange(exchange.has_large_place, false)) return;
        large_.give_back(descriptor_of(connection));
    }

    static void completed(void* self, MHD_Connection* connection, void** exchange,
                          MHD_RequestTerminationCode) noexcept {
        if (*exchange == nullptr) return;
        auto& surface = *static_cast<Surface*>(self);
        const std::unique_ptr<Exchange> ended(
            static_cast<Exchange*>(std::exchange(*exchange, nullptr)));
        surface.drop_body(connection, *ended);
        surface.under_way_.leave();
    }

    static void connection_changed(void* self, MHD_Connection* connection, void**,
                                   MHD_ConnectionNotificationCode what) noexcept {
        auto& surface = *static_cast<Surface*>(self);
        const int fd = descriptor_of(connection);
        if (what == MHD_CONNECTION_NOTIFY_STARTED) {
            surface.connections_.add(fd, host_of(connection), AdminServer::kConnectionsMax);
        } else {
            surface.connections_.remove(fd);
        }
    }

    static int descriptor_of(MHD_Connection* connection) {
        return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    }

    static PeerHost host_of(MHD_Connection* connection) {
        const sockaddr* const address =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr;
        PeerHost host{};
        if (address->sa_family == AF_INET) {
            std::memcpy(host.data(), &reinterpret_cast<const sockaddr_in*>(address)->sin_addr,
                        sizeof(in_addr));
        } else if (address->sa_family == AF_INET6) {
            std::memcpy(host.data(), &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr,
                        sizeof(in6_addr));
            host = core::counted_as(host);
        }
        return host;
    }

    static void log(void* self, const char* format, va_list arguments) noexcept {
        std::array<char, 512> text{};
        std::vsnprintf(text.data(), text.size(), format, arguments);
        std::string_view line(text.data());
        while (line.ends_with('\n')) line.remove_suffix(1);
        core::emit(static_cast<Surface*>(self)->events_, core::Level::kDebug, "admin.http",
                   {{"problem", line}});
    }

    MHD_Result begin(MHD_Connection* connection, const char* path, const char* method,
                     void** exchange) {
        auto started = std::make_unique<Exchange>();
        started->request.method = method;
        started->request.path = path;
        started->route = find_route(path);
        const Exchange& current = *started;
        *exchange = started.release();
        under_way_.enter();
        if (announced_bytes(connection) > kBodyReadMax) {
            return refuse(connection, too_large(current));
        }
        return MHD_YES;
    }

    MHD_Result answer(MHD_Connection* connection, Exchange& exchange) {
        AdminRequest& request = exchange.request;
        if (exchange.body_bytes > exchange.body_max()) {
            return refuse(connection, too_large(exchange));
        }
        const bool is_kept = exchange.body_bytes <= exchange.room_bytes();
        if (!is_kept) return refuse(connection, too_many());
        const AdminRoute* const route = exchange.route;
        if (route == nullptr) return refuse(connection, {MHD_HTTP_NOT_FOUND, "no such path"});
        if (request.method == "HEAD") request.method = "GET";
        if (request.method != route->method) {
            return refuse(connection, {MHD_HTTP_METHOD_NOT_ALLOWED, "no such method on this path",
                                       route->method == "GET" ? "GET, HEAD" : route->method});
        }
        QueryArguments arguments{.query = request.query};
        MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, &take_argument, &arguments);
        if (!arguments.doubled.empty())
            return refuse(connection, {MHD_HTTP_BAD_REQUEST,
                                       "the parameter " + core::printable(arguments.doubled) +
                                           " is given twice"});
        if (serves_ == Serves::kEverything && is_audited(request)) {
            request.caller = caller_of(descriptor_of(connection));
        }
        MHD_get_connection_values(connection, MHD_HEADER_KIND, &take_accept, &request.accept);
        // The time spent in the handler does not count as idle time.
        MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, 0U);
        const int fd = descriptor_of(connection);
        connections_.enter_handler(fd);
        if (exchange.has_large_place) large_.has_come(fd);
        const std::optional<AdminReply> reply = ask(*route, request);
        connections_.leave_handler(fd);
        drop_body(connection, exchange);
        MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, idle_seconds_);
        if (!reply) return refuse(connection, too_many());
        return send_reply(connection, static_cast<unsigned>(reply->status), reply->content_type,
                          reply->body, {});
    }

    const AdminRoute* find_route(std::string_view path) const {
        if (path == kMetricsRoute.path) return &kMetricsRoute;
        if (serves_ == Serves::kMetrics) return nullptr;
        const auto routes = handler_.routes();
        const auto route = std::ranges::find(routes, path, &AdminRoute::path);
        return route == routes.end() ? nullptr : &*route;
    }

    // Nothing if the handler already has its maximum of requests.
    std::optional<AdminReply> ask(const AdminRoute& route, const AdminRequest& request) {
        Places& places = route.answers == AdminRoute::Answers::kLate ? late_ : soon_;
        std::optional<AdminReply> reply;
        if (!places.take()) return reply;
        reply = request.path == kMetricsRoute.path ? metrics(request) : handler_.handle(request);
        places.give_back();
        return reply;
    }

    AdminReply metrics(const AdminRequest& request) {
        const MetricsFormat format = preferred_format(request.accept);
        return {.content_type = std::string(content_type_of(format)),
                .body = handler_.metrics(format)};
    }

    const Serves serves_;
    const unsigned idle_seconds_;
    AdminHandler& handler_;
    core::EventSink& events_;
    RequestsUnderWay& under_way_;
    Places soon_;  // Requests with the handler.
    Places late_;
    LargeBodies large_;
    Connections connections_;
    MHD_Daemon* daemon_ = nullptr;
    core::OwnedFd quiet_;
};

class AdminServer::Surfaces {
public:
    Surfaces(const Options& options, AdminHandler& handler, core::EventSink& events)
        : stop_wait_(options.stop_wait),
          events_(events),
          admin_(Serves::kEverything, options, handler, events, under_way_),
          tcp_(Serves::kMetrics, options, handler, events, under_way_) {}
    ~Surfaces() { stop(); }

    Started<void> start(const Options& options) {
        // TCP first: it leaves no file behind if the other fails.
        TcpListener tcp;
        if (options.metrics.has_value()) {
            auto listener = listen_tcp(*options.metrics, options.kept_ports);
            if (!listener) return std::unexpected(std::move(listener.error()));
            tcp = std::move(*listener);
        }
        auto listener = listen_unix(options.socket);
        if (!listener) return std::unexpected(std::move(listener.error()));
        file_ = std::move(*listener);
        metrics_address = tcp.address;
        metrics_port = tcp.port;
        const bool has_tcp = tcp.socket.get() >= 0;
        if (!admin_.start(std::move(file_.socket)) ||
            (has_tcp && !tcp_.start(std::move(tcp.socket)))) {
            return std::unexpected(StartProblem{
                kExitSystem, std::string("the admin server's threads cannot be started") +
                                 kThreadAdvice + ", or LimitNOFILE= or ulimit -n"});
        }
        core::emit(events_, core::Level::kInfo, "admin.listening",
                   {{"socket", std::string_view(options.socket)},
                    {"group", std::string_view(file_.has_group ? "fopd" : "")},
                    {"metrics", std::string_view(metrics_address)}});
        return {};
    }

    void stop() {
        if (std::exchange(is_stopped_, true)) return;
        file_.remove_file();
        admin_.refuse_new();
        tcp_.refuse_new();
        under_way_.wait_none(stop_wait_);
        admin_.stop();
        tcp_.stop();
    }

    void remove_file() const { file_.remove_file(); }

    std::string metrics_address;
    std::uint16_t metrics_port = 0;

private:
    const Duration stop_wait_;
    core::EventSink& events_;
    RequestsUnderWay under_way_;
    UnixListener file_;
    Surface admin_;
    Surface tcp_;
    bool is_stopped_ = false;
};

Started<std::unique_ptr<AdminServer>> AdminServer::start(const Options& options,
                                                         AdminHandler& handler,
                                                         core::EventSink& events) {
    ENSURE(options.idle_timeout > Duration{0});
    ENSURE(options.requests_max > 0);
    ENSURE(options.late_requests_max > 0);
    ENSURE(options.requests_max + options.late_requests_max < kConnectionsMax);
    auto surfaces = std::make_unique<Surfaces>(options, handler, events);
    auto started = surfaces->start(options);
    if (!started) return std::unexpected(std::move(started.error()));
    return std::unique_ptr<AdminServer>(new AdminServer(std::move(surfaces)));
}

AdminServer::AdminServer(std::unique_ptr<Surfaces> surfaces) : surfaces_(std::move(surfaces)) {}

AdminServer::~AdminServer() = default;

void AdminServer::stop() {
    surfaces_->stop();
}

void AdminServer::remove_file() const {
    surfaces_->remove_file();
}

const std::string& AdminServer::metrics_address() const {
    return surfaces_->metrics_address;
}

std::uint16_t AdminServer::metrics_port() const {
    return surfaces_->metrics_port;
}

}  // namespace fopd::daemon

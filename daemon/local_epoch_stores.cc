#include "daemon/local_epoch_stores.h"

#include <cerrno>
#include <utility>

#include <unistd.h>

#include "core/result.h"
#include "daemon/secret_file.h"
#include "eh/etcd/curl_http.h"

namespace fopd::daemon {

namespace {

// libcurl reads the files at each connection, and then only the log would say that it cannot.
Started<void> check_files(const eh::EpochSettings::Tls& tls) {
    for (const auto& path : {tls.ca, tls.cert, tls.key}) {
        if (!path || access(path->c_str(), R_OK) == 0) continue;
        const Error error = os_error(errno, "read");
        return std::unexpected(
            StartProblem{.exit_code = kExitKeyFile,
                         .message = "eh.store.tls: " + *path + ": " + describe(error)});
    }
    return {};
}

Started<std::string> read_password(const std::optional<std::string>& path) {
    if (!path) return std::string();
    auto text = read_secret_file(*path);
    if (!text) {
        return std::unexpected(
            StartProblem{.exit_code = text.error().exit_code,
                         .message = "eh.store.password_file: " + text.error().message});
    }
    while (!text->empty() && (text->back() == '\n' || text->back() == '\r')) text->pop_back();
    if (!text->empty()) return text;
    return std::unexpected(
        StartProblem{.exit_code = kExitKeyFile,
                     .message = "eh.store.password_file: " + *path + ": it has no password"});
}

}  // namespace

Started<std::optional<EtcdAccess>> read_etcd_access(const eh::EpochSettings::Store& settings) {
    if (settings.kind == eh::EpochSettings::Store::Kind::kStatic) return std::nullopt;
    const eh::EpochSettings::Tls& tls = settings.tls;
    if (auto readable = check_files(tls); !readable) return std::unexpected(readable.error());
    auto password = read_password(settings.password_file);
    if (!password) return std::unexpected(password.error());
    auto http = eh::etcd::make_curl_http(
        {.ca = tls.ca.value_or(""), .cert = tls.cert.value_or(""), .key = tls.key.value_or("")});
    if (http) return EtcdAccess{.http = *std::move(http), .password = *std::move(password)};
    return std::unexpected(
        StartProblem{.exit_code = kExitSystem, .message = describe(http.error())});
}

LocalEpochStores::LocalEpochStores(const World& world, const eh::EpochSettings::Store& settings,
                                   std::optional<EtcdAccess> etcd, const std::string& data_dir)
    : incarnation_(world.reactor, world.offload, data_dir + "/epochs.incarnation"),
      view_file_(world.reactor, world.offload, data_dir + "/epochs.view"),
      file_views_(view_file_),
      numbers_(world.reactor, world.offload, data_dir + "/epochs.numbers") {
    if (!etcd) return;
    http_ = std::move(etcd->http);
    etcd_views_ = std::make_unique<eh::EtcdViewStore>(
        eh::etcd_options(settings, std::move(etcd->password)), *http_, world.clock, world.events,
        world.reactor, world.offload);
}

eh::ViewStore& LocalEpochStores::views() {
    if (etcd_views_ != nullptr) return *etcd_views_;
    return file_views_;
}

Task<bool> LocalEpochStores::close(Instant deadline) {
    bool store_closed = true;
    if (etcd_views_ != nullptr) store_closed = co_await etcd_views_->stop(deadline);
    const bool incarnation_closed = co_await incarnation_.close(deadline);
    const bool view_closed = co_await view_file_.close(deadline);
    const bool numbers_closed = co_await numbers_.close(deadline);
    const bool all_closed = store_closed && incarnation_closed && view_closed && numbers_closed;
    co_return all_closed;
}

}  // namespace fopd::daemon

#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "daemon/admin_server.h"
#include "tests/slowness.h"

// Answers each path with what the test put there, and remembers what it was asked. A path that is
// held makes its callers wait.
class CannedHandler final : public fopd::daemon::AdminHandler {
public:
    std::span<const fopd::daemon::AdminRoute> routes() const override {
        static constexpr std::array<fopd::daemon::AdminRoute, 14> kRoutes{{
            {.method = "POST",
             .path = "/v1/drain",
             .answers = fopd::daemon::AdminRoute::Answers::kLate},
            {.method = "POST", .path = "/v1/device/forget"},
            {.method = "POST", .path = "/v1/keys/reload"},
            {.method = "POST", .path = "/v1/log-level"},
            {.method = "POST", .path = "/v1/lrs/rule/load", .body_max = 1UL << 20},
            {.method = "POST", .path = "/v1/reload"},
            {.method = "POST", .path = "/v1/store/check"},
            {.method = "GET", .path = "/v1/devices"},
            {.method = "GET", .path = "/v1/health"},
            {.method = "GET", .path = "/v1/keys"},
            {.method = "GET", .path = "/v1/sessions"},
            {.method = "GET", .path = "/v1/status"},
            {.method = "GET", .path = "/v1/store/check-report"},
            {.method = "GET", .path = "/v1/trace"},
        }};
        return kRoutes;
    }
    fopd::daemon::AdminReply handle(const fopd::daemon::AdminRequest& request) override {
        std::unique_lock lock(mutex_);
        requests_.push_back(request);
        changed_.notify_all();
        changed_.wait(lock, [&] { return held_path_ != request.path; });
        // More than one reply: each is given once, the last one ever after.
        auto& replies = replies_[request.path];
        if (replies.empty()) return {.status = 200, .body = "{}"};
        const auto reply = replies.front();
        if (replies.size() > 1) replies.erase(replies.begin());
        return reply;
    }
    std::string metrics(fopd::daemon::MetricsFormat format) override {
        const std::lock_guard lock(mutex_);
        ++metrics_asked_;
        changed_.notify_all();
        if (!metrics_.empty()) return metrics_;
        return format == fopd::daemon::MetricsFormat::kOpenMetrics ? "# EOF\n" : "# text\n";
    }
    void put_metrics(std::string text) {
        const std::lock_guard lock(mutex_);
        metrics_ = std::move(text);
    }

    void put(const std::string& path, int status, std::string body) {
        const std::lock_guard lock(mutex_);
        replies_[path].push_back({.status = status, .body = std::move(body)});
    }
    void hold(const std::string& path) {
        const std::lock_guard lock(mutex_);
        held_path_ = path;
    }
    void release() {
        const std::lock_guard lock(mutex_);
        held_path_.clear();
        changed_.notify_all();
    }
    // Waits until `count` requests have come.
    void wait_requests(std::size_t count) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return requests_.size() >= count; });
    }
    std::vector<fopd::daemon::AdminRequest> requests() {
        const std::lock_guard lock(mutex_);
        return requests_;
    }

    // Waits for so many requests of metrics; false: they have not come within half a minute.
    bool wait_metrics_asked(std::size_t count) {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, std::chrono::seconds(30) * fopd::testing::kSlowness,
                                 [&] { return metrics_asked_ >= count; });
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::string held_path_;
    std::map<std::string, std::vector<fopd::daemon::AdminReply>> replies_;
    std::vector<fopd::daemon::AdminRequest> requests_;
    std::string metrics_;  // Empty: the usual ones.
    std::size_t metrics_asked_ = 0;
};

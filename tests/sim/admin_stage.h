#pragma once

#include <future>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "daemon/admin_api.h"
#include "tests/catch.h"
#include "tests/sim/replayed_cluster.h"

namespace fopd::sim::testing {

// A node of a simulated cluster, and the administrators that ask it without a socket in between.
class AdminStage {
public:
    using Query = std::map<std::string, std::string>;
    using Asked = std::future<daemon::AdminReply>;
    struct Answer {
        int status = 0;
        nlohmann::json json{};
    };

    // `more` is added to the node's configuration. A test that makes backups has a data directory.
    AdminStage(std::uint64_t seed, ClusterOptions options, const std::string& more = "",
               const std::string& data_dir = "")
        : cluster_(seed, options) {
        std::string text = node().good_configuration();
        if (!data_dir.empty()) text.insert(text.find('{') + 1, " data_dir: " + data_dir + ",");
        node().set_configuration(text + more);
        cluster_.start_all();
        REQUIRE(node().running());  // Else the configuration is wrong.
        api_ = std::make_unique<daemon::AdminApi>(daemon::AdminApi::Parts{
            .control = node().control(),
            .node = node().node(),
            .configuration = node().configuration(),
            .facts =
                [this] {
                    return daemon::StatusFacts{.log_level = node().configuration().log_level(),
                                               .watchdog_timeout = 10s,
                                               .threads = {}};
                },
            .set_log_level = [this](core::Level level) { levels_.push_back(level); },
            .metrics = {},
            .events = node().events(),
            .clock = cluster_.world().clock()});
    }
    // The coroutines of requests that were not answered end before what they use.
    ~AdminStage() { node().crash(); }
    AdminStage(const AdminStage&) = delete;
    AdminStage& operator=(const AdminStage&) = delete;

    ReplayedCluster& cluster() { return cluster_; }
    SimulatedNode& node() { return cluster_.node(0); }
    daemon::AdminApi& api() { return *api_; }
    // The log levels that were set, in this order.
    const std::vector<core::Level>& levels() const { return levels_; }

    // Runs until the node takes work.
    void wait_ready() {
        for (int i = 0; i < 200 && node().node().state() != daemon::NodeState::kReady; ++i)
            run_for(10ms);
        REQUIRE(node().node().state() == daemon::NodeState::kReady);
    }
    void run_for(Duration span) {
        cluster_.run_for(span);
        INFO(cluster_.broken_promise());
        REQUIRE(cluster_.broken_promise().empty());
    }
    // The locality gets no turn for so long.
    void stall(std::uint32_t locality, Duration span) {
        cluster_.world().stall(node().locality(locality), after(cluster_.world().now(), span));
    }
    // Something that runs on a locality on behalf of a client, for so long.
    void begin_work(std::uint32_t index, Duration span) {
        daemon::Locality& locality = *node().node().localities()[index];
        locality.reactor().spawn(locality.work(), work_for(&locality.reactor(), span));
    }

    // Asks, and does not wait for the answer.
    Asked ask(const std::string& path, Query query = {}, std::string body = {}) {
        return api_->ask({.method = {}, .path = path, .query = std::move(query), .body = body});
    }
    static bool answered(const Asked& asked) {
        return asked.wait_for(0s) == std::future_status::ready;
    }
    // The answer, which is there.
    static Answer take(Asked asked) {
        REQUIRE(answered(asked));
        const daemon::AdminReply reply = asked.get();
        CHECK(reply.content_type == "application/json");
        return {.status = reply.status, .json = nlohmann::json::parse(reply.body)};
    }
    // Runs until the answer is there.
    Answer wait_for(Asked asked) {
        for (int i = 0; i < 6000 && !answered(asked); ++i) run_for(10ms);
        return take(std::move(asked));
    }
    Answer answer(const std::string& path, Query query = {}, std::string body = {}) {
        return wait_for(ask(path, std::move(query), std::move(body)));
    }
    // Of an answer that is a refusal: its status and what is said.
    static std::string refusal(const Answer& answer) {
        return std::to_string(answer.status) + " " + answer.json.value("error", "no error");
    }
    std::string refused(const std::string& path, Query query = {}, std::string body = {}) {
        return refusal(answer(path, std::move(query), std::move(body)));
    }

private:
    static Task<void> work_for(core::Reactor* reactor, Duration span) {
        [[maybe_unused]] const auto slept = co_await reactor->sleep_for(span);
    }

    ReplayedCluster cluster_;
    std::vector<core::Level> levels_;
    std::unique_ptr<daemon::AdminApi> api_;
};

}  // namespace fopd::sim::testing

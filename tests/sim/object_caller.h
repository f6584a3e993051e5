#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "client/object_client.h"
#include "core/entropy.h"
#include "core/gate.h"
#include "sim/client_host.h"
#include "tests/catch.h"
#include "tests/sim/admin_stage.h"

namespace fopd::sim::testing {

// A client of the stage's node, with the real client library, whose calls a test waits for. The
// stage outlives it, and has a network.
class ObjectCaller {
public:
    explicit ObjectCaller(AdminStage& stage)
        : stage_(stage),
          reactor_(stage.cluster().world().make_reactor()),
          entropy_(1),
          host_(*reactor_, events_, entropy_,
                client_host_options("caller", stage.cluster().hosts().protection())) {
        client::ObjectClientOptions options;
        options.server = stage.cluster().hosts().address_of(stage.node().name(), 1);
        objects_ = std::make_unique<client::ObjectClient>(host_, std::move(options));
        REQUIRE(host_.open(stage.cluster().hosts().transport()).has_value());
        objects_->start();
    }
    ~ObjectCaller() { reactor_->drop_coroutines(); }
    ObjectCaller(const ObjectCaller&) = delete;
    ObjectCaller& operator=(const ObjectCaller&) = delete;

    client::ObjectClient& objects() { return *objects_; }
    client::TapeCalls& tape() { return objects_->tape(); }

    // Runs until the call has ended: at most for an hour, in which a library does much.
    template <typename Value>
    client::Outcome<Value> wait_for(Task<client::Outcome<Value>> call) {
        std::optional<client::Outcome<Value>> outcome;
        reactor_->spawn(calls_, keep(std::move(call), &outcome));
        for (int i = 0; i < 36'000 && !outcome; ++i) stage_.run_for(100ms);
        REQUIRE(outcome.has_value());
        return *std::move(outcome);
    }
    // The value of a call that succeeds.
    template <typename Value>
    Value done(Task<client::Outcome<Value>> call) {
        auto outcome = wait_for(std::move(call));
        INFO((outcome ? std::string() : outcome.error().words));
        REQUIRE(outcome.has_value());
        if constexpr (!std::is_void_v<Value>) return *std::move(outcome);
    }
    // The words of a refusal, with its status.
    template <typename Value>
    std::string refused(Task<client::Outcome<Value>> call) {
        const auto outcome = wait_for(std::move(call));
        if (outcome) return "not refused";
        const client::Problem& problem = outcome.error();
        return std::string(fop::status_row(problem.status).name) + ": " + problem.words;
    }

    fop::Fid put(const std::string& pool, const std::string& name,
                 const std::vector<std::byte>& bytes) {
        client::NewObject made;
        made.pool = pool;
        made.name = name;
        return done(objects_->put(std::move(made), bytes, {}));
    }

private:
    template <typename Value>
    static Task<void> keep(Task<client::Outcome<Value>> call,
                           std::optional<client::Outcome<Value>>* outcome) {
        auto ended = co_await std::move(call);
        outcome->emplace(std::move(ended));
    }

    AdminStage& stage_;
    core::Gate calls_;
    std::unique_ptr<core::Reactor> reactor_;
    core::NullEventSink events_;
    core::SeededEntropy entropy_;
    fabric::SessionHost host_;
    std::unique_ptr<client::ObjectClient> objects_;
};

}  // namespace fopd::sim::testing

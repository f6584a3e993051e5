#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.h"
#include "core/events.h"
#include "eh/etcd/gateway.h"
#include "eh/etcd/http.h"

namespace fopd::eh::testing {

// Time that passes only when somebody waits.
class ManualClock final : public core::Clock {
public:
    Instant now() const override { return now_; }
    WallTime wall() const override { return {}; }
    void advance(Duration span) { now_ += span; }

private:
    Instant now_{1s};
};

// What becomes of a request.
enum class Fate : std::uint8_t {
    kServed,
    kNoConnection,
    kHangs,        // Nothing is done, and nothing answers.
    kAnswerLost,   // It is done, then the connection is lost.
    kAnswerLate,   // It is done, and nothing answers.
    kDoneLater,    // Nothing answers; it is done at finish_late().
    kUnavailable,  // etcd gives up, and may have done it.
    kGarbled,      // It is done, and the answer is no JSON.
    kFull,         // It is refused: there is no space.
    kFullNow,      // It is done, and refused: there is no space any more.
    kForeign,      // Somebody else's server.
};

// etcd, as far as its gateway is used, with the calls of all its endpoints.
class FakeEtcd final : public etcd::Http {
public:
    explicit FakeEtcd(ManualClock& clock) : clock_(clock) {}

    std::expected<etcd::HttpAnswer, etcd::HttpFailure> post(
        const etcd::HttpRequest& request) override;
    void cancel() override { is_cancelled_ = true; }
    void resume() { is_cancelled_ = false; }

    // Of the next requests, one each; then of those to an endpoint.
    std::deque<Fate> fates;
    std::map<std::string, Fate> endpoints;
    void finish_late();
    void forget_tokens() { tokens_.clear(); }

    std::string user;  // Not empty: authentication is on.
    std::string password;
    std::set<std::string> refusals;  // Paths that fail with `refusal` from now on.
    etcd::HttpAnswer refusal;

    std::vector<etcd::HttpRequest> requests;
    std::int64_t compacted = 0;
    std::size_t count(std::string_view path) const;
    const std::map<std::string, etcd::KeyValue>& keys() const { return keys_; }
    void put(const std::string& key, std::string_view value);

private:
    etcd::HttpAnswer serve(const etcd::HttpRequest& request);
    etcd::HttpAnswer read(std::string_view body) const;
    etcd::HttpAnswer transact(std::string_view body);
    etcd::HttpAnswer authenticate(std::string_view body);
    etcd::HttpAnswer compact(std::string_view body);

    ManualClock& clock_;
    std::int64_t revision_ = 1;
    std::map<std::string, etcd::KeyValue> keys_;
    std::set<std::string> tokens_;
    std::uint64_t tokens_given_ = 0;
    std::vector<etcd::HttpRequest> late_;
    bool is_cancelled_ = false;
};

// Keeps events as "name field=value …".
class EventLines final : public core::EventSink {
public:
    void emit(core::Level level, std::string_view name,
              std::span<const core::Field> fields) override;
    bool wants(core::Level) const override { return true; }
    std::vector<std::string> take() { return std::exchange(lines_, {}); }

private:
    std::vector<std::string> lines_;
};

}  // namespace fopd::eh::testing

#include "tests/eh/fake_etcd.h"

#include <algorithm>
#include <variant>

#include <nlohmann/json.hpp>

#include "core/ensure.h"
#include "fop/base64.h"

namespace fopd::eh::testing {

namespace {

using etcd::HttpAnswer;
using etcd::HttpFailure;
using etcd::HttpRequest;
using Json = nlohmann::json;

std::string plain(const Json& base64) {
    const auto bytes = fop::from_base64(base64.get<std::string>(), fop::Base64::kPadded);
    ENSURE(bytes.has_value());
    return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
}

HttpAnswer refuse(int status, int code, const std::string& message) {
    return {.status = status,
            .body = Json{{"error", message}, {"message", message}, {"code", code}}.dump()};
}

std::string path_of(const std::string& url) {
    return url.substr(url.find('/', url.find("//") + 2));
}

Json header(std::int64_t revision) {
    return {{"cluster_id", "18446744073709551615"}, {"revision", std::to_string(revision)}};
}

}  // namespace

std::size_t FakeEtcd::count(std::string_view path) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        requests, [&](const HttpRequest& request) { return path_of(request.url) == path; }));
}

void FakeEtcd::put(const std::string& key, std::string_view value) {
    const auto bytes = std::as_bytes(std::span(value));
    keys_[key] = {.value = {bytes.begin(), bytes.end()}, .revision = ++revision_};
}

std::expected<HttpAnswer, HttpFailure> FakeEtcd::post(const HttpRequest& request) {
    ENSURE(request.time > Duration{0});
    requests.push_back(request);
    if (is_cancelled_)
        return std::unexpected(HttpFailure{.code = Errc::kCancelled, .reason = "given up"});
    Fate fate = Fate::kServed;
    const auto endpoint = endpoints.find(request.url.substr(0, request.url.find("/v3")));
    if (endpoint != endpoints.end()) fate = endpoint->second;
    if (!fates.empty()) {
        fate = fates.front();
        fates.pop_front();
    }
    constexpr std::string_view kSlow = "no answer in time";
    switch (fate) {
        case Fate::kServed: clock_.advance(2ms); return serve(request);
        case Fate::kNoConnection:
            return std::unexpected(HttpFailure{.reason = "Connection refused"});
        case Fate::kAnswerLost:
            (void)serve(request);
            return std::unexpected(
                HttpFailure{.may_have_arrived = true, .reason = "Connection reset"});
        case Fate::kUnavailable: return refuse(503, 14, "etcdserver: request timed out");
        case Fate::kGarbled: (void)serve(request); return HttpAnswer{.status = 200, .body = "{"};
        case Fate::kFullNow: (void)serve(request); [[fallthrough]];
        case Fate::kFull: return refuse(429, 8, "etcdserver: mvcc: database space exceeded");
        case Fate::kForeign: return HttpAnswer{.status = 404, .body = "<html>"};
        case Fate::kAnswerLate: (void)serve(request); break;
        case Fate::kDoneLater: late_.push_back(request); break;
        case Fate::kHangs: break;
    }
    clock_.advance(request.time);
    return std::unexpected(HttpFailure{
        .code = Errc::kTimedOut, .may_have_arrived = true, .reason = std::string(kSlow)});
}

void FakeEtcd::finish_late() {
    for (const HttpRequest& request : std::exchange(late_, {})) (void)serve(request);
}

HttpAnswer FakeEtcd::serve(const HttpRequest& request) {
    const std::string path = path_of(request.url);
    if (refusals.contains(path)) return refusal;
    if (path == etcd::kAuthenticatePath) return authenticate(request.body);
    if (!user.empty() && request.token.empty())
        return refuse(400, 3, "etcdserver: user name is empty");
    if (!user.empty() && !tokens_.contains(request.token))
        return refuse(401, 16, "etcdserver: invalid auth token");
    if (path == etcd::kRangePath) return read(request.body);
    if (path == etcd::kTxnPath) return transact(request.body);
    ENSURE(path == etcd::kCompactPath);
    return compact(request.body);
}

HttpAnswer FakeEtcd::read(std::string_view body) const {
    Json answer{{"header", header(revision_)}};
    const std::string key = Json::parse(body).at("key");
    if (const auto found = keys_.find(plain(key)); found != keys_.end()) {
        answer["count"] = "1";
        answer["kvs"] =
            Json::array({{{"key", key},
                          {"mod_revision", std::to_string(found->second.revision)},
                          {"version", "1"},
                          {"value", fop::to_base64(found->second.value, fop::Base64::kPadded)}}});
    }
    return {.status = 200, .body = answer.dump()};
}

HttpAnswer FakeEtcd::transact(std::string_view body) {
    const Json request = Json::parse(body);
    const Json& compare = request.at("compare").at(0);
    ENSURE(compare.at("target") == "MOD" && compare.at("result") == "EQUAL");
    const auto found = keys_.find(plain(compare.at("key")));
    const std::int64_t present = found == keys_.end() ? 0 : found->second.revision;
    Json answer;
    if (std::to_string(present) == compare.at("mod_revision").get<std::string>()) {
        const Json& put_request = request.at("success").at(0).at("request_put");
        put(plain(put_request.at("key")), plain(put_request.at("value")));
        answer = {{"succeeded", true},
                  {"responses", Json::array({{{"response_put", {{"x", 1}}}}})}};
    } else {
        const Json range = request.at("failure").at(0).at("request_range");
        answer["responses"] =
            Json::array({{{"response_range", Json::parse(read(range.dump()).body)}}});
    }
    answer["header"] = header(revision_);
    return {.status = 200, .body = answer.dump()};
}

HttpAnswer FakeEtcd::authenticate(std::string_view body) {
    if (user.empty()) return refuse(412, 9, "etcdserver: authentication is not enabled");
    const Json request = Json::parse(body);
    if (request.at("name") != user || request.at("password") != password)
        return refuse(400, 3, "etcdserver: authentication failed, invalid user ID or password");
    const std::string token = "token." + std::to_string(++tokens_given_);
    tokens_.insert(token);
    return {.status = 200, .body = Json{{"header", header(revision_)}, {"token", token}}.dump()};
}

HttpAnswer FakeEtcd::compact(std::string_view body) {
    compacted = std::stoll(Json::parse(body).at("revision").get<std::string>());
    ENSURE(compacted <= revision_);
    return {.status = 200, .body = Json{{"header", header(revision_)}}.dump()};
}

void EventLines::emit(core::Level, std::string_view name, std::span<const core::Field> fields) {
    std::string line(name);
    for (const core::Field& field : fields) {
        line.append(" ").append(field.key).append("=");
        if (const auto* const text = std::get_if<std::string_view>(&field.value)) line += *text;
        if (const auto* const number = std::get_if<std::uint64_t>(&field.value))
            line += std::to_string(*number);
    }
    lines_.push_back(std::move(line));
}

}  // namespace fopd::eh::testing

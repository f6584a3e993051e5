#include "daemon/admin_api.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>

#include <unistd.h>

#include "config/problem.h"
#include "daemon/admin_audit.h"
#include "daemon/admin_reply.h"
#include "daemon/health.h"
#include "daemon/json_writer.h"
#include "daemon/log_format.h"
#include "daemon/open_metrics.h"
#include "daemon/settings.h"
#include "lrs/classes/rule_edit.h"

namespace fopd::daemon {

namespace {

constexpr std::string_view kBadConfiguration =
    "the configuration is not valid; nothing was changed";
constexpr std::string_view kNeedsRestart = "the configuration needs a restart; nothing was changed";

constexpr auto kLate = AdminRoute::Answers::kLate;

std::string_view in_words(DeviceOutcome::Kind kind) {
    switch (kind) {
        case DeviceOutcome::Kind::kNotAdded: return "not added";
        case DeviceOutcome::Kind::kNotRemoved: return "not removed";
        case DeviceOutcome::Kind::kNotForgotten: return "not forgotten";
        default: return to_string(kind);
    }
}

// For a disk that is not open.
std::string state_and_reason(const DiskReport& disk) {
    return disk.reason.empty() ? disk.state : std::string(disk.state) + ": " + disk.reason;
}

}  // namespace

struct AdminApi::Verb {
    AdminRoute route;
    Task<AdminReply> (AdminApi::*run)(AdminRequest request);
    // How long the server's thread waits for the answer; 0: no limit, because the verb always ends.
    Duration patience = 5s;
};

constexpr std::array<AdminApi::Verb, 36> AdminApi::kVerbs{{
    {{.method = "GET", .path = "/v1/status"}, &AdminApi::status},
    {{.method = "GET", .path = "/v1/health"}, &AdminApi::health},
    {{.method = "GET", .path = "/v1/devices"}, &AdminApi::devices},
    {{.method = "GET", .path = "/v1/keys"}, &AdminApi::keys},
    {{.method = "POST", .path = "/v1/keys/reload"}, &AdminApi::keys_reload},
    {{.method = "POST", .path = "/v1/device/add", .answers = kLate}, &AdminApi::device_add, 0s},
    {{.method = "POST", .path = "/v1/device/remove", .answers = kLate},
     &AdminApi::device_remove,
     0s},
    {{.method = "POST", .path = "/v1/device/forget", .answers = kLate},
     &AdminApi::device_forget,
     0s},
    // Includes adding and removing disks.
    {{.method = "POST", .path = "/v1/reload", .answers = kLate}, &AdminApi::reload, 10min},
    {{.method = "POST", .path = "/v1/drain", .answers = kLate}, &AdminApi::drain, 0s},
    {{.method = "POST", .path = "/v1/log-level"}, &AdminApi::log_level},
    // These ask the localities.
    {{.method = "GET", .path = "/v1/sessions"}, &AdminApi::sessions},
    {{.method = "GET", .path = "/v1/trace"}, &AdminApi::trace},
    {{.method = "GET", .path = "/v1/load"}, &AdminApi::load},
    {{.method = "GET", .path = "/v1/media"}, &AdminApi::media},
    {{.method = "GET", .path = "/v1/drives"}, &AdminApi::drives},
    {{.method = "GET", .path = "/v1/epoch"}, &AdminApi::epoch_show},
    {{.method = "POST", .path = "/v1/epoch/force"}, &AdminApi::epoch_force},
    {{.method = "GET", .path = "/v1/lrs"}, &AdminApi::lrs_show},
    {{.method = "POST", .path = "/v1/scrub"}, &AdminApi::scrub},
    {{.method = "POST", .path = "/v1/store/check"}, &AdminApi::store_check},
    {{.method = "GET", .path = "/v1/store/check-report"}, &AdminApi::store_check_report},
    {{.method = "POST", .path = "/v1/store/backup", .answers = kLate}, &AdminApi::store_backup, 0s},
    // These need no locality.
    {{.method = "GET", .path = "/v1/io_sched"}, &AdminApi::io_sched_show},
    {{.method = "POST", .path = "/v1/io_sched/set"}, &AdminApi::io_sched_set},
    {{.method = "GET", .path = "/v1/lrs/rules"}, &AdminApi::lrs_rules},
    {{.method = "GET", .path = "/v1/lrs/which"}, &AdminApi::lrs_which},
    {{.method = "GET", .path = "/v1/lrs/draft"}, &AdminApi::lrs_draft},
    {{.method = "POST", .path = "/v1/lrs/saved"}, &AdminApi::lrs_saved},
    {{.method = "POST", .path = "/v1/lrs/set", .body_max = lrs::kRuleFileBytesMax},
     &AdminApi::lrs_set},
    {{.method = "POST", .path = "/v1/lrs/rule/add"}, &AdminApi::lrs_rule_add},
    {{.method = "POST", .path = "/v1/lrs/rule/change"}, &AdminApi::lrs_rule_change},
    {{.method = "POST", .path = "/v1/lrs/rule/del"}, &AdminApi::lrs_rule_del},
    {{.method = "POST", .path = "/v1/lrs/rule/load", .body_max = lrs::kRuleFileBytesMax},
     &AdminApi::lrs_rule_load},
    {{.method = "GET", .path = "/v1/store/backup-part"}, &AdminApi::store_backup_part, 30s},
    {{.method = "POST", .path = "/v1/store/backup-end"}, &AdminApi::store_backup_end},
}};

std::span<const AdminRoute> AdminApi::routes() const {
    static constexpr auto kRoutes = [] {
        std::array<AdminRoute, kVerbs.size()> routes;
        for (std::size_t i = 0; i < routes.size(); ++i) routes[i] = kVerbs[i].route;
        return routes;
    }();
    return kRoutes;
}

// One request on its way to the control reactor. The server's thread may stop waiting, so the
// request is shared and destroyed with its last reference.
class AdminApi::Call final : public core::Message, public std::enable_shared_from_this<Call> {
public:
    Call(AdminApi& api, const Verb& verb, AdminRequest request)
        : Message(&deliver), api_(api), verb_(verb), request_(std::move(request)) {}

    std::future<AdminReply> send() {
        self_ = shared_from_this();
        auto reply = reply_.get_future();
        api_.parts_.control.post(*this);
        return reply;
    }

private:
    static void deliver(Message& message) {
        const std::shared_ptr<Call> call = std::move(static_cast<Call&>(message).self_);
        AdminApi& api = call->api_;
        if (api.calls_.closed()) return call->refuse("the node is stopping; try again later");
        std::uint32_t& running = api.calls_of(call->verb_);
        if (running == kCallsOfVerbMax) {
            return call->refuse("too many of these requests wait for the node; try again later");
        }
        ++running;
        api.parts_.control.spawn(api.calls_, run(call));
    }

    void refuse(const char* why) {
        AdminReply reply = failure(kUnavailable, why);
        if (is_audited(request_)) audit(api_.parts_.events, request_, reply);
        reply_.set_value(std::move(reply));
    }

    static Task<void> run(std::shared_ptr<Call> call) {
        const bool is_late = call->verb_.route.answers == AdminRoute::Answers::kLate;
        if (is_audited(call->request_) && is_late) {
            audit_begin(call->api_.parts_.events, call->request_);
        }
        // The verb takes a copy, because the trail needs the request afterwards.
        AdminReply reply = co_await (call->api_.*call->verb_.run)(call->request_);
        --call->api_.calls_of(call->verb_);
        if (is_audited(call->request_)) audit(call->api_.parts_.events, call->request_, reply);
        call->reply_.set_value(std::move(reply));
    }

    AdminApi& api_;
    const Verb& verb_;
    AdminRequest request_;
    std::promise<AdminReply> reply_;
    std::shared_ptr<Call> self_;  // Set while it is in transit.
};

const AdminApi::Verb& AdminApi::verb_of(const AdminRequest& request) {
    const auto verb =
        std::ranges::find(kVerbs, request.path, [](const Verb& each) { return each.route.path; });
    ENSURE(verb != kVerbs.end());  // The server passes on only known routes.
    return *verb;
}

std::uint32_t& AdminApi::calls_of(const Verb& verb) {
    return calls_of_verbs_[static_cast<std::size_t>(&verb - kVerbs.data())];
}

std::future<AdminReply> AdminApi::ask(const AdminRequest& request) {
    return std::make_shared<Call>(*this, verb_of(request), request)->send();
}

AdminReply AdminApi::handle(const AdminRequest& request) {
    const Duration patience = verb_of(request).patience;
    auto reply = ask(request);
    if (patience.count() == 0) return reply.get();
    if (reply.wait_for(patience) != std::future_status::ready) {
        return failure(kTimeout, "the node's control thread does not answer");
    }
    return reply.get();
}

std::string AdminApi::metrics(MetricsFormat format) {
    return render_metrics(format, parts_.metrics);
}

Task<void> AdminApi::close() {
    co_await calls_.close(parts_.control);
}

// NOLINTNEXTLINE(readability-make-member-function-const)
Task<AdminReply> AdminApi::status(AdminRequest) {
    const NodeHealth health = health_of(parts_.node, parts_.configuration, parts_.clock);
    co_return json_reply(kOk,
                         status_json(parts_.node, parts_.configuration, parts_.facts(), health));
}

// NOLINTNEXTLINE(readability-make-member-function-const)
Task<AdminReply> AdminApi::devices(AdminRequest) {
    JsonWriter json;
    json.begin_object().array("devices", parts_.node.disks().reports_of_all(), &write_disk);
    co_return object_reply(json);
}

Task<AdminReply> AdminApi::reload(AdminRequest) {
    const auto reloaded = co_await parts_.node.reload();
    if (reloaded) {
        JsonWriter json;
        json.begin_object();
        json.list("changed", keys_in_force(reloaded->changes));
        json.list("needs_restart", reloaded->needs_restart);
        json.field("hash", reloaded->hash);
        json.key("devices").begin_array();
        for (const DeviceOutcome& each : reloaded->devices) {
            json.begin_object()
                .field("device", each.device)
                .field("result", to_string(each.kind))
                .field("reason", each.words)
                .end_object();
        }
        json.end_array();
        AdminReply reply = object_reply(json);
        reply.changes = reloaded->for_audit();
        for (const DeviceOutcome& each : reloaded->devices) {
            if (!each.done()) reply.reason = "device " + each.device + ": " + each.words;
        }
        co_return reply;
    }
    if (reloaded.error().busy) {
        co_return failure(kUnavailable, "not reloaded: " + reloaded.error().problems.front());
    }
    co_return not_valid(reloaded.error().needs_restart ? kNeedsRestart : kBadConfiguration,
                        reloaded.error().problems);
}

// NOLINTNEXTLINE(readability-make-member-function-const)
Task<AdminReply> AdminApi::health(AdminRequest) {
    co_return json_reply(kOk,
                         health_json(health_of(parts_.node, parts_.configuration, parts_.clock)));
}

// Tells fopctl which file of principals it has to change, and which user must be able to read it.
// NOLINTNEXTLINE(readability-make-member-function-const)
Task<AdminReply> AdminApi::keys(AdminRequest) {
    const auto files = parts_.node.reloads().principals_files();
    JsonWriter json;
    json.begin_object().field("file", parts_.configuration.file());
    json.text_or_null("principals", files.configured);
    json.text_or_null("principals_in_use", files.in_use);
    const auto mode = parts_.configuration.current()->get<AuthSettings>().mode;
    json.field("open_to_all", mode == AuthSettings::Mode::kNone);
    json.field("uid", std::uint64_t{::geteuid()}).field("gid", std::uint64_t{::getegid()});
    co_return object_reply(json);
}

Task<AdminReply> AdminApi::keys_reload(AdminRequest) {
    const auto reloaded = parts_.node.reloads().reload_keys();
    if (!reloaded && reloaded.error().busy) {
        co_return failure(kUnavailable, "not reloaded: " + reloaded.error().problems.front());
    }
    if (!reloaded) {
        co_return not_valid("the keys are not valid; nothing was changed",
                            reloaded.error().problems);
    }
    JsonWriter json;
    json.begin_object().list("changed", keys_in_force(reloaded->changes));
    AdminReply reply = object_reply(json);
    reply.changes = reloaded->for_audit();
    co_return reply;
}

Task<AdminReply> AdminApi::device_add(AdminRequest request) {
    const auto name = request.query.find("device");
    if (name == request.query.end())
        co_return failure(kBadRequest, "the parameter device is missing");
    std::string device = name->second;
    const auto added = co_await parts_.node.devices().add(std::move(device));
    co_return device_reply(added);
}

Task<AdminReply> AdminApi::device_remove(AdminRequest request) {
    const auto name = request.query.find("device");
    if (name == request.query.end())
        co_return failure(kBadRequest, "the parameter device is missing");
    std::string device = name->second;
    const auto removed = co_await parts_.node.devices().remove(std::move(device));
    co_return device_reply(removed);
}

Task<AdminReply> AdminApi::device_forget(AdminRequest request) {
    const auto value_of = [&request](const char* key) {
        const auto found = request.query.find(key);
        return found == request.query.end() ? std::string() : found->second;
    };
    DeviceRequests::LostDevice lost{.name = value_of("device"), .is_sure = is_yes(request, "sure")};
    const std::string slot = value_of("slot");
    if (lost.name.empty() == slot.empty()) {
        co_return failure(kBadRequest, "name the lost disk by either device or slot");
    }
    if (!slot.empty()) {
        const auto number = number_in(request, "slot");
        if (!number || *number == 0 || *number > std::numeric_limits<store::Slot>::max()) {
            co_return failure(kBadRequest, "the parameter slot must be a number from 1 to 65535");
        }
        lost.slot = static_cast<store::Slot>(*number);
    }
    const auto forgotten = co_await parts_.node.devices().forget(std::move(lost));
    co_return device_reply(forgotten);
}

AdminReply AdminApi::device_reply(const DeviceRequests::Outcome& result) const {
    if (!result && result.error().busy) {
        return failure(kUnavailable, result.error().problems.front());
    }
    if (!result) return not_valid(kBadConfiguration, result.error().problems);
    if (!result->done()) {
        const std::string which =
            result->device.empty() ? "the device" : "device " + result->device;
        return failure(result->try_later    ? kUnavailable
                       : result->is_unknown ? kNotFound
                                            : kConflict,
                       which + " is " + std::string(in_words(result->kind)) + ": " + result->words);
    }
    JsonWriter json;
    json.begin_object()
        .field("device", result->device)
        .field("result", to_string(result->kind))
        .field("file", parts_.configuration.file())
        .field("in_file", parts_.node.devices().is_configured(result->device));
    if (result->lost) {
        json.key("lost")
            .begin_object()
            .field("slot", std::uint64_t{result->lost->slot})
            .field("disk", result->lost->disk)
            .field("pool", result->lost->pool)
            .field("objects", result->lost->object_count)
            .end_object();
    }
    json.key("now");
    const std::vector<DiskReport> reports = parts_.node.disks().reports();
    const auto report = std::ranges::find(reports, result->device, &DiskReport::name);
    if (report == reports.end()) {
        json.null();
    } else {
        write_disk(json, *report);
    }
    return object_reply(json);
}

namespace {

// A rewind from the end of a tape takes minutes, a move of the changer as well.
constexpr Duration kUnloadPatience = 15min;

std::string words_of(const std::vector<library::DriveRow>& left) {
    std::string words = "drained, but not unloaded:";
    for (const library::DriveRow& each : left) {
        words += " drive " + each.name;
        if (!each.barcode.empty()) words += " has " + each.barcode;
        words += each.reason.empty() ? ";" : ": " + each.reason + ";";
    }
    words.pop_back();
    return words;
}

}  // namespace

Task<AdminReply> AdminApi::drain(AdminRequest request) {
    const bool unloads = is_yes(request, "unload");
    const NodeState before = parts_.node.state();
    if (before == NodeState::kStarting || before >= NodeState::kStopping) {
        co_return failure(kUnavailable,
                          std::string("not drained: the node is ") + to_string(before));
    }
    const Instant began_at = parts_.control.now();
    const LeftRunning left = co_await parts_.node.drain();
    const double took = in_seconds(parts_.control.now() - began_at);
    if (!left.nothing()) {
        co_return failure(kUnavailable, std::to_string(left.operations) + " operations and " +
                                            std::to_string(left.localities) +
                                            " localities did not end within the drain timeout");
    }
    if (unloads) {
        const auto drives = co_await parts_.node.questions().unload_drives(kUnloadPatience);
        if (!drives.empty()) co_return failure(kUnavailable, words_of(drives));
    }
    JsonWriter json;
    json.begin_object().field("state", "drained").field("seconds", took);
    co_return object_reply(json);
}

Task<AdminReply> AdminApi::log_level(AdminRequest request) {
    const auto word = request.query.find("level");
    const auto level = word == request.query.end() ? std::nullopt : level_named(word->second);
    if (!level) {
        co_return failure(kBadRequest,
                          "the parameter level must be one of trace, debug, info, warn, error");
    }
    const core::Level before = parts_.configuration.log_level();
    parts_.configuration.set_log_level(*level);
    parts_.set_log_level(*level);
    emit_each(parts_.events, core::Level::kInfo, "daemon.log_level",
              {{"level", level_name(*level)}, {"was", level_name(before)}});
    JsonWriter json;
    json.begin_object().field("level", level_name(*level)).field("was", level_name(before));
    AdminReply reply = object_reply(json);
    reply.changes.push_back({.path = "log.level",
                             .old_value = std::string(level_name(before)),
                             .new_value = std::string(level_name(*level)),
                             .reload = config::Reload::kLive});
    co_return reply;
}

AdminReply AdminApi::not_serving() const {
    return failure(kUnavailable, std::string("the node is ") + to_string(parts_.node.state()));
}

Task<AdminReply> AdminApi::scrub(AdminRequest request) {
    return order_disks(std::move(request), Order::kScrub);
}

Task<AdminReply> AdminApi::store_check(AdminRequest request) {
    return order_disks(std::move(request), Order::kCheck);
}

// The node's present disks, without removed ones; all of them if none is named.
std::vector<std::string> AdminApi::disk_names(std::string_view wanted) const {
    std::vector<std::string> names;
    for (const auto& disk : parts_.node.disks().all()) {
        const std::string& name = disk->settings().name;
        if (wanted.empty() || wanted == name) names.push_back(name);
    }
    return names;
}

std::string AdminApi::why_not_open(std::string_view device) const {
    const std::vector<DiskReport> reports = parts_.node.disks().reports();
    const auto report = std::ranges::find(reports, device, &DiskReport::name);
    if (report == reports.end() || report->capacity_bytes) return {};
    return state_and_reason(*report);
}

// The reply if disk_names() finds no disk.
AdminReply AdminApi::no_disk(std::string_view wanted) const {
    if (wanted.empty()) return failure(kConflict, "the node has no devices");
    const std::string device(wanted);
    const std::string why = why_not_open(device);
    if (why.empty()) return failure(kNotFound, "there is no device " + device);
    return failure(kConflict, "device " + device + " is " + why);
}

// If asked to wait, answers when no check runs any more, or after kWaitMax; the client then asks
// again.
Task<AdminReply> AdminApi::store_check_report(AdminRequest request) {
    constexpr Duration kWaitMax = 1s;
    constexpr Duration kLookAgainAfter = 20ms;
    const auto device = request.query.find("device");
    const std::string wanted = device == request.query.end() ? "" : device->second;
    const bool waits = is_yes(request, "wait");
    const Instant end = after(parts_.control.now(), kWaitMax);
    for (;;) {
        if (!parts_.node.life().serving()) co_return not_serving();
        bool runs = false;
        JsonWriter json;
        json.begin_object().key("checks").begin_array();
        const std::vector<std::string> names = disk_names(wanted);
        if (names.empty() && !wanted.empty()) co_return no_disk(wanted);
        for (const std::string& name : names) {
            std::string which = name;
            auto check = co_await parts_.node.checks().store_check(std::move(which));
            if (check.problem.empty()) check.problem = why_not_open(name);
            runs = runs || check.state == objects::CheckStatus::State::kRunning;
            write_check(json, name, check);
        }
        json.end_array().end_object();
        if (!waits || !runs || parts_.control.now() >= end) {
            co_return json_reply(kOk, json.text());
        }
        const auto slept = co_await parts_.control.sleep_for(kLookAgainAfter);
        ENSURE(slept.has_value());
    }
}

Task<AdminReply> AdminApi::order_disks(AdminRequest request, Order order) {
    const auto wanted = request.query.find("device");
    const std::string device = wanted == request.query.end() ? "" : wanted->second;
    const auto word = request.query.find("do");
    const bool begin = word == request.query.end() || word->second == "begin";
    if (!begin && word->second != "end")
        co_return failure(kBadRequest, "the parameter do must be begin or end");
    if (!parts_.node.life().serving()) co_return not_serving();
    const std::vector<std::string> names = disk_names(device);
    if (names.empty()) co_return no_disk(device);
    std::size_t done = 0;
    std::vector<std::string> problems;
    for (const std::string& name : names) {
        std::string which = name;
        Task<Result<void>> task = order == Order::kScrub
                                      ? parts_.node.checks().scrub(std::move(which), begin)
                                      : parts_.node.checks().check_store(std::move(which), begin);
        const auto ordered = co_await std::move(task);
        if (ordered) {
            ++done;
            continue;
        }
        const std::string why = why_not_open(name);
        problems.push_back(
            "device " + name +
            (why.empty() ? ": " + std::string(ordered.error().context) : " is " + why));
    }
    if (done == 0) co_return failure(kConflict, config::joined(problems));
    JsonWriter json;
    json.begin_object().field("devices", std::uint64_t{done}).list("problems", problems);
    co_return object_reply(json);
}

}  // namespace fopd::daemon

// The verbs of the admin socket about the request scheduler.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "daemon/admin_api.h"
#include "daemon/admin_reply.h"
#include "daemon/json_writer.h"
#include "lrs/classes/described_request.h"
#include "lrs/policies.h"
#include "lrs/settings.h"
#include "reqh/executors.h"

namespace fopd::daemon {

namespace {

// At most this many classes in an answer; the others are summed up as one.
constexpr std::size_t kClassesShownMax = 1000;

constexpr const char* kPolicyKey = "policy";
constexpr const char* kVersionKey = "if_version";
// With this parameter, the request's body has the policy's rules.
constexpr const char* kRulesKey = "rules";

// Under the names that rules use.
void write_shares(JsonWriter& json, const lrs::ClassFigures& figures) {
    const lrs::ClassShares& shares = *figures.shares;
    json.key("shares").begin_object();
    if (shares.reservation) json.field("reservation", *shares.reservation);
    json.field("weight", shares.weight);
    if (shares.limit) json.field(shares.is_soft ? "soft_limit" : "limit", *shares.limit);
    json.field("served_reserved", figures.as_reserved)
        .field("served_by_weight", figures.by_weight)
        .field("served_over_limit", figures.over_limit)
        .end_object();
}

void write_turns(JsonWriter& json, const lrs::ClassTurns& turns) {
    json.key("turns").begin_object().field("weight", turns.weight).field("taken", turns.taken);
    if (turns.queued_in_all) json.field("queued_on_all_nodes", *turns.queued_in_all);
    json.end_object();
}

void write_cluster(JsonWriter& json, const lrs::ClassInCluster& cluster) {
    json.key("cluster")
        .begin_object()
        .field("share", cluster.share)
        .field("cut_off", cluster.is_cut_off)
        .field("differs", cluster.differs)
        .end_object();
}

void write_class(JsonWriter& json, const lrs::ClassFigures& figures) {
    json.begin_object()
        .field("name", figures.name)
        .field("queued", figures.queued)
        .field("served", figures.served)
        .field("bytes", figures.bytes)
        .field("rate", figures.operations_per_second)
        .field("bytes_rate", figures.bytes_per_second)
        .field("throttled", figures.is_throttled)
        .field("throttled_s", in_seconds(figures.throttled))
        .field("oldest_s", in_seconds(figures.oldest));
    if (figures.shares) write_shares(json, figures);
    if (figures.turns) write_turns(json, *figures.turns);
    if (figures.cluster) write_cluster(json, *figures.cluster);
    json.end_object();
}

// `policy` is empty for a setting of the section itself.
void write_setting(JsonWriter& json, std::string_view policy, const lrs::NamedValue& setting) {
    json.begin_object().field("name", setting.key);
    json.text_or_null("policy", policy);
    write_setting_value(json, setting.value);
    json.end_object();
}

enum class SettingsShown : std::uint8_t { kInForce, kOfAllPolicies };

// The section's own settings, then those of the policy in force and of the policy below it, or
// those of all policies.
void write_settings(JsonWriter& json, const lrs::LrsSettings& settings, SettingsShown shown) {
    const auto is_shown = [&settings, shown](const lrs::PolicyEntry& policy) {
        return shown == SettingsShown::kOfAllPolicies || &policy == settings.policy ||
               &policy == &settings.decides();
    };
    const auto write_all = [&json, &settings](const lrs::PolicyEntry& policy) {
        for (const lrs::NamedValue& each : lrs::values_of(settings, policy))
            write_setting(json, policy.name, each);
    };
    json.key("settings").begin_array();
    for (const lrs::NamedValue& each : lrs::section_values(settings)) write_setting(json, {}, each);
    write_all(*settings.policy);
    for (const lrs::PolicyEntry& each : lrs::policies()) {
        if (&each != settings.policy && is_shown(each)) write_all(each);
    }
    json.end_array();
}

void write_policies(JsonWriter& json) {
    json.key("policies").begin_array();
    for (const lrs::PolicyEntry& each : lrs::policies()) json.value(each.name);
    json.end_array();
}

// Whether the policy in force has rules.
bool uses_rules(const lrs::LrsSettings& settings) {
    return &settings.with_rules() == &settings.decides();
}

// The policy that has these rules, and whether it is in force.
void write_policy_of_rules(JsonWriter& json, const lrs::LrsSettings& settings) {
    json.field("uses_rules", uses_rules(settings)).field("rules_of", settings.with_rules().name);
}

void write_rules(JsonWriter& json, const lrs::OrderedRules& rules) {
    json.key("rules").begin_array();
    for (std::size_t i = 0; i < rules.count(); ++i) {
        json.begin_object()
            .field("name", rules.at(i).name)
            .field("text", rules.text(i))
            .end_object();
    }
    json.end_array();
}

void write_rule_for(JsonWriter& json, const lrs::OrderedRules& rules,
                    const lrs::RequestAttributes& attributes) {
    const std::size_t index = rules.index_for(attributes);
    const lrs::ClassRule& rule = rules.at(index);
    json.key("by_rules")
        .begin_object()
        .field("rule", rule.name)
        .field("text", rules.text(index))
        .field("class", rule.class_name(attributes))
        .end_object();
}

}  // namespace

Task<AdminReply> AdminApi::lrs_show(AdminRequest request) {
    const bool has_all = is_yes(request, "all");
    if (!parts_.node.life().serving()) co_return not_serving();
    const auto classes = co_await parts_.node.questions().class_figures(kClassesShownMax);
    std::uint64_t queued = 0;
    for (const lrs::ClassFigures& each : classes) queued += each.queued;
    const auto& settings = parts_.configuration.current()->get<lrs::LrsSettings>();
    JsonWriter json;
    json.begin_object().field("policy", settings.policy->name).field("queued", queued);
    write_settings(json, settings,
                   has_all ? SettingsShown::kOfAllPolicies : SettingsShown::kInForce);
    if (has_all) write_policies(json);
    json.list("differs", parts_.configuration.differing_lrs_keys());
    json.array("classes", classes, &write_class);
    co_return object_reply(json);
}

// -- changes --

std::set<std::string> AdminApi::rule_texts() const {
    const auto rules = parts_.node.lrs().rules();
    std::set<std::string> texts;
    for (std::size_t i = 0; i < rules->count(); ++i) texts.insert(rules->text(i));
    return texts;
}

std::vector<std::string> AdminApi::new_rule_warnings(const std::set<std::string>& before) const {
    const auto rules = parts_.node.lrs().rules();
    std::vector<std::string> warnings;
    for (std::size_t i = 0; i < rules->count(); ++i) {
        if (before.contains(rules->text(i))) continue;
        for (std::string& each : parts_.node.rule_warnings().about(rules->at(i).name)) {
            warnings.push_back(std::move(each));
        }
    }
    return warnings;
}

// The reply to a change: the keys changed, those that differ from the file, and what is wrong with
// the rules that have come into force or were edited. `before`: the texts of the rules before.
AdminReply AdminApi::lrs_changed(const LrsChanges::Outcome& result,
                                 const std::set<std::string>& before) const {
    if (!result && result.error().is_unknown) {
        return not_found("nothing was changed", result.error().problems);
    }
    if (!result) return not_changed(result.error());
    const auto& settings = parts_.configuration.current()->get<lrs::LrsSettings>();
    JsonWriter json;
    json.begin_object().field("policy", settings.policy->name);
    const auto rules = parts_.node.lrs().rules();
    write_policy_of_rules(json, settings);
    json.field("version", rules->version()).field("rules", std::uint64_t{rules->count()});
    std::vector<std::string> keys;
    for (const config::Change& each : *result) keys.push_back(each.path);
    json.list("changed", keys);
    json.list("differs", parts_.configuration.differing_lrs_keys());
    json.list("warnings", new_rule_warnings(before));
    AdminReply reply = object_reply(json);
    reply.changes = *result;
    return reply;
}

Task<AdminReply> AdminApi::lrs_set(AdminRequest request) {
    if (request.query.empty()) co_return failure(kBadRequest, "nothing to set is given");
    const auto named = request.query.find(kPolicyKey);
    const bool has_policy = named != request.query.end();
    // A policy setting that is itself called `policy` is given with its policy's name as a prefix;
    // without a policy's name, settings belong to the policy in force.
    const std::string own = (has_policy ? named->second : std::string()) + ".";
    std::vector<lrs::NamedValue> values;
    for (const auto& [key, value] : request.query) {
        if (key.starts_with(own)) values.push_back({key.substr(own.size()), value});
        if (key.starts_with(own) || key == kPolicyKey || key == kRulesKey) continue;
        co_return failure(kBadRequest, key + ": a key to set is called " + own + "KEY");
    }
    const auto& settings = parts_.configuration.current()->get<lrs::LrsSettings>();
    const std::string policy = has_policy ? named->second : std::string(settings.policy->name);
    std::optional<std::string_view> rules;
    if (request.query.contains(kRulesKey)) rules = request.body;
    // Rules that were not in force before are as new as those that come with the request.
    std::set<std::string> before;
    if (uses_rules(settings)) before = rule_texts();
    const auto result = parts_.node.lrs().set_policy(policy, values, rules);
    if (!uses_rules(parts_.configuration.current()->get<lrs::LrsSettings>())) before = rule_texts();
    co_return lrs_changed(result, before);
}

AdminReply AdminApi::edit_rules(const AdminRequest& request, lrs::RuleEdit::Verb verb,
                                std::string_view text) {
    lrs::RuleEdit edit{.verb = verb, .text = text};
    if (request.query.contains(kVersionKey)) {
        edit.only_at = number_in(request, kVersionKey);
        if (!edit.only_at) return failure(kBadRequest, "the parameter if_version must be a number");
        const std::uint64_t version = parts_.node.lrs().rules()->version();
        if (*edit.only_at != version) {
            return failure(kConflict, "not changed: the rules have version " +
                                          std::to_string(version) + " meanwhile, not " +
                                          std::to_string(*edit.only_at) + "; look at them again");
        }
    }
    const std::set<std::string> before = rule_texts();
    return lrs_changed(parts_.node.lrs().edit_rules(edit), before);
}

Task<AdminReply> AdminApi::lrs_rule_add(AdminRequest request) {
    co_return edit_rules(request, lrs::RuleEdit::Verb::kAdd, request.query["rule"]);
}

Task<AdminReply> AdminApi::lrs_rule_change(AdminRequest request) {
    co_return edit_rules(request, lrs::RuleEdit::Verb::kChange, request.query["rule"]);
}

Task<AdminReply> AdminApi::lrs_rule_del(AdminRequest request) {
    co_return edit_rules(request, lrs::RuleEdit::Verb::kDel, request.query["name"]);
}

Task<AdminReply> AdminApi::lrs_rule_load(AdminRequest request) {
    co_return edit_rules(request, lrs::RuleEdit::Verb::kLoad, request.body);
}

// NOLINTNEXTLINE(readability-make-member-function-const)
Task<AdminReply> AdminApi::lrs_rules(AdminRequest) {
    const auto& settings = parts_.configuration.current()->get<lrs::LrsSettings>();
    const auto rules = parts_.node.lrs().rules();
    JsonWriter json;
    json.begin_object().field("policy", settings.policy->name);
    write_policy_of_rules(json, settings);
    json.field("version", rules->version());
    write_rules(json, *rules);
    co_return object_reply(json);
}

// NOLINTNEXTLINE(readability-make-member-function-const)
Task<AdminReply> AdminApi::lrs_which(AdminRequest request) {
    const auto described = lrs::DescribedRequest::parse(request.query["request"]);
    if (!described) {
        co_return failure(kBadRequest, "the request: " + to_string(described.error()));
    }
    lrs::RequestAttributes attributes = (*described)->attributes();
    const objects::StoreLayoutPtr layout = parts_.node.layout().current();
    if (layout == nullptr && !parts_.node.life().serving()) co_return not_serving();
    // A node without devices has no pools.
    const objects::StoreLayout empty;
    const auto wrong = reqh::complete(attributes, layout == nullptr ? empty : *layout);
    if (wrong) {
        const bool is_unknown = wrong->kind == reqh::Impossible::Kind::kUnknown;
        co_return failure(is_unknown ? kNotFound : kBadRequest,
                          "no fop can have these properties: " + wrong->words);
    }
    const auto& settings = parts_.configuration.current()->get<lrs::LrsSettings>();
    const std::string of_class = parts_.node.lrs().class_of(attributes);
    JsonWriter json;
    json.begin_object().field("policy", settings.policy->name);
    json.field("class", of_class);
    write_policy_of_rules(json, settings);
    write_rule_for(json, *parts_.node.lrs().rules(), attributes);
    if (parts_.node.life().serving()) {
        const auto classes = co_await parts_.node.questions().class_figures(kClassesShownMax);
        const auto known = std::ranges::find(classes, of_class, &lrs::ClassFigures::name);
        if (known != classes.end() && known->cluster) write_cluster(json, *known->cluster);
    }
    co_return object_reply(json);
}

// -- save: the client writes the file, because the daemon has no permission to --

// NOLINTNEXTLINE(readability-make-member-function-const)
Task<AdminReply> AdminApi::lrs_draft(AdminRequest) {
    const auto draft = parts_.configuration.draft_lrs();
    if (!draft) co_return failure(kConflict, "not saved: " + draft.error());
    std::error_code failed;
    const std::string file = std::filesystem::absolute(parts_.configuration.file(), failed);
    if (failed) co_return failure(kConflict, "not saved: " + failed.message());
    JsonWriter json;
    json.begin_object()
        .field("file", file)
        .field("before", draft->before)
        .field("after", draft->after);
    json.list("differs", parts_.configuration.differing_lrs_keys());
    co_return object_reply(json);
}

Task<AdminReply> AdminApi::lrs_saved(AdminRequest) {
    if (!parts_.configuration.note_lrs_saved()) {
        co_return failure(
            kConflict, "the file does not have the request scheduler's settings that are in force");
    }
    JsonWriter json;
    json.begin_object().field("file", parts_.configuration.file());
    json.list("differs", parts_.configuration.differing_lrs_keys());
    co_return object_reply(json);
}

}  // namespace fopd::daemon

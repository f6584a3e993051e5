// The verbs of the admin socket about the I/O schedulers.
#include <string>
#include <vector>

#include "daemon/admin_api.h"
#include "daemon/admin_reply.h"
#include "daemon/json_writer.h"

namespace fopd::daemon {

// NOLINTNEXTLINE(readability-make-member-function-const)
Task<AdminReply> AdminApi::io_sched_show(AdminRequest) {
    JsonWriter json;
    json.begin_object().key("settings").begin_array();
    for (const SectionValue& each : parts_.configuration.io_sched_values()) {
        json.begin_object().field("name", each.key);
        write_setting_value(json, each.value);
        json.end_object();
    }
    json.end_array();
    json.list("differs", parts_.configuration.differing_io_sched_keys());
    co_return object_reply(json);
}

Task<AdminReply> AdminApi::io_sched_set(AdminRequest request) {
    std::vector<SectionValue> values;
    for (const auto& [key, value] : request.query) values.push_back({key, value});
    if (values.empty()) co_return failure(kBadRequest, "nothing to set is given");
    const auto changed = parts_.node.io_sched().set(values);
    if (!changed) co_return not_changed(changed.error());
    std::vector<std::string> keys;
    for (const config::Change& each : *changed) keys.push_back(each.path);
    JsonWriter json;
    json.begin_object().list("changed", keys);
    json.list("differs", parts_.configuration.differing_io_sched_keys());
    AdminReply reply = object_reply(json);
    reply.changes = *changed;
    co_return reply;
}

}  // namespace fopd::daemon

// The verbs of the admin socket about sessions and fops.
#include <optional>
#include <utility>

#include "config/problem.h"
#include "daemon/admin_api.h"
#include "daemon/admin_reply.h"
#include "daemon/json_writer.h"
#include "daemon/load_report.h"

namespace fopd::daemon {

namespace {

// Fops that wait for their turn, in one answer.
constexpr std::size_t kQueuedFopsMax = 1000;

}  // namespace

Task<AdminReply> AdminApi::sessions(AdminRequest) {
    if (!parts_.node.life().serving()) co_return not_serving();
    const auto sessions = co_await parts_.node.questions().sessions();
    JsonWriter json;
    json.begin_object().array("sessions", sessions, &write_session);
    co_return object_reply(json);
}

Task<AdminReply> AdminApi::trace(AdminRequest request) {
    const auto word = request.query.find("id");
    const bool has_id = word != request.query.end();
    const auto id = has_id ? reqh::parse_fop_id(word->second) : std::nullopt;
    if (has_id && !id) {
        co_return failure(kBadRequest, config::in_quotes(word->second) +
                                           " is not the name of a fop, such as 5f3a-17");
    }
    const bool is_slow = is_yes(request, "slow");
    if (has_id && is_slow)
        co_return failure(kBadRequest, "give only one of the parameters id and slow");
    if (!parts_.node.life().serving()) co_return not_serving();
    if (!has_id) {
        auto asked = is_slow ? parts_.node.questions().slow_fops()
                             : parts_.node.questions().fops(kQueuedFopsMax);
        const auto list = co_await std::move(asked);
        JsonWriter json;
        json.begin_object().key("fops").begin_array();
        for (const reqh::FopRecord& each : list.fops) write_fop(json, each, parts_.node.now());
        json.end_array().field("left_out", list.left_out);
        co_return object_reply(json);
    }
    const auto record = co_await parts_.node.questions().trace(*id);
    if (!record) {
        co_return failure(kNotFound, "no fop of this name waits, runs or is among the last ones");
    }
    JsonWriter json;
    write_fop(json, *record, parts_.node.now());
    co_return json_reply(kOk, json.text());
}

Task<AdminReply> AdminApi::load(AdminRequest) {
    if (!parts_.node.life().serving()) co_return not_serving();
    LoadReport report;
    const auto rows = co_await parts_.node.questions().load();
    report.add(rows);
    for (const auto& disk : parts_.node.disks().all()) report.add(*disk);
    JsonWriter json;
    report.write(json);
    co_return json_reply(kOk, json.text());
}

}  // namespace fopd::daemon

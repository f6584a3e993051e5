// The verbs of the admin socket about epochs.
#include "daemon/admin_api.h"
#include "daemon/admin_reply.h"
#include "daemon/json_writer.h"
#include "eh/settings.h"

namespace fopd::daemon {

namespace {

using eh::peers::EpochState;
using eh::peers::EpochStatus;

std::string_view epoch_in_words(EpochState state) {
    switch (state) {
        case EpochState::kIdle: return "idle";
        case EpochState::kWaiting: return "waiting";
        case EpochState::kClosing: return "closing";
        case EpochState::kDetached: break;
    }
    return "detached";
}

std::string_view epoch_in_words(EpochStatus::Seen::State state) {
    switch (state) {
        case EpochStatus::Seen::State::kReady: return "ready";
        case EpochStatus::Seen::State::kLost: return "lost";
        case EpochStatus::Seen::State::kDetached: return "detached";
        case EpochStatus::Seen::State::kUnknown: return "unknown";
        case EpochStatus::Seen::State::kMember: break;
    }
    return "member";
}

}  // namespace

// NOLINTNEXTLINE(readability-make-member-function-const)
Task<AdminReply> AdminApi::epoch_show(AdminRequest) {
    if (!parts_.node.life().serving()) co_return not_serving();
    const auto& settings = parts_.configuration.current()->get<eh::EpochSettings>();
    const bool has_peers = settings.kind == eh::EpochSettings::Kind::kPeers;
    const EpochStatus status = co_await parts_.node.questions().epochs();
    const bool has_etcd = settings.store.kind == eh::EpochSettings::Store::Kind::kEtcd;
    JsonWriter json;
    json.begin_object()
        .field("kind", has_peers ? "peers" : "local")
        .field("store", !has_peers ? ""
                        : has_etcd ? "etcd"
                                   : "static")
        .field("state", epoch_in_words(status.state))
        .field("epoch", static_cast<std::uint64_t>(status.epoch))
        .field("view", status.view)
        .field("root", status.root);
    json.key("members").begin_array();
    for (const EpochStatus::Seen& each : status.members) {
        json.begin_object()
            .field("name", each.name)
            .field("state", epoch_in_words(each.state))
            .end_object();
    }
    json.end_array();
    json.field("median_s", in_seconds(status.median)).field("p99_s", in_seconds(status.p99));
    json.field("last_error", status.last_error);
    json.field_or_null("last_error_age_s", status.last_error_age.transform(&in_seconds));
    co_return object_reply(json);
}

// NOLINTNEXTLINE(readability-make-member-function-const)
Task<AdminReply> AdminApi::epoch_force(AdminRequest request) {
    if (!parts_.node.life().serving()) co_return not_serving();
    if (!is_yes(request, "sure")) {
        co_return failure(kConflict,
                          "nothing is done: --yes confirms that the members that do not answer are "
                          "stopped; if they run, they may have epochs of their own");
    }
    const auto waived = co_await parts_.node.questions().waive_majority();
    if (!waived) co_return failure(kConflict, waived.error());
    JsonWriter json;
    json.begin_object().field("for_s", in_seconds(*waived));
    co_return object_reply(json);
}

}  // namespace fopd::daemon

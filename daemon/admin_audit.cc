#include "daemon/admin_audit.h"

#include <cstdint>
#include <string>

#include "core/printable.h"
#include "daemon/admin_reply.h"

namespace fopd::daemon {

namespace {

// Rules and their files may have megabytes; a longer value is cut.
constexpr std::size_t kValueBytesMax = 2000;

std::string shortened(std::string_view value) {
    if (value.size() <= kValueBytesMax) return std::string(value);
    return std::string(value.substr(0, kValueBytesMax)) + "… (" + std::to_string(value.size()) +
           " bytes)";
}

// device="d1" sure="yes", in the order of the keys.
std::string parameters_of(const AdminRequest& request) {
    std::string text;
    for (const auto& [key, value] : request.query) {
        if (!text.empty()) text += ' ';
        core::append_printable(text, key, core::Quotes::kEscape);
        text += "=\"";
        core::append_printable(text, value, core::Quotes::kEscape);
        text += '"';
    }
    return shortened(text);
}

void write_request(core::EventSink& events, const AdminRequest& request, std::string_view result,
                   std::string_view reason) {
    const std::string parameters = parameters_of(request);
    emit_each(events, core::Level::kInfo, "audit.administration",
              {{"user", std::string_view(request.caller.user)},
               {"uid", request.caller.uid},
               {"pid", request.caller.pid},
               {"verb", std::string_view(request.path)},
               {"parameters", std::string_view(parameters)},
               {"body_bytes", static_cast<std::uint64_t>(request.body.size())},
               {"result", result},
               {"reason", reason}});
}

}  // namespace

bool is_audited(const AdminRequest& request) {
    return request.method != "GET";
}

void audit_begin(core::EventSink& events, const AdminRequest& request) {
    write_request(events, request, "begun", {});
}

void audit(core::EventSink& events, const AdminRequest& request, const AdminReply& reply) {
    const AdminCaller& caller = request.caller;
    write_request(events, request, reply.status == kOk ? "done" : "refused", reply.reason);
    for (const config::Change& each : reply.changes) {
        const bool is_live = each.reload == config::Reload::kLive;
        const std::string before = shortened(each.old_value);
        const std::string after = shortened(each.new_value);
        emit_each(events, core::Level::kInfo, "audit.setting",
                  {{"user", std::string_view(caller.user)},
                   {"uid", caller.uid},
                   {"pid", caller.pid},
                   {"verb", std::string_view(request.path)},
                   {"key", std::string_view(each.path)},
                   {"old", std::string_view(before)},
                   {"new", std::string_view(after)},
                   {"takes_effect", is_live ? "now" : "at the next start"}});
    }
}

}  // namespace fopd::daemon

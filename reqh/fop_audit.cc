#include "reqh/fop_audit.h"

#include <array>
#include <cstdio>
#include <span>
#include <variant>

#include "fabric/rpc/incoming.h"
#include "reqh/administration.h"
#include "reqh/attributes.h"
#include "reqh/request_object.h"

namespace fopd::reqh {

namespace {

// "owner=ann group=staff mode=0640"
std::string access_of(const store::Object& object) {
    std::array<char, 16> mode{};
    std::snprintf(mode.data(), mode.size(), "%04o", static_cast<unsigned>(object.mode));
    return "owner=" + std::string(object.owner) + " group=" + std::string(object.group) +
           " mode=" + mode.data();
}

store::Object changed_by(const fop::SetAttributes& set, store::Object object) {
    set_attributes(set, object);
    return object;
}

}  // namespace

FopAudit::FopAudit(core::Reactor& reactor, core::EventSink& events)
    : Timer([](Timer& timer) { static_cast<FopAudit&>(timer).begin_interval(); }),
      reactor_(reactor),
      events_(events) {}

FopAudit::~FopAudit() {
    begin_interval();
}

void FopAudit::denied(const Ended& fop) {
    auto counted = denials_.find(fop.caller.share);
    if (counted == denials_.end()) {
        counted = denials_.emplace(std::string(fop.caller.share), 0).first;
    }
    if (!Timer::armed()) reactor_.arm(*this, after(reactor_.now(), kInterval));
    if (++counted->second > kDenialsMax) return;
    const std::string id = format_fop_id(fop.id);
    const std::string fid = fid_in(fop.type, fop.request, fop.reply);
    emit(events_, core::Level::kInfo, "audit.denied",
         {{"fop", std::string_view(id)},
          {"op", fop.type.name},
          {"principal", std::string_view(fop.caller.principal)},
          {"user", std::string_view(fop.caller.user)},
          {"peer", std::string_view(fop.caller.address)},
          {"pool", fop.pool},
          {"object", name_of(fop.request, fop.known)},
          {"new_name", new_name_in(fop.request)},
          {"fid", std::string_view(fid)},
          {"reason", fop.reply.words}});
    administered(fop);
}

void FopAudit::administered(const Ended& fop) {
    const auto parameters = administration_in(fop.type, fop.request, fop.asked_pool);
    if (!parameters) return;
    const std::string id = format_fop_id(fop.id);
    emit_each(events_, core::Level::kInfo, "audit.administration",
              {{"fop", std::string_view(id)},
               {"principal", std::string_view(fop.caller.principal)},
               {"user", std::string_view(fop.caller.user)},
               {"peer", std::string_view(fop.caller.address)},
               {"verb", fop.type.name},
               {"parameters", std::string_view(*parameters)},
               {"result", fop::to_string(fop.reply.status)},
               {"reason", fop.reply.words}});
}

void FopAudit::changed(const Ended& fop) {
    if (!events_.wants(core::Level::kInfo)) return;
    const std::string id = format_fop_id(fop.id);
    const std::string fid = fid_in(fop.type, fop.request, fop.reply);
    const auto* const set = std::get_if<fop::SetAttributes>(&fop.request.body);
    const bool has_values = set != nullptr && fop.known != nullptr;
    const std::string before = has_values ? access_of(*fop.known) : std::string();
    const std::string after = has_values ? access_of(changed_by(*set, *fop.known)) : std::string();
    const std::array<core::Field, 12> fields{{{"fop", std::string_view(id)},
                                              {"op", fop.type.name},
                                              {"principal", std::string_view(fop.caller.principal)},
                                              {"user", std::string_view(fop.caller.user)},
                                              {"peer", std::string_view(fop.caller.address)},
                                              {"pool", fop.pool},
                                              {"object", name_of(fop.request, fop.known)},
                                              {"new_name", new_name_in(fop.request)},
                                              {"fid", std::string_view(fid)},
                                              {"result", fop::to_string(fop.reply.status)},
                                              {"old", std::string_view(before)},
                                              {"new", std::string_view(after)}}};
    events_.emit_each(core::Level::kInfo, "audit.changed",
                      std::span(fields).first(has_values ? fields.size() : fields.size() - 2));
}

void FopAudit::begin_interval() {
    for (const auto& [share, count] : denials_) {
        if (count <= kDenialsMax) continue;
        emit_each(events_, core::Level::kInfo, "audit.denied_more",
                  {{"principal", std::string_view(share)}, {"count", count - kDenialsMax}});
    }
    denials_.clear();
}

}  // namespace fopd::reqh

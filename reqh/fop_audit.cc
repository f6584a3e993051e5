#include "reqh/fop_audit.h"

#include <variant>

#include "fabric/rpc/incoming.h"
#include "fop/fid.h"
#include "objects/fids.h"
#include "reqh/executors.h"

namespace fopd::reqh {

namespace {

// The object's name, if the request has it: of a rename, the one before it.
std::string_view name_in(const fop::Request& request) {
    return std::visit(
        [](const auto& body) -> std::string_view {
            if constexpr (requires { body.from; }) {
                return body.from;
            } else if constexpr (requires { body.name; }) {
                return body.name;
            } else {
                return {};
            }
        },
        request.body);
}

std::string_view new_name_in(const fop::Request& request) {
    const auto* const rename = std::get_if<fop::Rename>(&request.body);
    return rename == nullptr ? std::string_view() : rename->name;
}

// The object of the request, or the one that the reply has made; empty if there is none.
std::string fid_of(const FopAudit::Ended& fop) {
    const Executor& executor = executor_of(fop.type);
    if (executor.aim != nullptr) {
        return objects::format_fid(objects::store_fid(executor.aim(fop.request).object));
    }
    return std::visit(
        [](const auto& body) -> std::string {
            if constexpr (requires { body.fid; }) {
                return objects::format_fid(objects::store_fid(body.fid));
            }
            return {};
        },
        fop.reply.body);
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
    const std::string fid = fid_of(fop);
    emit(events_, core::Level::kInfo, "audit.denied",
         {{"fop", std::string_view(id)},
          {"op", fop.type.name},
          {"principal", std::string_view(fop.caller.principal)},
          {"user", std::string_view(fop.caller.user)},
          {"peer", std::string_view(fop.caller.address)},
          {"pool", fop.pool},
          {"object", name_in(fop.request)},
          {"new_name", new_name_in(fop.request)},
          {"fid", std::string_view(fid)},
          {"reason", fop.reply.words}});
}

void FopAudit::changed(const Ended& fop) {
    const std::string id = format_fop_id(fop.id);
    const std::string fid = fid_of(fop);
    emit_each(events_, core::Level::kInfo, "audit.changed",
              {{"fop", std::string_view(id)},
               {"op", fop.type.name},
               {"principal", std::string_view(fop.caller.principal)},
               {"user", std::string_view(fop.caller.user)},
               {"peer", std::string_view(fop.caller.address)},
               {"pool", fop.pool},
               {"object", name_in(fop.request)},
               {"new_name", new_name_in(fop.request)},
               {"fid", std::string_view(fid)},
               {"result", fop::to_string(fop.reply.status)}});
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

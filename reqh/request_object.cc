#include "reqh/request_object.h"

#include <variant>

#include "objects/fids.h"
#include "reqh/executors.h"

namespace fopd::reqh {

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

std::string_view name_of(const fop::Request& request, const store::Object* known) {
    const std::string_view name = name_in(request);
    return name.empty() && known != nullptr ? known->name : name;
}

std::string_view new_name_in(const fop::Request& request) {
    const auto* const rename = std::get_if<fop::Rename>(&request.body);
    return rename == nullptr ? std::string_view() : rename->name;
}

std::string fid_in(const fop::FopType& type, const fop::Request& request, const fop::Reply& reply) {
    const Executor& executor = executor_of(type);
    if (executor.aim != nullptr) {
        return objects::format_fid(objects::store_fid(executor.aim(request).object));
    }
    return std::visit(
        [](const auto& body) -> std::string {
            if constexpr (requires { body.fid; }) {
                return objects::format_fid(objects::store_fid(body.fid));
            }
            return {};
        },
        reply.body);
}

}  // namespace fopd::reqh

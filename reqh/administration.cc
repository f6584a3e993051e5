#include "reqh/administration.h"

#include <type_traits>
#include <variant>

#include "core/printable.h"

namespace fopd::reqh {

namespace {

void add(std::string& text, std::string_view key, std::string_view value) {
    if (value.empty()) return;
    if (!text.empty()) text += ' ';
    text += key;
    text += "=\"";
    core::append_printable(text, value, core::Quotes::kEscape);
    text += '"';
}

void add_if(std::string& text, std::string_view key, bool is_set) {
    if (is_set) add(text, key, "yes");
}

std::string_view to_string(fop::MediumWork::Kind kind) {
    switch (kind) {
        case fop::MediumWork::Kind::kRepack: return "repack";
        case fop::MediumWork::Kind::kScrub: return "scrub";
        case fop::MediumWork::Kind::kRescue: return "rescue";
        case fop::MediumWork::Kind::kFormat: return "format";
    }
    return "";
}

// The fields of each body that the audit trail has; other bodies have none.
template <typename Body>
std::string parameters_of(const Body& body) {
    std::string text;
    if constexpr (requires { body.name; }) add(text, "barcode", body.name);
    if constexpr (requires { body.drive; }) add(text, "drive", body.drive);
    if constexpr (std::is_same_v<Body, fop::FormatMedium>) {
        add_if(text, "forget_data", body.forget_data);
        add_if(text, "lose_objects", body.lose_objects);
    } else if constexpr (std::is_same_v<Body, fop::MediumWork>) {
        add(text, "work", to_string(body.kind));
        add(text, "order", body.order == fop::MediumWork::Order::kEnd ? "end" : "begin");
    } else if constexpr (std::is_same_v<Body, fop::SetDrive>) {
        add(text, "state", body.down ? "down" : "up");
    } else if constexpr (std::is_same_v<Body, fop::ExportMedium>) {
        add_if(text, "hide_objects", body.hide_objects);
    }
    return text;
}

}  // namespace

std::optional<std::string> administration_in(const fop::FopType& type, const fop::Request& request,
                                             std::string_view pool) {
    if (!type.rights.cover(fop::kAdmin)) return std::nullopt;
    const bool only_measures = std::holds_alternative<fop::Echo>(request.body) ||
                               std::holds_alternative<fop::BulkEcho>(request.body);
    const auto* const work = std::get_if<fop::MediumWork>(&request.body);
    const bool only_asks = work != nullptr && work->order == fop::MediumWork::Order::kShow;
    if (only_measures || only_asks) return std::nullopt;
    std::string text =
        std::visit([](const auto& body) { return parameters_of(body); }, request.body);
    add(text, "pool", pool);
    return text;
}

}  // namespace fopd::reqh

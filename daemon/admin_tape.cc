// The verbs of the admin socket about the tape library.
#include <algorithm>
#include <functional>
#include <string_view>

#include "core/stable_sort.h"
#include "daemon/admin_api.h"
#include "daemon/admin_reply.h"
#include "daemon/json_writer.h"

namespace fopd::daemon {

namespace {

using Media = LocalityQuestions::Media;

void write_cartridge(JsonWriter& json, const library::Cartridge& each, const Media& media) {
    const library::MediumBytes bytes = library::bytes_of(media.bytes, each);
    const auto drive = std::ranges::find(media.drives, each.barcode, &library::DriveRow::barcode);
    json.begin_object();
    json.field("name", each.barcode);
    json.field("family", "tape");
    json.field("pool", each.pool);
    json.field("technology", each.technology);
    json.field("state", library::to_string(each.state));
    json.field("reason", each.remark());
    json.field("capacity", each.capacity_bytes);
    json.field("used", each.used_bytes);
    json.field("live", bytes.live);
    json.field("dead", bytes.dead);
    json.field("files", each.files);
    json.field("mounts", each.mounts);
    json.field("generation", std::uint64_t{each.generation});
    const bool was_scrubbed = each.scrubbed_s != 0;
    json.field_or_null("scrubbed", was_scrubbed ? std::optional(each.scrubbed_s) : std::nullopt);
    json.field("damaged", each.damaged_copies);
    json.field("failures", each.failures);
    json.text_or_null("drive", drive == media.drives.end() ? std::string() : drive->name);
    json.end_object();
}

void write_drive(JsonWriter& json, const library::DriveRow& each) {
    json.begin_object();
    json.field("name", each.name);
    json.field("serial", each.serial);
    json.field("technology", each.technology);
    json.field("state", each.activity);
    json.field("reason", each.reason);
    json.text_or_null("medium", each.barcode);
    json.field("mounts", each.mounts);
    json.end_object();
}

void write_drives(JsonWriter& json, const Media& media) {
    json.array("drives", media.drives, &write_drive);
}

AdminReply not_open(const std::string& reason) {
    return failure(kUnavailable, reason.empty() ? "the tape library is being opened"
                                                : "the tape library is not open: " + reason);
}

}  // namespace

Task<AdminReply> AdminApi::drives(AdminRequest) {
    if (!parts_.node.life().serving()) co_return not_serving();
    Media media = co_await parts_.node.questions().drives();
    if (media.not_open) co_return not_open(*media.not_open);
    core::stable_sort(media.drives, std::less{}, &library::DriveRow::name);
    JsonWriter json;
    json.begin_object();
    write_drives(json, media);
    co_return object_reply(json);
}

Task<AdminReply> AdminApi::media(AdminRequest) {
    if (!parts_.node.life().serving()) co_return not_serving();
    Media media = co_await parts_.node.questions().media();
    if (media.not_open) co_return not_open(*media.not_open);
    core::stable_sort(media.cartridges, std::less{}, &library::Cartridge::barcode);
    JsonWriter json;
    json.begin_object().key("media").begin_array();
    for (const library::Cartridge& each : media.cartridges) write_cartridge(json, each, media);
    json.end_array();
    write_drives(json, media);
    co_return object_reply(json);
}

}  // namespace fopd::daemon

// The verbs of the admin socket about backups: the daemon writes a file without a name, and the
// client fetches it in parts.
#include <utility>

#include "daemon/admin_api.h"
#include "daemon/admin_reply.h"
#include "daemon/json_writer.h"
#include "daemon/settings.h"

namespace fopd::daemon {

namespace {

// A client that asks for no part for this long has gone away.
constexpr Duration kBackupKept = 10min;

}  // namespace

void AdminApi::BackupTimer::on_time(core::Timer& timer) {
    static_cast<BackupTimer&>(timer).api.backup_.reset();
}

void AdminApi::keep_backup() {
    parts_.control.arm(backup_timer_, after(parts_.control.now(), kBackupKept));
}

Task<AdminReply> AdminApi::store_backup(AdminRequest) {
    if (!parts_.node.life().serving()) co_return not_serving();
    if (backing_up_) co_return failure(kUnavailable, "another backup is being made");
    backup_.reset();
    const std::string& directory = parts_.configuration.current()->get<NodeSettings>().data_dir;
    auto backup =
        StoreBackup::begin(directory, {.node = parts_.node.id(), .made = parts_.clock.wall()});
    if (!backup) co_return failure(kConflict, "no backup: " + describe(backup.error()));
    backing_up_ = true;
    const auto made = co_await parts_.node.backup().write(backup->get());
    backing_up_ = false;
    if (!made) {
        const bool may_be_tried_again =
            made.error().code == Errc::kBusy || made.error().code == Errc::kClosed;
        co_return failure(may_be_tried_again ? kUnavailable : kConflict,
                          "no backup: " + describe(made.error()));
    }
    backup_ = std::move(*backup);
    ++backup_number_;
    keep_backup();
    emit(parts_.events, core::Level::kInfo, "daemon.backup_made",
         {{"bytes", backup_->size_bytes()}, {"entries", backup_->entry_count()}});
    JsonWriter json;
    json.begin_object()
        .field("backup", backup_number_)
        .field("bytes", backup_->size_bytes())
        .field("indexes", backup_->tree_count())
        .field("entries", backup_->entry_count());
    co_return object_reply(json);
}

Task<AdminReply> AdminApi::store_backup_part(AdminRequest request) {
    constexpr std::size_t kPartBytes = 4UL << 20;
    const auto number = number_in(request, "backup");
    const auto at = number_in(request, "at");
    if (!number || !at)
        co_return failure(kBadRequest, "the parameters backup and at must be numbers");
    if (backup_ == nullptr || *number != backup_number_) {
        co_return failure(kNotFound, "this backup has ended, or a later one has replaced it");
    }
    keep_backup();
    auto part = backup_->read(*at, kPartBytes);
    if (!part) co_return failure(kConflict, describe(part.error()));
    co_return AdminReply{
        .status = kOk, .content_type = "application/octet-stream", .body = std::move(*part)};
}

Task<AdminReply> AdminApi::store_backup_end(AdminRequest request) {
    const auto number = number_in(request, "backup");
    if (!number) co_return failure(kBadRequest, "the parameter backup must be a number");
    if (*number == backup_number_) backup_.reset();
    JsonWriter json;
    json.begin_object();
    co_return object_reply(json);
}

}  // namespace fopd::daemon

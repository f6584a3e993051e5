#include "daemon/node_backup.h"

#include <cstdint>

#include "core/ensure.h"
#include "core/remote_task.h"

namespace fopd::daemon {

Task<Result<void>> NodeBackup::write(StoreBackup* backup) {
    ENSURE(running_ == nullptr);
    if (parts_.disks.empty() || parts_.life.stop_requested()) {
        const char* const why =
            parts_.disks.empty() ? "there are no disks" : "the node is stopping";
        co_return std::unexpected(Error{.code = Errc::kClosed, .context = why});
    }
    const auto turn = co_await parts_.turn.begin();
    if (!turn) {
        co_return std::unexpected(Error{
            .code = Errc::kBusy,
            .context = "another change of the disks is in progress, or the node is draining"});
    }
    running_ = backup;
    const auto done = co_await write_all(backup);
    running_ = nullptr;
    parts_.turn.end();
    co_return done;
}

void NodeBackup::give_up() {
    if (running_ != nullptr) running_->give_up();
}

// The names are copied after the disks' indexes, so they include all changes that the indexes have.
Task<Result<void>> NodeBackup::write_all(StoreBackup* backup) {
    const Result<void> slots = backup->slots(parts_.disks.slots().text());
    if (!slots) co_return slots;
    const auto disks = co_await back_up_disks(backup);
    if (!disks) co_return disks;
    const auto names = co_await back_up_names(backup);
    if (!names) co_return names;
    co_return backup->end();
}

// Only present disks.
Task<Result<void>> NodeBackup::back_up_disks(StoreBackup* backup) {
    for (const auto& disk : parts_.disks.all()) {
        if (disk->stage() != DiskStage::kServing && disk->stage() != DiskStage::kDamaged) continue;
        objects::Stores& stores = *parts_.localities[disk->locality().index]->stores();
        backup->use_tree(
            {.kind = store::BackupTree::Kind::kIndex, .part = 0, .owner = disk->disk_id()});
        auto job = [&disk, backup] { return disk->show_index(backup); };
        const auto shown = co_await core::run_task_on<Result<void>>(
            parts_.control, disk->locality().reactor, stores.duties(), job);
        if (!shown) {
            co_return std::unexpected(
                Error{.code = Errc::kClosed, .context = "the node is stopping"});
        }
        if (!*shown) co_return *shown;
        const Result<void> ended = backup->end_tree();
        if (!ended) co_return ended;
    }
    co_return Result<void>{};
}

Task<Result<void>> NodeBackup::back_up_names(StoreBackup* backup) {
    for (std::uint32_t number = 0; number < parts_.localities.size(); ++number) {
        backup->use_tree(
            {.kind = store::BackupTree::Kind::kNames, .part = number, .owner = parts_.node});
        const auto shown = co_await parts_.names->show(number, backup);
        if (!shown) co_return shown;
        const Result<void> ended = backup->end_tree();
        if (!ended) co_return ended;
    }
    co_return Result<void>{};
}

}  // namespace fopd::daemon

#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/gate.h"
#include "core/wait_queue.h"
#include "library/library.h"
#include "library/staging.h"
#include "objects/stores.h"

namespace fopd::reqh::testing {

// The staging of a locality without tapes: a recall ends when the test says so.
class FakeStaging final : public library::Staging {
public:
    explicit FakeStaging(objects::Stores& stores)
        : stores_(stores), ended_(stores.parts().reactor) {}

    Task<Result<library::RecallAsked>> recall(library::RecallWish wish,
                                              core::WaitOptions /*wait*/) override {
        wishes.push_back(wish);
        objects::HomeVolume* const home = stores_.find(wish.fid.slot());
        if (home == nullptr) {
            co_return std::unexpected(Error{.code = Errc::kNotFound, .context = "no disk"});
        }
        const auto object = home->volume().map().find(wish.fid);
        const bool is_released = object && object->has_value() && (*object)->is_released;
        if (!is_released) co_return library::RecallAsked::kOnDisk;
        recalls.try_emplace(wish.fid);
        co_return library::RecallAsked::kWaiting;
    }
    Task<Result<library::RecallEnd>> wait_for_recall(library::Ticket ticket, store::ClientId reader,
                                                     core::WaitOptions wait) override {
        readers.push_back(reader);
        for (;;) {
            const auto found = recalls.find(ticket);
            if (found == recalls.end()) co_return library::RecallEnd{};
            if (found->second) co_return *found->second;
            ++waiting;
            const auto woken = co_await ended_.wait(wait);
            --waiting;
            if (!woken) co_return std::unexpected(woken.error());
        }
    }
    Task<Result<void>> cancel_recall(library::Ticket ticket, core::WaitOptions /*wait*/) override {
        if (!recalls.contains(ticket)) {
            co_return std::unexpected(Error{.code = Errc::kNotFound, .context = "no recall"});
        }
        end(ticket, {.how = library::RecallEnd::How::kCancelled, .reason = {}});
        co_return Result<void>{};
    }
    Task<Result<void>> release(store::Fid fid, core::WaitOptions /*wait*/) override {
        if (!is_of_tape_pool) {
            co_return std::unexpected(
                Error{.code = Errc::kInvalid, .context = "its pool is not a tape pool"});
        }
        if (is_on_tape) {
            released.push_back(fid);
            co_return Result<void>{};
        }
        co_return std::unexpected(Error{.code = Errc::kBusy, .context = "not on tape yet"});
    }

    void note_read(store::Fid fid, store::ClientId reader, std::uint64_t bytes) override {
        reads.push_back({.fid = fid, .reader = reader, .bytes = bytes});
    }
    void want_room(store::Slot slot, std::uint64_t free_blocks) override {
        wanted_room.emplace_back(slot, free_blocks);
    }

    void end(library::Ticket ticket, library::RecallEnd end) {
        recalls[ticket] = std::move(end);
        ended_.wake_all();
    }

    std::vector<library::RecallWish> wishes;
    std::vector<store::ClientId> readers;  // Of the waits for recalls.
    struct Read {
        store::Fid fid{};
        store::ClientId reader{};
        std::uint64_t bytes = 0;
    };
    std::vector<Read> reads;
    std::vector<store::Fid> released;
    std::vector<std::pair<store::Slot, std::uint64_t>> wanted_room;
    std::map<library::Ticket, std::optional<library::RecallEnd>> recalls;
    std::uint64_t waiting = 0;
    bool is_on_tape = true;
    bool is_of_tape_pool = true;  // The pool of all objects that are released.

private:
    objects::Stores& stores_;
    core::WaitQueue ended_;
};

// A library that notes what it is asked, and answers what the test says.
class FakeLibrary final : public library::LibraryService {
public:
    explicit FakeLibrary(core::Reactor& reactor) : reactor_(reactor) {}

    Task<Result<void>> sync(std::string pool, core::WaitOptions wait) override {
        synced.push_back(std::move(pool));
        const auto slept = co_await reactor_.sleep_until(
            std::min(wait.deadline, after(reactor_.now(), sync_takes)), wait.cancel);
        if (!slept) co_return std::unexpected(slept.error());
        if (reactor_.now() >= wait.deadline) {
            co_return std::unexpected(Error{.code = Errc::kTimedOut, .context = "sync"});
        }
        co_return sync_result;
    }
    std::optional<library::RecallRow> find_recall(library::Ticket ticket) override {
        const auto found = std::ranges::find(recall_rows, ticket, &library::RecallRow::ticket);
        if (found == recall_rows.end()) return std::nullopt;
        return *found;
    }
    std::string why_recalls_wait() const override { return recalls_wait; }
    std::vector<library::RecallRow> recalls(std::size_t rows_max) const override {
        std::vector<library::RecallRow> some = recall_rows;
        some.resize(std::min(some.size(), rows_max));
        return some;
    }
    library::PendingRecalls pending_recalls() const override {
        if (recall_rows.empty()) return {};
        return {
            .count = recall_rows.size(),
            .oldest_at = std::ranges::min(recall_rows, {}, &library::RecallRow::asked_at).asked_at};
    }
    std::vector<library::Cartridge> media() const override { return cartridges; }
    Task<void> look_for_media() override {
        ++looks;
        co_return;
    }
    std::vector<library::DriveRow> drives() const override { return drive_rows; }
    std::optional<std::string> why_not_open() const override { return not_open; }
    Task<library::MediaOutcome> format(FormatWish wish) override {
        core::CancelSource* const cancel = wish.cancel;
        formatted.push_back(std::move(wish));
        if (format_takes == Duration::zero()) co_return outcome;
        const auto slept = co_await reactor_.sleep_for(format_takes, cancel);
        if (!slept) ++formats_given_up;
        co_return outcome;
    }
    std::vector<library::FormatRow> formats() const override { return format_rows; }
    Task<library::MediaOutcome> cancel_format(std::string barcode) override {
        cancelled_formats.push_back(std::move(barcode));
        co_return outcome;
    }
    Task<library::MediaOutcome> load(LoadWish wish) override {
        loaded.push_back(std::move(wish));
        co_return outcome;
    }
    Task<library::MediaOutcome> unload(std::string drive) override {
        unloaded.push_back(std::move(drive));
        co_return outcome;
    }

    Task<library::MediaOutcome> export_medium(ExportWish wish) override {
        exported.push_back(std::move(wish));
        co_return outcome;
    }
    Task<library::MediaOutcome> import_media(std::string barcode) override {
        imported.push_back(std::move(barcode));
        co_return outcome;
    }
    Task<library::MediaOutcome> take_drive_down(std::string drive) override {
        taken_down.push_back(std::move(drive));
        co_return outcome;
    }
    Task<library::MediaOutcome> bring_drive_up(std::string drive) override {
        brought_up.push_back(std::move(drive));
        co_return outcome;
    }
    Task<library::MediaOutcome> repack(std::string barcode) override {
        repacked.push_back(std::move(barcode));
        co_return outcome;
    }
    Task<library::MediaOutcome> cancel_repack(std::string barcode) override {
        cancelled.push_back(std::move(barcode));
        co_return outcome;
    }
    std::optional<library::MediumWork> repack_work(std::string_view /*barcode*/) const override {
        return work;
    }
    Task<library::MediaOutcome> scrub(std::string barcode) override {
        scrubbed.push_back(std::move(barcode));
        co_return outcome;
    }
    Task<library::MediaOutcome> cancel_scrub(std::string /*barcode*/) override {
        co_return outcome;
    }
    std::optional<library::MediumWork> scrub_work(std::string_view /*barcode*/) const override {
        return std::nullopt;
    }
    Task<library::MediaOutcome> rescue(RescueWish wish) override {
        rescued.push_back(std::move(wish));
        co_return outcome;
    }
    Task<library::MediaOutcome> cancel_rescue(std::string /*barcode*/) override {
        co_return outcome;
    }
    std::optional<library::MediumWork> rescue_work(std::string_view /*barcode*/) const override {
        return std::nullopt;
    }

    std::vector<std::string> synced;
    Duration sync_takes{0};
    Result<void> sync_result{};
    std::vector<library::RecallRow> recall_rows;
    std::string recalls_wait;  // Why no recall is served.
    std::vector<library::Cartridge> cartridges;
    std::uint64_t looks = 0;  // For new cartridges.
    std::vector<library::DriveRow> drive_rows;
    std::optional<std::string> not_open;
    std::vector<FormatWish> formatted;
    Duration format_takes{0};  // It waits for a drive meanwhile.
    std::size_t formats_given_up = 0;
    std::vector<library::FormatRow> format_rows;
    std::vector<std::string> cancelled_formats;
    std::vector<LoadWish> loaded;
    std::vector<std::string> unloaded;
    std::vector<ExportWish> exported;
    std::vector<std::string> imported;
    std::vector<std::string> taken_down;
    std::vector<std::string> brought_up;
    std::vector<std::string> repacked;
    std::vector<std::string> scrubbed;
    std::vector<RescueWish> rescued;
    std::vector<std::string> cancelled;
    std::optional<library::MediumWork> work;
    library::MediaOutcome outcome;

private:
    core::Reactor& reactor_;
};

}  // namespace fopd::reqh::testing
